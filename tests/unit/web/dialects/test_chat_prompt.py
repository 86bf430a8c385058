"""Which texts of a judge's client are prompts."""

import pytest

from service.core.errors import Invalid
from service.core.fields import MAX_PROMPT
from service.web.dialects.chat_judge import prompt


@pytest.mark.parametrize(
    "text",
    [
        "Rate this image from 0 to 10. Respond in JSON with the field score.",
        "On a scale of 1 to 5, how well is 'a cat' shown?",
        "You are a strict image judge.\nPrompt: a cat",
        "Does this image show a dog?",
        "Please evaluate how well the picture fits: a cat",
        "Prompt: a cat. Output only a number.",
        "a cat\nReturn JSON.",
        'a cat {"score": 0}',
        "Give 'a cat' a score from 1 to 10.",
        "a cat:\n \n  rate this image",
        "the picture of a cat in the photo, is it good?",
    ],
)
def test_instructions_to_a_judge_are_no_prompt(text):
    """The error names what is read."""
    with pytest.raises(Invalid, match=r"a prompt alone.*logprobs.*rubric"):
        prompt(text)


@pytest.mark.parametrize(
    "text",
    [
        "a red circle left of a blue square",
        "a judge in a courtroom, looking at the picture of a cat",
        "a screen full of JSON, and a scoreboard",
        "numbers from 1 to 10 on a wall",
        "What does the fox say?",
        "You are my sunshine, as a poster",
        "a teacher who writes a score on a blackboard. Only chalk.",
        'a sign that says "Rate us"',
    ],
)
def test_what_a_picture_may_show_is_a_prompt(text):
    """Unchanged, also with words that judges use."""
    assert text == prompt(text)


def test_the_length_of_a_prompt_is_checked_before_its_words():
    """The pattern of instructions sees no more characters than a prompt may have."""
    with pytest.raises(Invalid, match="more than 4000 characters"):
        prompt("Rate this image. " + "a" * MAX_PROMPT)
