"""Results of several generators, each a file that names it, and the means of generators with intervals."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoregate.cli.main import main

PROMPTS, PICTURES = 12, 2


def lines(shift, **more):
    """Results of `batch`: two pictures of each prompt."""
    return [
        {
            "row": number + 1,
            "image": f"{number}.png",
            "prompt": f"prompt {number // PICTURES}",
            "sha256": None,
            "scores": {"vqascore": (number * 7 % 23) / 23 + shift},
            "errors": {},
            "columns": {"skill": "count" if number % 4 < 2 else "colour", **more},
        }
        for number in range(PROMPTS * PICTURES)
    ]


@pytest.fixture
def files(written):
    """The results of two generators, and both in one table with a column that names the generator."""
    rows = {"a": lines(0.0), "b": lines(0.1)}
    table = [line | {"generator": name} for name, each in rows.items() for line in each]
    return [written(rows["a"], "a.jsonl"), written(rows["b"], "b.jsonl"), written(table, "both.jsonl")]


@pytest.mark.parametrize("figure", ["means", "ordering"])
def test_files_of_generators_give_the_figures_of_one_table(files, evaluate, figure):
    """The file's name is the generator's; no column has to be added."""
    a, b, table = files

    found = evaluate(figure, a, b, "--metric", "vqascore")

    assert found == evaluate(figure, "--scores", table, "--metric", "vqascore")
    assert {"a", "b"} == found["mean" if figure == "means" else "means"].keys()


def test_a_folder_of_results_is_a_generator(files, evaluate, tmp_path):
    """As `batch` writes one for shards."""
    a, b, _ = files
    rows = [(line["image"], line) for line in lines(0.0)]
    (tmp_path / "shards").mkdir()
    for number in range(2):
        part = [line | {"errors": {"vqascore": None}} for _, line in rows[number * 12 : number * 12 + 12]]
        pq.write_table(pa.Table.from_pylist(part), tmp_path / "shards" / f"{number}.parquet")

    found = evaluate("means", f"a={tmp_path / 'shards'}", b, "--metric", "vqascore")

    assert found == evaluate("means", a, b, "--metric", "vqascore")


def test_a_generator_has_the_name_that_it_is_given(files, evaluate):
    """In place of the file's."""
    a, b, _ = files

    assert ["X", "Y"] == [*evaluate("means", f"X={a}", f"Y={b}", "--metric", "vqascore")["mean"]]


def test_a_file_names_its_generator_without_its_suffixes(written, evaluate):
    """A version in its name stays."""
    files = [written(lines(n / 10), name) for n, name in enumerate(("flux.1.jsonl", "flux.2.jsonl.gz"))]

    assert ["flux.1", "flux.2"] == [*evaluate("means", *files, "--metric", "vqascore")["mean"]]


def test_every_figure_of_scores_takes_results(files, evaluate):
    """One file alone is its table."""
    a, _, _ = files
    columns = ("--metric", "vqascore", "--human", "row")

    found = evaluate("agreement", a, *columns, "--bootstrap", 5)

    assert found == evaluate("agreement", "--scores", a, *columns, "--bootstrap", 5)


def test_means_have_intervals_from_drawing_prompts(files, evaluate):
    """Each with all its pictures; without --bootstrap there are none."""
    a, b, _ = files
    command = ("means", a, b, "--metric", "vqascore")

    found = evaluate(*command, "--bootstrap", 200)

    assert ("prompt", PROMPTS) == (found["cluster"], found["clusters"])
    for name, (low, high) in found["interval"].items():
        assert low < found["mean"][name] < high
    assert "interval" not in evaluate(*command)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a.jsonl", "a.jsonl"), "are both named a: name one as NAME=PATH"),
        (("X=a.jsonl", "X=b.jsonl"), "are both named X"),
        ((), "name the scores: --scores FILE, or the results of each generator"),
        (("a.jsonl", "--scores", "both.jsonl"), "name the scores: "),
        (("a.jsonl", "own.jsonl"), "own.jsonl has a column generator of its own"),
        (("a.jsonl", "bad.jsonl"), "bad.jsonl, row 2, column vqascore: 'high' is not a number"),
    ],
)
def test_files_that_cannot_be_named_or_read_are_refused(
    files, written, refused, monkeypatch, tmp_path, arguments, said
):
    """A fault names the file and its own row."""
    monkeypatch.chdir(tmp_path)
    written(lines(0, generator="x"), "own.jsonl")
    bad = lines(0)
    bad[1]["scores"]["vqascore"] = "high"
    written(bad, "bad.jsonl")

    assert said in refused("evaluate", "means", *arguments, "--metric", "vqascore")


def test_an_option_may_stand_before_the_files(files, capsys):
    """As one types it."""
    a, b, _ = files

    assert 0 == main(["evaluate", "means", "--metric", "vqascore", a, b])
    assert "pictures" in capsys.readouterr().out
    assert 0 == main(["evaluate", "means", a, b, "--metric", "vqascore", "--json"])
    assert {"a", "b"} == json.loads(capsys.readouterr().out)["mean"].keys()
