"""Rubrics of released reward models: their answers, the instructions that an operator copies, and pairs."""

import hashlib
import re
import tomllib

import pytest

from service.core.errors import AnswerRefused, Misread
from service.metrics.rubrics.answer import parsed
from service.metrics.rubrics.options import options_with
from service.metrics.rubrics.prompt_files import RELEASED_RUBRICS, PromptFile, PromptMissing, named_in
from service.metrics.rubrics.rubric import released_rubrics, rubric_of, rubrics_in
from service.process.doctor import check_prompts
from tests.support.released_answers import formats
from tests.support.released_prompts import PLACEHOLDERS, copied

FORMATS = {each.rubric: each for each in formats()}


@pytest.fixture
def released(tmp_path):
    """The rubrics with instructions of our own in place of the releases'."""
    found, absent = released_rubrics(copied(tmp_path))
    assert {} == absent
    return found


def answers(rubric, number, text):
    """The answers in a text about a call, or the reason why it is refused."""
    call = rubric.calls[number]
    try:
        return parsed(text, call.form, call.outputs)
    except AnswerRefused as refusal:
        return refusal.reason


@pytest.mark.parametrize("name", RELEASED_RUBRICS)
def test_the_answers_of_a_released_model_are_read_exactly_or_refused_with_the_reason(name, released):
    """Fifty and more of each format: cut, swapped, Chinese, outside the range, in words, a part missing."""
    format = FORMATS[name]

    assert 50 <= len(format.good) + sum(map(len, format.damaged.values()))
    assert 20 <= len(format.good)
    for text, expected in format.good:
        assert expected == answers(released[name], format.call, text), text
    for reason, texts in format.damaged.items():
        for text in texts:
            assert Misread(reason) == answers(released[name], format.call, text), text


def test_the_second_call_of_editscore_reads_a_list_of_its_own(released):
    text = '{"reasoning": "x", "score": [21, 4]}'

    assert {"look": "x", "nature": 21, "clean": 4} == answers(released["editscore"], 1, text)


def test_instructions_are_the_text_of_the_file_and_nothing_more(released, tmp_path):
    """With the prompt in the place that the release names; no description of the form is added."""
    for name, text in RELEASED_RUBRICS.items():
        for call, file in zip(released[name].calls, named_in(text), strict=True):
            content = (tmp_path / file).read_text("utf-8")
            placeholder = PLACEHOLDERS[file]
            assert call.text(call.instructions) == (
                content.replace(placeholder, "{prompt}") if placeholder else content
            )


def test_a_rubric_whose_instructions_are_not_there_is_not_served_and_the_error_says_where_they_go(tmp_path):
    found, absent = released_rubrics(tmp_path / "gone")
    options = options_with({}, False, "", absent)

    assert {} == found
    assert [*RELEASED_RUBRICS] == [*absent]
    path = re.escape(str(tmp_path / "gone" / "videoscore2.txt"))
    with pytest.raises(
        ValueError, match=f"videoscore2 is not served: its instructions are expected in {path}"
    ):
        options(rubric="videoscore2")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"Grade it.", r"unifiedreward\.txt has no \{prompt\} for the prompt of an item"),
        (b"\xff{prompt}", r"unifiedreward\.txt is not UTF-8"),
        (b"{prompt}" * 9000, r"unifiedreward\.txt has more than 65536 bytes"),
        (
            b"{prompt} {caption}",
            r"the rubric unifiedreward: calls.0.instructions: \{caption\} is no placeholder",
        ),
    ],
)
def test_instructions_that_cannot_be_used_are_refused_with_their_file(tmp_path, content, said):
    (tmp_path / "unifiedreward.txt").write_bytes(content)

    with pytest.raises(ValueError, match=said):
        released_rubrics(tmp_path)


