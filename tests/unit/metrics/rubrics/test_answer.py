"""Written answers: what is parsed, and that nothing else is."""

import json

import pytest

from service.core.errors import AnswerRefused, Misread
from service.metrics.rubrics.answer import MAX_SHOWN_CHARACTERS, parsed
from service.metrics.rubrics.output import Output

OUTPUTS = {
    "sc": Output(range=[0, 10]),
    "style": Output(labels=["none", "some", "all"]),
    "safe": Output(kind="yes_no"),
    "share": Output(kind="number", range=[0, 1], title="Share of text"),
    "why": Output(kind="text"),
}
GOOD = {"sc": 7, "style": "some", "safe": "Yes", "Share of text": 0.25, "why": "a reason"}
READ = {"sc": 7, "style": "some", "safe": "yes", "share": 0.25, "why": "a reason"}
JSON = json.dumps(GOOD)
LINES = "\n".join(f"{title}: {answer}" for title, answer in GOOD.items())


FENCED = f"```json\n{JSON}\n```"


@pytest.mark.parametrize(
    "text",
    [
        *(JSON, f"\n {JSON} \n", JSON.replace("7", "7.0")),
        *(FENCED, f"```\n{JSON}\n```", FENCED.replace("json", "JSON"), FENCED.replace("json", "Json ")),
        *(FENCED.replace("\n", "\r\n"), FENCED.replace("json", "").replace("\n", " \r\n  ")),
        json.dumps(GOOD, indent=1).replace("\n", "\r\n"),
    ],
)
def test_an_object_with_all_outputs_is_an_answer(text):
    """Also in a block of code, with any case of its tag and any line ends: there is one way to read it."""
    assert READ == parsed(text, "json", OUTPUTS)


@pytest.mark.parametrize("text", [LINES, f"\n{LINES}\n\n", LINES.upper().replace("SOME", "some")])
def test_lines_with_all_outputs_are_an_answer(text):
    """Names may differ in case."""
    assert {**READ, "why": "x"} == {**parsed(text, "lines", OUTPUTS), "why": "x"}


def of(**changes):
    """An object with other answers; None leaves one out."""
    return json.dumps({name: each for name, each in (GOOD | changes).items() if each is not None})


REFUSED = [
    (of(sc=11), "out_of_range", "sc: 11 is not an integer from 0 to 10"),
    (of(sc=-1), "out_of_range", "sc: -1 is not"),
    (of(sc=7.5), "not_a_number", "sc: 7.5 is not"),
    (of(sc="seven"), "not_a_number", "sc: 'seven' is not"),
    (of(sc="7"), "not_a_number", "sc: '7' is not"),
    (of(sc=True), "not_a_number", "sc: True is not"),
    (of(sc=[7]), "not_a_number", "sc: \\[7\\] is not"),
    (JSON.replace("7", "NaN"), "not_a_number", "NaN is not a finite number"),
    (JSON.replace("0.25", "-Infinity"), "not_a_number", "-Infinity is not a finite number"),
    (JSON.replace("0.25", "1e999"), "out_of_range", "Share of text: inf is not a number from 0 to 1"),
    (JSON.replace("7", "1" + "0" * 400), "out_of_range", "sc: 1000"),
    (of(sc=None), "missing_output", "the output sc is missing"),
    ("{}", "missing_output", "the output sc is missing"),
    (of(extra=1), "unknown_output", "there is no output 'extra'"),
    (of(style="most"), "not_a_label", "style: 'most' is not one of none, some, all"),
    (of(style=1), "not_a_label", "style: 1 is not one of"),
    (of(safe=True), "not_a_label", "safe: True is not one of yes, no"),
    (of(why=1), "not_a_label", "why: 1 is not a text"),
    (JSON.replace('{"sc": 7', '{"sc": 7, "sc": 8'), "repeated_output", "a key is there twice;"),
    (JSON + JSON, "several_objects", "it has more than one JSON object;"),
    (f"{JSON}\n\n{JSON}", "several_objects", "it has more than one JSON object;"),
    (f"{JSON},\n{JSON}", "several_objects", "it has more than one JSON object;"),
    (f"{JSON} [1]", "several_objects", "it has more than one JSON object;"),
    (f"{JSON} X{JSON}", "trailing_text", "there is text after the JSON object;"),
    (f"{JSON} I hope this helps.", "trailing_text", "there is text after the JSON object;"),
    (f"{JSON},", "trailing_text", "there is text after the JSON object;"),
    (f"```json\n{JSON};\n```", "trailing_text", "there is text after the JSON object;"),
    (f"```json\n{JSON}\n```\n```json\n{JSON}\n```", "trailing_text", "there is text after the JSON object;"),
    (f"Sure! {JSON}", "not_json", "it is not JSON;"),
    (f"```json{JSON}```", "not_json", "it is not JSON;"),
    (f"```yaml\n{JSON}\n```", "not_json", "it is not JSON;"),
    ("The score is 7.", "not_json", "it is not JSON;"),
    ("", "not_json", "it is not JSON;"),
    ("7", "not_json", "it is not a JSON object;"),
    (f"[{JSON}]", "not_json", "it is not a JSON object;"),
    (JSON[:-1], "not_json", "it is not JSON;"),
    ('{"a":' * 100_000, "not_json", "it is not JSON;"),
    (JSON.replace("7", "1" * 5000), "not_json", "it is not JSON;"),
]


