"""What every benchmark of `BENCHMARKS` does, then each of metrics and each of generators, over least data."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

import scoregate.bench
from scoregate.bench import BENCHMARKS
from scoregate.bench.answers import images_in
from scoregate.cli.main import main
from scoregate.evaluation.bootstrap import Drawings
from scoregate.formats import printed
from scoregate.settings import settings_in
from tests.support.benchmarks import SAMPLES, Sample
from tests.support.releases import RELEASES


class Call(NamedTuple):
    """The words of a call of the command, with a metric or a generator m, and what its tables show."""

    words: list[str]
    shown: list[str]


@pytest.fixture(params=[*RELEASES, *SAMPLES])
def call(request, tmp_path, monkeypatch, written):
    """A call of any benchmark, in the folder of its files."""
    monkeypatch.chdir(tmp_path)
    if release := RELEASES.get(name := request.param):
        release.write(tmp_path)
        return Call([*release.words], [])
    sample = SAMPLES[name](tmp_path)
    files = [f"m={written(both(sample), 'm.jsonl')}", f"b={written(sample.rows(0, sample.best), 'b.jsonl')}"]
    words = [name, str(sample.data), *files, *sample.words, "--seed", "3"]
    return Call(words, [*sample.figures, f"2 of {sample.of} prompts"])


def settings(words):
    """The settings of the function that the words of a call are, as texts."""
    name, *words = words
    found = {"data": words.pop(0)} if BENCHMARKS[name].benchmark.data else {}
    if answers := dict(word.split("=") for word in words if "=" in word):
        found["answers"] = answers
    for word, value in pairwise([*(word for word in words if "=" not in word), "--"]):
        if word.startswith("--"):
            found[word.removeprefix("--").replace("-", "_")] = value.startswith("--") or value
    return found


def test_the_contract_is_over_all_benchmarks():
    """Also over each form of the files of one that was released in several."""
    assert {*BENCHMARKS} == {*SAMPLES, *(release.words[0] for release in RELEASES.values())}


def test_the_function_returns_what_the_command_prints(bench, call):
    """Its settings are those of the command, and paths may be texts."""
    name, *words = call.words

    assert bench(name, *words) == json.loads(json.dumps(scoregate.bench.run(name, **settings(call.words))))


def undrawn(name):
    """The option that draws nothing, where there is one."""
    return ["--bootstrap", "0"] * issubclass(BENCHMARKS[name].benchmark.settings, Drawings)


def test_tables_are_printed_in_each_form(capsys, call):
    """The first has the metric, or the generator with its figures and its caution."""
    name, *words = [*call.words, *undrawn(call.words[0])]
    found = scoregate.bench.run(name, **settings([name, *words]))
    assert 0 == main(["bench", name, *words, "--format", "latex"])
    assert capsys.readouterr().out == printed(found, "latex", None) + "\n"

    for form, separator in {"text": "  ", "markdown": " | ", "latex": " & ", "csv": ","}.items():
        text = printed(found, form, None)
        rows = re.findall(rf"^(?:\| )?m *{re.escape(separator)}.*", text, re.MULTILINE)
        assert rows
        assert all(len(row.split(separator)) > 2 for row in rows)
        for part in call.shown:
            assert part.replace("_", "\\_" if form == "latex" else "_").lower() in text.lower()


@pytest.mark.parametrize("rows", ['{"x": 1}\n', ""], ids=["of another form", "without rows"])
def test_data_of_no_use_are_refused(refused, call, tmp_path, rows):
    """The line names the file or the folder; nothing is read by luck."""
    name, given, *words = call.words
    path = Path(given.removeprefix("m="))
    other = tmp_path / f"other{path.suffix}"
    if path.is_dir():
        other.mkdir()
    else:
        other.write_text("x\n1\n" if rows and other.suffix == ".csv" else rows, "utf-8")

    assert str(other) in refused("bench", name, given.replace(str(path), str(other)), *words)


@pytest.fixture(params=[name for name, release in RELEASES.items() if release.scores])
def release(request, tmp_path, monkeypatch):
    """The files of a benchmark of metrics, in whose folder the command runs."""
    monkeypatch.chdir(tmp_path)
    release = RELEASES[request.param]
    release.write(tmp_path)
    return replace(release, call=" ".join([release.call, *undrawn(release.words[0])]))


def rows_of(found):
    """The rows of the metric m in all tables, without those of its scores as they stand."""
    return [
        row
        for name, table in found.items()
        if isinstance(table, list) and name not in ("means", "skills", "joined", "sources")
        for row in table
        if "m" == row.get("metric", row.get("judge"))
    ]


def test_the_released_files_are_read_as_they_are(bench, release):
    """Each has figures of the metric m alone: no column of the release is taken for one."""
    found, rows = bench(*release.words), len(release.scores)

    assert ([f"{rows} of {rows} rows of m.csv by {release.key}"] if release.key else None) == found.get(
        "joined"
    )
    if release.words[0] == "gecko2k":
        assert [("m", "all", 1), ("m", "Gecko(S)", 1), ("m", "att/count", 1)] == [
            (row["judge"], row["tag"], row["accuracy"]) for row in found["sxs"]
        ]
    else:
        assert {"m"} == {row["metric"] for row in found["metrics"]} - {"chance"}


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--metric", "nobody"), ": no column 'nobody'; there are "),
        (("--lower-is-better", "mm"), "--lower-is-better mm: no such metric is printed; there are m"),
        (("--scores", "absent.csv"), "absent.csv: No such file"),
    ],
)
def test_a_metric_that_is_not_there_is_refused(refused, release, more, line):
    """A misspelt name would leave a metric out, or its sign as it is."""
    assert line in refused("bench", *release.words, *more)


def test_scores_that_do_not_fit_the_data_are_refused(refused, release, written):
    """With one line, and never joined by luck."""
    rows, place = release.scores, f"m.csv, column {release.key}: "
    names = rf".*{release.key.replace(', ', ' and ')}.* to join by; --by-order" if release.key else ""
    others = [{name: cell if name == "m" else f"9{cell}" for name, cell in row.items()} for row in rows]
    cases = {
        release.unknown or f"{place}no value is one of {release.words[1]}": others,
        f"m.csv: no column {names}": [{"m": row["m"]} for row in rows],
        "there is no column of scores; name a file by --scores": [row | {"m": "x"} for row in rows],
    }
    if release.words[0] != "gecko2k":  # several scores of a picture have their mean there
        cases[release.twice or f"{place}a value is there twice"] = [*rows, rows[-1]]
    for line, given in cases.items():
        written(given, "m.csv")
        assert re.search(line, refused("bench", *release.words))


def test_a_score_that_is_missing_is_counted(bench, release, written):
    """It is not 0, whether its row lacks it or there is no such row."""
    *rows, last = release.scores
    tables = []
    for given in (rows, [*rows, last | {"m": ""}], [*rows, last | {"m": 0}]):
        written(given, "m.csv")
        tables.append(rows_of(bench(*release.words)))

    assert release.counts.items() <= tables[0][0].items()
    assert tables[0] == tables[1] != tables[2]


def test_a_constant_column_of_numbers_does_not_end_the_benchmark(bench, refused, release, written):
    """Without figures its row says why; that is an error of a metric that was named, or is the only one."""
    before = rows_of(bench(*release.words))
    written([row | {"year": 2024} for row in release.scores], "m.csv")
    found = bench(*release.words)

    assert before == rows_of(found)
    if release.key:
        [row] = [row for row in found["metrics"] if row["metric"] == "year"]
        assert {"metric", "undefined"} == row.keys()
        reason = re.fullmatch(r"column year.*: all \d values are 2024", row["undefined"])[0]
        for more in (["--metric", "year"], ["--metric", "m,year"]):
            assert reason in refused("bench", *release.words, *more)
        written([row | {"m": 2024} for row in release.scores], "m.csv")
        assert reason.replace("year", "m") in refused("bench", *release.words)


def test_a_metric_whose_lower_scores_are_better_is_turned_and_marked(bench, release, written):
    """Its rows have the figures of its negated scores, and no other row is marked."""
    plain = rows_of(bench(*release.words))
    written([row | {"m": -row["m"]} for row in release.scores], "m.csv")
    unturned, turned = (bench(*release.words, *more) for more in ([], ["--lower-is-better", "m"]))

    assert [row | {"lower_is_better": True} for row in plain] == rows_of(turned)
    assert rows_of(unturned) != plain
    assert [0, len(plain)] == [json.dumps(found).count("lower_is_better") for found in (unturned, turned)]


@pytest.fixture(params=SAMPLES)
def name(request):
    """A benchmark of generators."""
    return request.param


@pytest.fixture
def sample(tmp_path, name):
    """The data of the benchmark."""
    return SAMPLES[name](tmp_path)


@pytest.fixture
def row(bench, name, sample, written):
    """The row of a generator with these rows of answers, or lines of results, and further arguments."""

    def row(rows, *more):
        file = written(rows, "answers.jsonl")
        [found] = bench(name, sample.data, f"a={file}", *sample.words, "--bootstrap", 0, *more)["generators"]
        return found

    return row


def reading(name):
    """How the benchmark reads answers."""
    return BENCHMARKS[name].benchmark.reading


def both(sample):
    """Answers about a picture of each item, the best and the worst."""
    return sample.rows(0, sample.best) + sample.rows(1, sample.worst)


def lines(name, sample, *tiles):
    """Results of scoring: the item, whether its answers are the best, and the number of its picture."""
    return [sample.line(reading(name).metrics, item, best=best, tile=tile) for item, best, tile in tiles]


def failed(line):
    """A result without its scores."""
    return line | {"scores": {}, "details": {}, "errors": {"m": {"code": "late", "detail": "too late"}}}


def shown(row, sample):
    """The figures of the sample in a row."""
    return {figure: row["mean"][figure] for figure in sample.figures}


def middle(sample, share):
    """The figures at a place between the worst and the best answers."""
    return {name: pytest.approx(low + share * (high - low)) for name, (low, high) in sample.figures.items()}


def test_each_item_counts_from_the_worst_answers_to_the_best(row, sample):
    """Over two items the figures are in the middle; the caution has the paper's number of prompts."""
    found = row(both(sample))

    assert middle(sample, 0.5) == shown(found, sample)
    assert f"2 of {sample.of} prompts" in found["caution"]
    assert "2 prompts, fewer than 30" in found["caution"]
    assert (2, None) == (found["pictures"], found["models"])