def test_a_rubric_of_an_operator_may_read_its_instructions_from_a_file(tmp_path):
    """In the folder of prompts; without it the rubric is refused, and a request's own rubric has no files."""
    text = """
score = "grade"
[[calls]]
prompt_file = "mine.txt"
[calls.outputs.grade]
range = [1, 5]
"""
    (tmp_path / "own.toml").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"the rubric own: its instructions are expected in .*mine\.txt"):
        rubrics_in([tmp_path], {}, tmp_path)
    (tmp_path / "mine.txt").write_text("\ufeffGrade it.\r\n{prompt}\r\n", "utf-8", newline="")

    assert "Grade it.\n{prompt}" == rubrics_in([tmp_path], {}, tmp_path)["own"].calls[0].instructions
    with pytest.raises(ValueError, match=r"calls\.0: prompt_file: is read of rubrics in the service's"):
        rubric_of("own", text)
    with pytest.raises(ValueError, match="prompt_file: takes the place of instructions"):
        rubric_of("own", text.replace("prompt_file", 'instructions = "x"\nprompt_file'), tmp_path)
    with pytest.raises(ValueError, match=r"own: prompt_slot: must be a text$"):
        rubric_of("own", text.replace("prompt_file", "prompt_slot = 5\nprompt_file"), tmp_path)
    for name in ("../mine.txt", "/etc/passwd", "mine"):
        with pytest.raises(ValueError, match="prompt_file: a name must match"):
            rubric_of("own", text.replace("mine.txt", name), tmp_path)


def test_other_instructions_are_another_rubric(released, tmp_path):
    """The digest, which keys of cached answers have, covers the text of the file."""
    (tmp_path / "unifiedreward.txt").write_text("Grade {prompt}.", "utf-8")

    assert released["unifiedreward"].digest != released_rubrics(tmp_path)[0]["unifiedreward"].digest


def test_the_doctor_names_the_hash_of_each_file_of_instructions_and_where_others_are_expected(tmp_path):
    (tmp_path / "videoscore2.txt").write_bytes(b"$t2v_prompt\n")
    (tmp_path / "editscore_edit.txt").write_bytes(b"\xff")

    own = [tmp_path / "own.toml", tmp_path / "broken.toml"]
    own[0].write_text(
        '[[calls]]\nprompt_file = "videoscore2.txt"\n[[calls]]\nprompt_file = "mine.txt"', "utf-8"
    )
    own[1].write_text("calls = [[", "utf-8")

    broken, read, absent = map(str, check_prompts(tmp_path, own))

    digest = hashlib.sha256(b"$t2v_prompt\n").hexdigest()
    assert f"✓ prompt videoscore2.txt: {tmp_path}/videoscore2.txt was read, sha256:{digest}" == read
    assert f"✗ prompt editscore_edit.txt: {tmp_path}/editscore_edit.txt is not UTF-8: copy it again" in broken
    assert absent.startswith(f"- prompts: none of these, which rubrics expect: {tmp_path}/")
    assert absent.endswith(f", {tmp_path}/mine.txt")
    assert absent.count(".txt") == len(PLACEHOLDERS) - 2 + 1


def test_a_file_of_instructions_that_is_missing_says_where_it_is_expected(tmp_path):
    with pytest.raises(PromptMissing) as missing:
        PromptFile.of("a.txt", tmp_path)

    assert tmp_path / "a.txt" == missing.value.path


def test_any_lead_of_the_shares_of_two_pictures_is_a_win(released):
    """UnifiedReward 2.0 writes shares near a half: a lead of 0.004 in all three is a win, none is a tie."""
    rubric = released["unifiedreward_2_pair"]

    def score(*leads):
        numbers = {}
        for name, lead in zip(("alignment", "coherence", "style"), leads, strict=True):
            numbers |= {name: 0.5 + lead / 2, f"other_{name}": 0.5 - lead / 2}
        return rubric.formula.value(numbers)

    assert 1 == score(0.002, 0.001, 0.001)
    assert -1 == score(-0.1, 0.05, 0.01)
    assert 0 == score(0, 0, 0)


def test_each_released_rubric_names_its_paper_and_no_sentence_of_the_release(released):
    """The texts of the releases are their authors'; a rubric has the forms of the answers alone."""
    for name, text in RELEASED_RUBRICS.items():
        table = tomllib.loads(text)
        assert re.search(r"et al\. 2025, arXiv \d{4}\.\d{5}$", table["paper"])
        assert not any({"instructions", "closing"} & call.keys() for call in table["calls"])
        assert released[name].compares is (name.endswith("_pair") or name.endswith("_think"))