@pytest.mark.parametrize(("text", "reason", "said"), REFUSED)
def test_an_object_that_is_not_of_the_form_is_refused(text, reason, said):
    """With the reason, and the beginning of the text; never a number that stands next to it."""
    with pytest.raises(AnswerRefused, match=f"^{said}") as refusal:
        parsed(text, "json", OUTPUTS)

    assert Misread(reason) == refusal.value.reason
    assert refusal.value.detail.endswith(f"the answer begins: {text[:MAX_SHOWN_CHARACTERS]!r}")


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        (LINES.replace("7", "11"), "out_of_range", "sc: 11 is not an integer from 0 to 10"),
        (LINES.replace("7", "seven"), "not_a_number", "sc: 'seven' is not"),
        (LINES.replace("7", "7/10"), "not_a_number", "sc: '7/10' is not"),
        (LINES.replace("7", "٧"), "not_a_number", "sc: '٧' is not"),
        (LINES.replace("0.25", "nan"), "not_a_number", "'nan' is not a number from 0 to 1"),
        (LINES.replace("0.25", "2"), "out_of_range", "Share of text: 2.0 is not"),
        (LINES.replace("some", "some of it"), "not_a_label", "'some of it' is not one of"),
        (LINES.replace("sc: 7\n", ""), "missing_output", "the output sc is missing"),
        (LINES + "\nsc: 8", "repeated_output", "the output sc is there twice"),
        (LINES + "\nThat is all.", "trailing_text", "the line 'That is all.' is not one of"),
        ("Grades\n" + LINES, "unknown_output", "the line 'Grades' is not one of"),
        (LINES.replace("sc", "**sc**"), "unknown_output", "is not one of sc, style"),
        ("", "missing_output", "the output sc is missing"),
    ],
)
def test_lines_that_are_not_of_the_form_are_refused(text, reason, said):
    with pytest.raises(AnswerRefused, match=said.replace("*", r"\*")) as refusal:
        parsed(text, "lines", OUTPUTS)

    assert Misread(reason) == refusal.value.reason


@pytest.mark.parametrize(
    ("output", "letters", "text", "answer"),
    [
        ({"range": [1, 5]}, False, " 4\n", 4),
        ({"range": [1, 5]}, True, "B", 4),
        ({"range": [0, 10]}, False, "A", 10),
        ({"labels": ["none", "all"]}, False, "A", "all"),
        ({"kind": "yes_no"}, False, "YES", "yes"),
    ],
)
def test_an_answer_of_one_token_is_a_symbol(output, letters, text, answer):
    """Of letters A is the best."""
    assert {"x": answer} == parsed(text, "token", {"x": Output(**output)}, letters)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("6", "out_of_range"), ("four", "not_a_label"), ("4.", "not_a_label"), ("", "not_a_label")],
)
def test_an_answer_of_one_token_that_is_no_symbol_is_refused(text, reason):
    with pytest.raises(AnswerRefused, match="is not one of 1, 2, 3, 4, 5") as refusal:
        parsed(text, "token", {"x": Output(range=[1, 5])})

    assert Misread(reason) == refusal.value.reason