def test_results_of_scoring_have_the_figures_of_a_table(row, name, sample):
    """The models that answered are named, and a caution says that they are not the paper's."""
    found = row(lines(name, sample, (0, True, 0), (1, False, 0)))

    assert row(both(sample))["mean"] == found["mean"]
    paper = BENCHMARKS[name].benchmark.paper.model
    assert "somebody/else@1" == found["models"]
    assert f"answered by somebody/else@1, in the paper by {paper}" in found["caution"]


def test_a_prompt_with_more_pictures_counts_once_or_a_caution_says_that_it_counts_more(row, name, sample):
    """By the paper: a mean over prompts, or over all pictures."""
    best = [each for tile in range(3) for each in sample.rows(0, sample.best, tile)]
    found = row(best + sample.rows(1, sample.worst))

    assert middle(sample, 0.75 if sample.pooled else 0.5) == shown(found, sample)
    assert 4 == found["pictures"]
    of = BENCHMARKS[name].benchmark.paper.images
    assert f"1 to 3 of {of} pictures of a prompt" in found["caution"]
    assert sample.pooled == ("a prompt with more pictures counts more" in found["caution"])
    assert "counts more" not in row(both(sample))["caution"]


def test_an_item_without_answers_is_left_out_and_counted(row, refused, name, sample, written):
    """It is not wrong; with `--complete` it is an error with its name."""
    given = lines(name, sample, (0, True, 0), (1, False, 0))
    rows = [given[0], failed(given[1])]
    found = row(rows)

    assert middle(sample, 1) == shown(found, sample)
    assert (1, True) == (found["pictures"], "left out without all answers: 1" in found["caution"])
    said = refused("bench", name, sample.data, f"a={written(rows, 'r.jsonl')}", *sample.words, "--complete")
    assert f"item {sample.items[1]} has not all answers about its pictures" in said


