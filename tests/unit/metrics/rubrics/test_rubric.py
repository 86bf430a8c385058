"""Rubric files: what they may hold, and what a model reads of them."""

import json
import re
import tomllib

import PIL.Image
import pytest
from pydantic import ValidationError

from models.images.image import Image
from service.metrics.common.contract import Item
from service.metrics.rubrics.grading import JudgePrompt, Rating
from service.metrics.rubrics.options import RUBRICS, JudgeOptions, options_with
from service.metrics.rubrics.output import Output
from service.metrics.rubrics.prompt_files import MAX_BYTES
from service.metrics.rubrics.rubric import Rubric, rubric_of, rubrics_in
from tests.support.paths import GOLDEN
from tests.support.rubrics import TWO_CALLS

GOLDEN_CALLS = json.loads((GOLDEN / "rubrics.json").read_text("utf-8"))
COLOURS = ("red", "blue", "green", "white")
BENCHMARKS = {  # rubrics with written answers, by their least and largest score
    "gedit": (0, 10),
    "imgedit": (1, 5),
    **{f"kris_{kind}": (1, 5) for kind in ("edit", "knowledge", "view", "series")},
    "wise": (0, 1),
    "wise_verified": (0, 1),
}
DATA = {name: f"{name} of {{prompt}}" for name in ("compliance", "appearance", "detail", "explanation")}

GOOD = """
paper = "A 2024, arXiv 2401.00001"
score = "fit"
read = "expected"

[[calls]]
instructions = "How well does it show {prompt}?"
answer = "token"
[calls.outputs.fit]
range = [1, 5]
grades = ["not", "hardly", "half", "nearly", "all"]
"""
OUTPUT = "[calls.outputs.more]\n"
FIT = ("5: all", "4: nearly", "3: half", "2: hardly", "1: not", "Answer with one digit only.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace('"not", ', ""), "grades: there must be one for each"),
        (GOOD.replace("paper", "source"), "^the rubric a_file: source: Extra inputs are not permitted$"),
        (GOOD + "oops", "a_file"),
        (
            GOOD.replace("{prompt}", "{promt}"),
            r": calls.0.instructions: \{promt\} is no placeholder; there are",
        ),
        (GOOD.replace("{prompt}", "{source}"), r"\{source\} is not among the images"),
        (GOOD.replace('answer = "token"', 'images = ["video"]'), "images"),
        (GOOD.replace('answer = "token"', 'images = ["source", "source"]'), "names a picture twice"),
        (GOOD.replace('answer = "token"', 'captions = {source = "A:"}'), "source is not among the images"),
        (
            GOOD.replace('answer = "token"', 'images = ["candidate", "frame*"]'),
            r"images: frame\* has the cand",
        ),
        (
            GOOD.replace('answer = "token"', 'images = ["rival", "candidate"]')
            .replace('read = "expected"', "")
            .replace("range = [1, 5]", 'kind = "number"')
            .replace("grades", "#"),
            "score: of a rubric with a rival it has a least and a largest value",
        ),
        (GOOD.replace('answer = "token"', 'answer = "yaml"'), "answer"),
        (GOOD + OUTPUT + "range = [1, 5]\n", "one token is for a single output"),
        (GOOD.replace("[1, 5]", "[5, 1]"), "range: the first number must be the smaller one"),
        (GOOD.replace("[1, 5]", "[1.5, 5]"), "range: grades are at most 101 integers"),
        (GOOD.replace("[1, 5]", "[0, 101]"), "range: grades are at most 101 integers"),
        (GOOD.replace("range = [1, 5]", 'range = [1, 5]\nkind = "yes_no"'), "give one of range, labels and"),
        (GOOD.replace("range = [1, 5]", 'labels = ["a", "a"]'), "labels: there must be 2 to 101 different"),
        (GOOD.replace("outputs.fit", "outputs.Fit"), "'Fit' is no name of an output"),
        (GOOD.replace("outputs.fit", "outputs.min"), "'min' is no name of an output"),
        (
            GOOD.replace('"fit"', '"fit + x"'),
            "^the rubric a_file: score: column 7: there is no x; there are fit$",
        ),
        (
            GOOD.replace('"fit"', '"mean(1e308, 1e308, fit)"'),
            r"^the rubric a_file: score: mean\(1e308, 1e308, fit\) is not a finite number in some cases$",
        ),
        (
            GOOD.replace('"fit"', '"not ' + "-" * 480 + 'fit"'),
            "score: column 29: the expression is nested too deep",
        ),
        (GOOD.replace('"fit"', '"' + "11+" * 40 + '!"'), "score: column 121: the text cannot be parsed"),
        (GOOD.replace('"fit"', '"fit - fit * 0 * 0 + (1"'), "score: column 21: the text cannot be parsed"),
        (GOOD.replace('"fit"', '"1 + 1"'), "it is the same for all answers"),
        (GOOD.replace('read = "expected"', 'read = "expected"\nsamples = 2'), "are for written answers"),
        (GOOD.replace('read = "expected"', 'read = "guessed"'), "read"),
        (GOOD.replace('read = "expected"', "samples = 2\ntemperature = 0"), "are the same answer"),
        (GOOD.replace('read = "expected"', "samples = 17"), "samples"),
        (GOOD.replace('read = "expected"', "retries = 2"), "retries"),
        (GOOD.replace("range = [1, 5]", 'kind = "number"').replace("grades", "#"), "one token is for"),
        (TWO_CALLS.replace("pq1]", "sc1]"), "two have an output of the same name"),
        (TWO_CALLS.replace("Natural look", "pq2"), "two have the same title"),
        (TWO_CALLS + '[calls.outputs.pq3]\nkind = "number"\n', ""),
        (GOOD + f"#{'x' * MAX_BYTES}", f"at most {MAX_BYTES} bytes"),
        (GOOD * 2, "a_file"),
    ],
)
def test_a_rubric_that_is_not_whole_is_refused_by_its_name(text, said):
    """When the service starts, and not when an item is graded."""
    rubric_of("a_file", GOOD)
    if not said:
        text = text.replace("retries = 1", 'read = "both"')
        said = "pq3 has no answers of one token"
    with pytest.raises(ValueError, match=said) as refusal:
        rubric_of("a_file", text)
    assert str(refusal.value).startswith("the rubric a_file: ")
    assert not re.search(r"pydantic|\n", str(refusal.value))


