"""Forms of written answers: which fit their outputs, what a model reads of them, and how they are read."""

import pytest

from service.core.errors import AnswerRefused, Misread
from service.metrics.rubrics.answer import parsed
from service.metrics.rubrics.form import AnswerForm
from service.metrics.rubrics.output import Output

GRADE = Output(range=[1, 5])
FIT = Output(range=[1, 5], meaning="how well it fits")
SHARE = Output(kind="number", range=[0, 1], title="Share")
WHY = Output(kind="text")
PAIR = {
    "first": Output(kind="number", title="Style: Image 1"),
    "second": Output(kind="number", title="Style: Image 2", meaning="as above"),
    "other": Output(kind="number", title="Light: Image 1"),
}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"form": "token", "tag": "answer"}, "one token is the whole answer"),
        ({"form": "json", "final_lines": True}, "final_lines: is for the forms lines and value"),
        ({"form": "json", "numbered": True}, "numbered: is for the form lines"),
        ({"form": "value", "line_ends": "."}, "line_ends: is for the form lines"),
        ({"form": "lines", "lists": {"score": ["a"]}}, "lists: is for the form json"),
    ],
)
def test_fields_that_a_form_cannot_have_are_refused(fields, said):
    with pytest.raises(ValueError, match=f"Value error, {said}"):
        AnswerForm(**fields)


def test_the_end_of_a_text_may_be_lines_or_a_value():
    """After reasons; one token is the whole text."""
    assert [True, True] == [
        AnswerForm(form=form, final_lines=True).final_lines for form in ("lines", "value")
    ]
    assert "token" == AnswerForm(form="token").form


@pytest.mark.parametrize(
    ("fields", "outputs", "said"),
    [
        ({}, {"a": GRADE, "b": Output(range=[1, 5], title="A")}, "outputs: two have the same title"),
        ({"lists": {"B": ["a"]}}, {"a": GRADE, "b": GRADE}, "outputs: two have the same title"),
        (
            {"form": "token"},
            {"a": GRADE, "b": GRADE},
            "answer: one token is for a single output of at most 26",
        ),
        ({"form": "token"}, {"a": WHY}, "answer: one token is for a single output of at most 26"),
        ({"form": "value"}, {"a": GRADE, "b": GRADE}, "answer: a value is for a single output that counts a"),
        ({"form": "value"}, {"a": WHY}, "answer: a value is for a single output that counts a number"),
        ({"lists": {"score": ["a", "x"]}}, {"a": GRADE}, "answer.lists: 'x' is no output that is a number"),
        ({"lists": {"score": ["w"]}}, {"a": GRADE, "w": WHY}, "answer.lists: 'w' is no output that is a"),
        ({"lists": {"score": ["a", "a"]}}, {"a": GRADE}, "answer.lists: an output has two places"),
        ({"lists": {"s": ["a"], "t": ["a"]}}, {"a": GRADE}, "answer.lists: an output has two places"),
    ],
)
def test_a_form_that_cannot_have_the_outputs_is_refused(fields, outputs, said):
    """When the rubric is read, and not when a model answers."""
    with pytest.raises(ValueError, match=f"^{said}"):
        AnswerForm(**fields).check(outputs)


@pytest.mark.parametrize(
    ("fields", "outputs"),
    [
        ({"form": "token"}, {"a": GRADE}),
        ({"form": "value"}, {"a": GRADE}),
        ({"lists": {"score": ["a", "s"]}}, {"a": GRADE, "s": SHARE, "w": WHY}),
    ],
)
def test_a_form_that_can_have_the_outputs_is_not_refused(fields, outputs):
    assert AnswerForm(**fields).check(outputs) is None