def test_a_picture_without_answers_takes_its_item_along_or_is_left_out_alone(
    row, refused, name, sample, written
):
    """As the paper has it, and a caution counts it; with `--complete` it is an error."""
    best, worst, lost = lines(name, sample, (0, True, 0), (1, False, 0), (1, False, 1))
    rows = [best, worst, failed(lost)]
    found = row(rows)

    assert middle(sample, 0.5 if sample.partial else 1) == shown(found, sample)
    what = "pictures left out" if sample.partial else "left out"
    assert f"{what} without all answers: 1" in found["caution"].split("; ")
    said = refused("bench", name, sample.data, f"a={written(rows)}", *sample.words, "--complete")
    assert f"item {sample.items[1]} has not all answers about its pictures" in said


def test_without_any_answers_there_is_no_table(refused, name, sample, written):
    """The line has the number of pictures that lack one."""
    rows = [failed(each) for each in lines(name, sample, (0, True, 0), (1, True, 0))]

    assert "no prompt has pictures with all answers (pictures that lack one: 2)" in refused(
        "bench", name, sample.data, f"a={written(rows)}", *sample.words
    )


def test_null_is_never_a_right_or_a_wrong_answer(bench, refused, name, sample, written):
    """It is missing, or where a number is expected it is refused with its row."""
    rows = sample.rows(0, sample.best) + sample.rows(1, [None] * len(sample.best))
    arguments = ("bench", name, sample.data, f"a={written(rows, 'a.jsonl')}", *sample.words)
    try:
        assert reading(name).parse(None) is None
    except ValueError:
        place = f"a.jsonl, row {len(sample.best) + 1}, column answer: None is not a number"
        assert place in refused(*arguments)
    else:
        [found] = bench(*arguments[1:], "--bootstrap", 0)["generators"]
        assert (1, middle(sample, 1)) == (found["pictures"], shown(found, sample))
        assert "left out without all answers: 1" in found["caution"]