def test_a_rubric_has_at_most_sixteen_outputs():
    """Of all calls together."""
    outputs = {f"o{number}": {"kind": "yes_no"} for number in range(9)}
    calls = [{"instructions": "x", "outputs": outputs}, {"instructions": "x", "outputs": outputs}]
    calls[1]["outputs"] = {f"p{number}": {"kind": "yes_no"} for number in range(9)}

    with pytest.raises(ValueError, match="at most 16 outputs"):
        Rubric.model_validate({"score": "o1", "calls": calls})


@pytest.mark.parametrize("name", RUBRICS)
def test_each_rubric_of_the_service_names_its_paper(name):
    """By authors, year and number; a grade from 1 to 5, on the scale of a benchmark, or for one of two."""
    written = RUBRICS[name].read == "written"
    papers = {"Ku et al. 2023, arXiv 2312.14867", "Eldesokey et al. 2026, arXiv 2605.13223"}
    papers |= {"Wang et al. 2025, arXiv 2508.20751"}

    assert (RUBRICS[name].paper in papers) is not written
    assert re.search(r"et al\. 20\d\d, arXiv \d{4}\.\d{5}", RUBRICS[name].paper)
    graded = (-1, 1) if RUBRICS[name].compares else (1, 5)
    assert (BENCHMARKS[name] if written else graded) == RUBRICS[name].bounds


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_rubrics_of_benchmarks_send_what_they_have_always_sent(name):
    """Every character, the schema and the pictures of each call: figures of papers need them."""
    image, *others = (Image.of(PIL.Image.new("RGB", (8, 8)), colour) for colour in COLOURS)
    rating = Rating(RUBRICS[name], name, False, DATA)
    item = Item(image, "a {dog} {prompt}", references=tuple(others[:2]), source=others[2])
    sent = [JudgePrompt.of(call, item, rating).written(rating, 0) for call in rating.rubric.calls]

    assert GOLDEN_CALLS[name] == [
        {
            "question": call.question,
            "schema": call.schema,
            "before": [each if isinstance(each, str) else each.digest for each in call.before],
        }
        for call in sent
    ]
    assert all(call.image is image for call in sent)


