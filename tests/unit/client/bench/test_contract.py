"""What every benchmark of `BENCHMARKS` does, over the least data of each."""

import json
from pathlib import Path

import pytest

import scoregate.bench
from scoregate.bench import BENCHMARKS, GENERATORS
from scoregate.bench.answers import images_in
from scoregate.cli.main import main
from scoregate.settings import settings_in
from tests.support.benchmarks import SAMPLES, Sample

pytestmark = pytest.mark.parametrize("name", GENERATORS)


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


def settings(name, sample, **more):
    """The settings of the sample's arguments."""
    names = [word.removeprefix("--").replace("-", "_") for word in sample.words[::2]]
    values = sample.words[1::2] or [True] * len(names)
    return {"data": str(sample.data)} | dict(zip(names, values, strict=True)) | more


def items(name: str, sample: Sample):
    """The items of the data."""
    benchmark = BENCHMARKS[name].benchmark
    return benchmark.items(settings_in(benchmark.settings, settings(name, sample, answers={"a": Path("a")})))


def test_the_function_returns_what_the_command_prints(bench, name, sample, written):
    """Two generators are compared on the prompts of both, with intervals."""
    files = {"a": written(both(sample), "a.jsonl"), "b": written(sample.rows(0, sample.best), "b.jsonl")}
    said = [f"{key}={file}" for key, file in files.items()]
    found = bench(name, sample.data, *said, *sample.words, "--seed", 3)

    made = scoregate.bench.run(name, **settings(name, sample, answers=files, seed=3))
    assert json.loads(json.dumps(made)) == found
    assert {"benchmark": name, "prompts": sample.prompts, "seed": 3, "cluster": "prompt", "compared": 1} == {
        key: value for key, value in found.items() if not isinstance(value, list) and key != "caution"
    }
    assert ["a", "b"] == [each["generator"] for each in found["generators"]]


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv"])
def test_tables_are_printed_in_each_form(capsys, name, sample, written, form):
    """With the generator, each figure of the sample, and the caution."""
    more = [] if form == "text" else ["--format", form]
    file = written(both(sample))
    assert 0 == main(["bench", name, str(sample.data), f"mine={file}", *sample.words, *more, "--bootstrap=0"])
    printed = capsys.readouterr().out

    for part in ("mine", *sample.figures, f"2 of {sample.of} prompts"):
        assert part.replace("_", "\\_" if form == "latex" else "_").lower() in printed.lower()


def test_data_of_another_form_are_refused(refused, name, sample, tmp_path):
    """The line names the file or the folder; nothing is read by luck."""
    other = tmp_path / "other"
    if sample.data.is_dir():
        other.mkdir()
    else:
        other = other.with_suffix(sample.data.suffix)
        other.write_text("x\n1\n" if other.suffix == ".csv" else '{"x": 1}\n', "utf-8")

    assert str(other) in refused("bench", name, other, "a=a.csv", *sample.words)