def test_a_number_outside_of_its_range_is_refused(row, refused, name, sample, written):
    """And a text in its place; an answer that is a text may be any."""
    numbers = not isinstance(sample.best[0], str)
    wrong = [sample.best[0] + 1, sample.worst[0] - 1, "good"] if numbers else ["good"]
    for cell in wrong:
        rows = [answer(sample, answer=cell), *both(sample)[1:]]
        if numbers:
            said = refused("bench", name, sample.data, f"a={written(rows, 'a.jsonl')}", *sample.words)
            assert f"a.jsonl, row 1, column answer: {cell!r} is not " in said
        else:
            assert 2 == row(rows)["pictures"]


def answer(sample, **changed):
    return sample.rows(0, sample.best[:1])[0] | changed


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"item": "nobody"}, "column item: the benchmark has no item nobody"),
        ({"question": 99}, "item {item} has no question 99"),
        ({}, "item {item} has a second answer to question 1"),
        ({"tile": "0.0"}, "item {item} has a second answer to question 1"),
    ],
    ids=["item", "question", "twice", "twice, as a float"],
)
def test_answers_that_do_not_fit_the_data_are_refused(refused, name, sample, written, changed, line):
    """With the file, the row and the item."""
    rows = [*both(sample), answer(sample, **changed)]
    said = refused("bench", name, sample.data, f"a={written(rows, 'a.jsonl')}", *sample.words)

    assert f"a.jsonl, row {len(rows)}" in said
    assert line.format(item=sample.items[0]) in said