@pytest.mark.parametrize(
    ("fields", "outputs", "lines"),
    [
        ({"form": "value"}, {"a": GRADE}, ["Answer with an integer from 1 to 5 only."]),
        ({"form": "value"}, {"a": FIT}, ["Answer with an integer from 1 to 5 only (how well it fits)."]),
        (
            {"form": "value", "after": "Final:", "tag": "answer", "final_lines": True},
            {"a": GRADE},
            [
                "First give your reasons, then write Final: and then the answer.",
                "You may give reasons first. The answer comes last:",
                "Put the answer between <answer> and </answer>.",
                "Answer with an integer from 1 to 5 only.",
            ],
        ),
        (
            {"lists": {"größe": ["a", "s"]}},
            {"w": WHY, "a": FIT, "s": SHARE, "g": GRADE},
            [
                "Answer with one JSON object only, which has these keys:",
                '"größe": a list of 2 numbers: '
                "[an integer from 1 to 5 - how well it fits, a number from 0 to 1]",
                '"w": a text of one line',
                '"g": an integer from 1 to 5',
            ],
        ),
        (
            {"form": "lines"},
            {"a": GRADE, **PAIR, "b": FIT},
            [
                "Answer with these lines only, each a name, a colon and the answer:",
                "a: an integer from 1 to 5",
                "Style:",
                "Image 1: a number",
                "Image 2: a number - as above",
                "Light:",
                "Image 1: a number",
                "b: an integer from 1 to 5 - how well it fits",
            ],
        ),
    ],
)
def test_a_form_is_described_by_what_stands_around_the_answer_and_each_output(fields, outputs, lines):
    assert lines == [*AnswerForm(**fields).described(outputs, letters=False)]


def test_titles_with_a_colon_are_keys_of_an_object_as_they_are():
    """Only lines have headings."""
    [_, *lines] = AnswerForm().described(PAIR, letters=False)

    assert '"Style: Image 1": a number' == lines[0]


def test_one_token_is_described_by_its_symbols():
    """Letters or digits, as the option says."""
    token = AnswerForm(form="token")

    assert ["Answer with one digit from 1 to 5 only."] == [*token.described({"a": GRADE}, letters=False)]
    assert "Answer with one letter only." == [*token.described({"a": GRADE}, letters=True)][-1]


GRADES = {"type": "integer", "enum": [1, 2, 3, 4, 5]}
TO_ONE = {"type": "number", "minimum": 0.0, "maximum": 1.0}


def test_the_schema_of_a_list_has_the_form_of_each_number():
    """One form for all where they are alike; the list stands where its first output does."""
    outputs = {"w": WHY, "a": GRADE, "g": GRADE, "s": SHARE, "t": SHARE}
    form = AnswerForm(lists={"mixed": ["a", "s"], "alike": ["g"]})

    mixed = {"prefixItems": [GRADES, TO_ONE], "items": False, "minItems": 2, "maxItems": 2}
    assert form.json_schema(outputs) == {
        "type": "object",
        "properties": {
            "w": {"type": "string"},
            "mixed": {"type": "array", **mixed},
            "alike": {"type": "array", "items": GRADES, "minItems": 1, "maxItems": 1},
            "Share": TO_ONE,
        },
        "required": ["w", "mixed", "alike", "Share"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("fields", [{"form": "lines"}, {"after": "Final:"}, {"tag": "answer"}])
def test_a_text_that_is_more_than_one_object_has_no_schema(fields):
    """A server would hold the whole text to it."""
    assert AnswerForm(**fields).json_schema({"a": GRADE}) is None


def refusal(text, form, outputs):
    with pytest.raises(AnswerRefused) as refused:
        parsed(text, form, outputs)
    return refused.value.reason, refused.value.detail.rpartition("; the answer begins: ")[0]


TAGGED = AnswerForm(form="value", after="Final:", tag="answer")


def test_an_answer_is_read_between_its_marks():
    """What comes before the first one is not read; the element is all of the rest."""
    assert {"a": 4} == parsed("It is 5. Final: <answer> 4 </answer>\n", TAGGED, {"a": GRADE})
    assert {"a": 4} == parsed("<answer>5</answer> Final:<answer>4</answer>", TAGGED, {"a": GRADE})


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        ("<answer>4</answer>", "missing_mark", "Final: is missing"),
        ("Final: Final: <answer>4</answer>", "repeated_mark", "Final: is there more than once"),
        ("Final: 4</answer>", "missing_mark", "<answer> is missing"),
        ("Final: <answer>4", "missing_mark", "</answer> is missing"),
        ("Final: <answer>4</answer></answer>", "repeated_mark", "</answer> is there more than once"),
        ("Final: so <answer>4</answer>", "trailing_text", "there is text outside <answer>"),
        ("Final: <answer>4</answer> or 5", "trailing_text", "there is text outside <answer>"),
        ("Final: <answer>6</answer>", "out_of_range", "a: 6 is not an integer from 1 to 5"),
    ],
)
def test_an_answer_without_its_marks_is_refused(text, reason, said):
    assert (Misread(reason), said) == refusal(text, TAGGED, {"a": GRADE})


LAST = AnswerForm(form="lines", final_lines=True, numbered=True, line_ends=".,")
TWO = {"fit": GRADE, "share": SHARE}