@pytest.mark.parametrize("labels", ["1-5", "A-E"])
@pytest.mark.parametrize("name", [name for name in RUBRICS if name not in BENCHMARKS])
def test_the_rubrics_of_the_service_send_what_they_have_always_sent(name, labels):
    """Every character, the labels in their order, and the pictures with their captions: scores need them."""
    image, *others = (Image.of(PIL.Image.new("RGB", (8, 8)), colour) for colour in COLOURS)
    item = Item(image, "a {dog} {prompt}", references=tuple(others[:2]), source=others[2], rival=others[0])
    rubric = RUBRICS[name]
    [call] = rubric.calls
    [output] = call.outputs
    sent = JudgePrompt.of(call, item, Rating(rubric, name, labels == "A-E", {}))
    labelled = sent.labelled(output, Rating(rubric, name, labels == "A-E", {}))

    before = [each if isinstance(each, str) else each.digest for each in labelled.before]
    assert GOLDEN_CALLS[name][labels] == {
        "question": labelled.question,
        "labels": [*labelled.labels],
        "before": before,
    }
    assert image is labelled.image
    assert rubric.digest == labelled.rubric  # cached answers of another one are not its answers


def test_a_written_answer_of_one_token_has_the_limit_and_the_labels_of_its_call():
    """Letters or digits, as the option says."""
    rubric = rubric_of(
        "a", GOOD.replace('read = "expected"', "").replace("[[calls]]", "[[calls]]\nmax_tokens = 77")
    )
    item = Item(Image.of(PIL.Image.new("RGB", (8, 8)), "red"), "a dog")
    sent = [
        JudgePrompt.of(rubric.calls[0], item, rating).written(rating, 0)
        for rating in (Rating(rubric, "a", letters, {}) for letters in (False, True))
    ]

    assert [77, 77] == [call.max_tokens for call in sent]
    assert ["5: all", "A: all"] == [call.question.splitlines()[1] for call in sent]


def test_a_digest_is_that_of_the_content():
    """Comments and the order of fields do not count; any word does, and the order of outputs."""
    rubric = rubric_of("a", GOOD)
    reordered = dict(reversed(tomllib.loads(GOOD).items()))

    assert rubric.digest == rubric_of("b", "# a comment\n" + GOOD).digest
    assert rubric.digest == Rubric.model_validate(reordered).digest
    assert rubric.digest != rubric_of("a", GOOD.replace("half", "a half")).digest
    assert rubric.digest != rubric_of("a", GOOD.replace('"fit"', '"fit / 5"')).digest
    sc1, sc2 = ("[calls.outputs.sc1]\nrange = [0, 10]\n", "[calls.outputs.sc2]\nrange = [0, 10]\n")
    start = 'score = "sc1 + sc2"\n[[calls]]\ninstructions = "Q"\n'
    assert rubric_of("a", start + sc1 + sc2).digest != rubric_of("a", start + sc2 + sc1).digest


def test_the_form_of_a_written_answer_is_described_unless_the_rubric_does_so():
    first, second = rubric_of("a", TWO_CALLS).calls

    assert first.text("Q").splitlines() == [
        "Q",
        "Answer with one JSON object only, which has these keys:",
        '"sc1": an integer from 0 to 10 - the success of the change',
        '"sc2": an integer from 0 to 10',
        '"why": a text of one line',
    ]
    assert second.text("Q").splitlines()[1:] == [
        "Answer with these lines only, each a name, a colon and the answer:",
        "Natural look: an integer from 0 to 10",
        "pq2: an integer from 0 to 10",
    ]
    called = first.model_copy(update={"outputs": {"a": Output(kind="yes_no", title="Größe")}})
    assert '"Größe": one of yes, no' == called.text("Q").splitlines()[-1]
    assert "Q\nIn JSON." == first.model_copy(update={"closing": "In JSON."}).text("Q")
    assert "Q" == first.model_copy(update={"closing": ""}).text("Q")


