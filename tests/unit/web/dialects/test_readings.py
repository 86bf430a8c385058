"""Questions of decisions: their texts, and what is read of the probabilities of their options."""

import pytest

from service.core.errors import Invalid
from service.web.dialects.questions import MAX_TEXT, Reading, TypedQuestion, as_text


@pytest.mark.parametrize(
    ("mass", "expected"),
    [
        (1.0, True),
        (0.6, True),  # the first option has 0.48, all other tokens 0.4
        (0.5, False),  # 0.4, and another token may have 0.5
        (0.0, False),
    ],
)
def test_an_option_is_called_the_likeliest_only_if_no_other_token_can_be(mass, expected):
    """The probabilities of single other tokens are not known."""
    assert expected is Reading([0.8, 0.2], mass).is_likeliest


def test_the_length_of_a_question_is_checked_before_its_characters():
    with pytest.raises(Invalid, match="more than 16000"):
        TypedQuestion("/questions/0", "yes_no", "\0" * (MAX_TEXT + 1))


def test_json_in_the_place_of_a_text_is_written_no_further_than_a_question_goes():
    """A list of a million numbers costs what 16,000 characters cost."""
    assert '{"a":[1,"é"]}' == as_text({"a": [1, "é"]})
    assert MAX_TEXT < len(as_text([0] * 1_000_000)) < MAX_TEXT + 10


def test_json_that_is_nested_too_deep_is_the_callers_fault():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(Invalid, match="too deep"):
        as_text(deep)