@pytest.mark.parametrize(
    "text",
    [
        "fit: 4\nShare: 0.5",
        "It fits.\n\nfit: 4.\nShare: 0.5,\n",
        "(1) fit: 4\n(2)Share: 0.5",
        "fit: nearly all\nI see no more.\nFIT : 4\nshare: 0.5.",
        "Share: 0.5\nfit: 4 .",
    ],
)
def test_the_last_lines_of_a_text_are_the_answer(text):
    """Each may have its place and one sign at its end; lines before that are no answer may say anything."""
    assert {"fit": 4, "share": 0.5} == parsed(text, LAST, TWO)


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        ("fit: 3\nfit: 4\nShare: 0.5", "repeated_output", "fit is answered before the last lines"),
        ("fit: 4\nfit: 4", "repeated_output", "the output fit is there twice"),
        ("(2) fit: 4\nShare: 0.5", "unknown_output", "the line '(2) fit: 4' is not one of fit, Share"),
        ("fit: 4\nShare 0.5", "unknown_output", "the line 'Share 0.5' is not one of fit, Share"),
        ("fit: 4..\nShare: 0.5", "not_a_number", "fit: '4.' is not an integer from 1 to 5"),
        ("fit: 4;\nShare: 0.5", "not_a_number", "fit: '4;' is not an integer from 1 to 5"),
        ("fit: 4", "missing_output", "the output Share is missing"),
    ],
)
def test_last_lines_that_are_not_the_answer_are_refused(text, reason, said):
    assert (Misread(reason), said) == refusal(text, LAST, TWO)


def test_a_line_has_a_place_only_where_the_form_says_so():
    reason, said = refusal("(1) fit: 4\nShare: 0.5", AnswerForm(form="lines"), TWO)

    assert (Misread.UNKNOWN_OUTPUT, "the line '(1) fit: 4' is not one of fit, Share") == (reason, said)


def test_a_sign_at_the_end_of_a_line_is_no_part_of_its_text():
    """Though nothing else is there."""
    assert {"fit": 4, "why": ""} == parsed("fit: 4.\nwhy: .", LAST, {"fit": GRADE, "why": WHY})


def test_lines_below_a_heading_are_those_of_its_outputs():
    """Until the next heading."""
    form = AnswerForm(form="lines", final_lines=True)
    headed = "Both are good.\nStyle:\n Image 1: 0.1\n Image 2: 0.2\nLIGHT:\n image 1: 0.3"

    assert {"first": 0.1, "second": 0.2, "other": 0.3} == parsed(headed, form, PAIR)
    reason, said = refusal(headed.replace("LIGHT:", "Weight:"), form, PAIR)
    assert reason is Misread.UNKNOWN_OUTPUT
    assert said.startswith("the line 'Weight:' is not one of Style: Image 1, ")


def test_the_last_line_is_the_value_and_no_line_before_it_may_be_one():
    form = AnswerForm(form="value", final_lines=True)

    assert {"a": 4} == parsed("It is 5 or 4.\n\n 4 \n", form, {"a": GRADE})
    assert (Misread.REPEATED_OUTPUT, "a is answered before the last line") == refusal(
        "5\n4", form, {"a": GRADE}
    )
    assert (Misread.NOT_A_NUMBER, "a: '' is not an integer from 1 to 5") == refusal("", form, {"a": GRADE})


LISTED = AnswerForm(lists={"score": ["fit", "share"]})


def test_each_number_of_a_list_is_that_of_its_output():
    text = '{"why": "x", "score": [4, 0.5]}'

    assert {"why": "x", "fit": 4, "share": 0.5} == parsed(text, LISTED, {"why": WHY, **TWO})


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        ('{"score": [4]}', "missing_output", "score: the list has 1 numbers, not 2"),
        ('{"score": [4, 0.5, 1]}', "unknown_output", "score: the list has 3 numbers, not 2"),
        ('{"score": "4, 0.5"}', "not_a_number", "score: '4, 0.5' is not a list of 2 numbers"),
        ('{"score": [4, 0.5], "score[0]": 3}', "unknown_output", "score[0] is no member of the object"),
        ('{"score": [6, 0.5]}', "out_of_range", "score[0]: 6 is not an integer from 1 to 5"),
        ("{}", "missing_output", "the output score[0] is missing"),
    ],
)
def test_a_list_that_is_not_of_the_form_is_refused(text, reason, said):
    assert (Misread(reason), said) == refusal(text, LISTED, TWO)