def test_a_json_schema_allows_the_answers_that_are_parsed():
    first, second = rubric_of("a", TWO_CALLS).calls
    grade = {"type": "integer", "enum": [*range(11)]}

    assert None is second.json_form
    assert first.json_form == {
        "type": "object",
        "properties": {"sc1": grade, "sc2": grade, "why": {"type": "string"}},
        "required": ["sc1", "sc2", "why"],
        "additionalProperties": False,
    }
    assert {"type": "number", "minimum": 0, "maximum": 1} == Output(kind="number", range=[0, 1]).json_form
    assert {"type": "string", "enum": ["yes", "no"]} == Output(kind="yes_no").json_form


def test_one_output_alone_is_answered_by_a_symbol():
    """Of a call that has several, with its meaning; above 9 by letters, of which A is the best."""
    first, _ = rubric_of("a", TWO_CALLS).calls
    lines = first.label_text("Q", "sc1").splitlines()

    assert ["Q", "Answer for sc1 alone (the success of the change).", "A: 10", "B: 9"] == lines[:4]
    assert ["K: 0", "Answer with one letter only."] == lines[-2:]
    assert ["Q", "Answer for sc2 alone."] == first.label_text("Q", "sc2").splitlines()[:2]
    [token] = rubric_of("a", GOOD).calls
    assert token.label_text("Q", "fit") == token.text("Q") == "\n".join(("Q", *FIT))
    assert "A: all" == token.label_text("Q", "fit", letters=True).splitlines()[1]
    [json_call] = rubric_of("a", GOOD.replace("token", "json")).calls
    first_symbols = [json_call.label_text("Q", "fit", letters).splitlines()[2] for letters in (False, True)]
    assert ["5: all", "A: all"] == first_symbols
    assert "Answer with one digit from 0 to 2 only." == [*Output(range=[0, 2]).symbol_lines()][-1]
    assert ["Answer with yes or no only."] == [*Output(kind="yes_no").symbol_lines()]


def test_labels_count_what_the_rubric_says():
    """Those of a list from 0 on; a table has numbers of its own."""
    assert {"bad": 0, "fair": 1, "good": 2} == Output(labels=["bad", "fair", "good"]).values
    given = Output(labels={"good": 1, "fair": 0.4, "bad": 0})

    assert ((0, 1), 0.4) == (given.bounds, given.counts("fair"))
    assert {"A": "good", "B": "fair", "C": "bad"} == given.symbols()
    assert {} == Output(labels=[str(number) for number in range(27)]).symbols()
    assert 26 == len(Output(labels=[str(number) for number in range(26)]).symbols())
    assert 0.25 == Output(kind="number").counts(0.25)


def test_the_folders_of_an_operator_add_rubrics(tmp_path):
    (tmp_path / "mine.toml").write_text(GOOD, "utf-8")
    (tmp_path / "notes.txt").write_text("no rubric", "utf-8")

    (tmp_path / "later.toml").write_text(GOOD.replace("half", "medium · half"), "utf-8")

    found = rubrics_in([tmp_path], RUBRICS)

    assert [*RUBRICS, "later", "mine"] == [*found]
    assert "medium · half" in found["later"].numbers["fit"].grades
    (tmp_path / "later.toml").write_text("score = 5", "utf-8")
    with pytest.raises(ValueError, match="the rubric later: "):
        rubrics_in([tmp_path], RUBRICS)
    (tmp_path / "later.toml").unlink()
    with pytest.raises(ValueError, match="there is no such folder"):
        rubrics_in([tmp_path / "gone"], RUBRICS)
    with pytest.raises(ValueError, match="mine: there is another one"):
        rubrics_in([tmp_path, tmp_path], RUBRICS)
    (tmp_path / "Mine.toml").write_text(GOOD, "utf-8")
    with pytest.raises(ValueError, match="a name must match"):
        rubrics_in([tmp_path], RUBRICS)