def test_a_picture_needs_a_row_for_each_question(refused, name, sample, written):
    """A second picture with the first question alone is short of the others, if there are any."""
    rows = [*both(sample), answer(sample, tile=7, question=1)]
    several = len(sample.best) > 1
    arguments = ("bench", name, sample.data, f"a={written(rows, 'a.jsonl')}", *sample.words)

    if several:
        assert f"item {sample.items[0]}: an answer about its picture 1 is missing" in refused(*arguments)
    else:
        assert 0 == main([*map(str, arguments)])


def test_a_second_result_about_a_picture_is_refused(refused, name, sample, written):
    """And one of another metric, whose details have no answers."""
    known = lines(name, sample, (0, True, 0), (0, True, 0))
    arguments = (*("bench", name, sample.data), *sample.words)
    metrics = " and ".join(reading(name).metrics)

    assert f"item {sample.items[0]} has a second result of its picture 0" in refused(
        *arguments, f"a={written(known, 'a.jsonl')}"
    )
    assert f"no details of {metrics} about item {sample.items[0]}" in refused(
        *arguments, f"b={written([known[0] | {'details': {}}], 'b.jsonl')}"
    )


def test_pictures_with_the_names_of_the_prompts_are_those_of_the_items(capsys, name, sample, tmp_path):
    """`--prompts` prints them for a generator; each belongs to its item, and no other does."""
    assert 0 == main(["bench", name, str(sample.data), *sample.words, "--prompts"])
    found = {line["id"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    files = {id: [each.replace("{generator}", "a") for each in line["files"]] for id, line in found.items()}
    folder = tmp_path / "out"
    for file in [*(each for of_item in files.values() for each in of_item), "none-of-them.png"]:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    placed = images_in(folder, items(name, sample), "a")

    assert sample.prompts == len(found)
    assert list(sample.files) == found[sample.items[0]]["files"]
    of = BENCHMARKS[name].benchmark.paper.images
    for item in items(name, sample):
        assert ([*range(of)], item.prompt) == (found[item.id]["seeds"], found[item.id]["prompt"])
        assert ("2x2" if of == 4 and len(sample.files) == 1 else None) == found[item.id].get("grid")
    assert {id: [folder / each for each in of_item] for id, of_item in files.items()} == placed.of_item


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv", ".txt"])
def test_a_folder_has_pictures_whatever_its_name(refused, name, sample, tmp_path, suffix):
    """The name of a folder may end as that of a file of answers."""
    folder = tmp_path / f"v1{suffix}"
    folder.mkdir()
    (folder / "none-of-them.png").touch()

    said = refused("bench", name, sample.data, *sample.words, f"a={folder}")
    assert f"{folder}: no picture has the name of an item" in said


def items(name: str, sample: Sample):
    """The items of the data."""
    benchmark = BENCHMARKS[name].benchmark
    given = settings([name, str(sample.data), "a=a", *sample.words])
    return benchmark.items(settings_in(benchmark.settings, given))


def test_two_generators_are_compared_on_the_prompts_of_both(name, sample, written):
    """With intervals, which the seed draws."""
    files = {"a": written(both(sample), "a.jsonl"), "b": written(sample.rows(0, sample.best), "b.jsonl")}
    given = settings([name, str(sample.data), *sample.words])
    found = scoregate.bench.run(name, **given, answers=files, seed=3)

    assert {"benchmark": name, "prompts": sample.prompts, "seed": 3, "cluster": "prompt", "compared": 1} == {
        key: value for key, value in found.items() if not isinstance(value, list) and key != "caution"
    }
    assert ["a", "b"] == [each["generator"] for each in found["generators"]]