def test_a_rubric_in_a_folder_is_read_like_every_other_file_of_an_operator(tmp_path):
    """A byte order mark is no part of it, a folder is no rubric, and what is no text is named."""
    (tmp_path / "mine.toml").write_text(f"\ufeff{GOOD}", "utf-8")
    (tmp_path / "old.toml").mkdir()

    assert rubric_of("mine", GOOD) == rubrics_in([tmp_path], {})["mine"]
    (tmp_path / "mine.toml").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"mine\.toml is not UTF-8"):
        rubrics_in([tmp_path], {})
    (tmp_path / "mine.toml").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ValueError, match=rf"mine\.toml has more than {MAX_BYTES} bytes"):
        rubrics_in([tmp_path], {})


def test_an_unknown_rubric_is_refused_with_the_names_of_all():
    with pytest.raises(ValueError, match=f"must be one of {', '.join(RUBRICS)}"):
        JudgeOptions(rubric="novelty")


def test_a_rubric_may_be_named_with_its_digest():
    """As provenance shows it; another digest is another rubric."""
    options = JudgeOptions(rubric="editing")
    shown = options.model_dump(mode="json")["rubric"]

    assert f"editing@{RUBRICS['editing'].digest}" == shown
    assert options == JudgeOptions(rubric=shown)
    with pytest.raises(ValueError, match="editing has another digest here"):
        JudgeOptions(rubric=f"editing@{RUBRICS['aesthetics'].digest}")


def test_a_table_is_a_rubric_where_the_settings_allow_it():
    """Its digest stands for it in provenance."""
    table = tomllib.loads(GOOD)
    options = options_with(RUBRICS, True, "editing")(rubric=table)

    assert rubric_of("a", GOOD).digest == options.name == options.model_dump(mode="json")["rubric"]
    assert "editing" == options_with(RUBRICS, True, "editing")().name
    with pytest.raises(ValueError, match="rubrics of a request are off"):
        JudgeOptions(rubric=table)


def test_labels_without_effect_are_named():
    """Written JSON has no labels of one token."""
    options = options_with({"two": rubric_of("two", TWO_CALLS)}, False, "two")(labels="A-E")

    assert ["the option labels has no effect with this rubric"] == [note.text for note in options.unused()]
    assert () == JudgeOptions(labels="A-E").unused()
    written = rubric_of("a", GOOD.replace('read = "expected"', ""))
    assert () == options_with({"a": written}, False, "a")(labels="A-E").unused()
    film = rubric_of("a", GOOD.replace("[[calls]]", '[[calls]]\nimages = ["frame*"]'))
    [note] = options_with({"a": film}, False, "a")(frames="min").unused()
    assert "the option frames has no effect with this rubric" == note.text
    yes_no = rubric_of("a", GOOD.partition("range")[0] + 'kind = "yes_no"')
    assert 1 == len(options_with({"a": yes_no}, False, "a")(labels="A-E").unused())


@pytest.mark.parametrize(
    "call",
    [
        {"outputs": dict.fromkeys(map(str, range(1_000)), 5)},
        {"outputs": {"fit": {"labels": dict.fromkeys(map(str, range(1_000)), "x")}}},
        {"outputs": {"fit": {"range": [1, 5]}}, "captions": dict.fromkeys(map(str, range(1_000)), 5)},
    ],
)
def test_an_object_of_too_many_entries_is_one_fault_whatever_they_are(call):
    """A request may hold hundreds of thousands, and the list of their faults would be as long."""
    with pytest.raises(ValidationError) as refused:
        Rubric.model_validate({"score": "fit", "calls": [{"instructions": "Grade it.", **call}]})

    assert 1 == refused.value.error_count()
    assert "has 1000 entries; at most" in str(refused.value)
