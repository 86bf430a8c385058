"""The OCR reward: which text is wanted, what is read, and the distance between both."""

import random

import pytest
from rapidfuzz.distance import Levenshtein

from service.core.errors import NoText
from service.metrics.ocr import plain, quoted


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ('a sign "OPEN"', "OPEN"),
        ("a sign “Don’t stop” in red", "Don’t stop"),
        ("ein Schild „Guten Tag“", "Guten Tag"),
        ("un panneau « Bonjour »", "Bonjour"),
        ('"One" above “two”, and "three', "One two"),
        ('a "" before "one"', "one"),
        ('"said “so” aloud"', "said “so” aloud"),
    ],
)
def test_quoted_texts_are_joined_in_their_order(prompt, text):
    """Straight and typographic quotes; one that is left open quotes nothing."""
    assert text == quoted(prompt)


def test_a_prompt_without_quotes_quotes_nothing():
    """And says so."""
    with pytest.raises(
        NoText, match=r"^the prompt has no text in double quotes, and options\.ocr\.text is not set$"
    ):
        quoted("it's the dog's sign")


def by_table(first, second):
    """Levenshtein's distance by its recurrence, a row at a time."""
    row = [*range(len(second) + 1)]
    for count, a in enumerate(first, 1):
        before, row = row, [count]
        for place, b in enumerate(second):
            row.append(min(before[place] + (a != b), before[place + 1] + 1, row[place] + 1))
    return row[-1]


def test_the_distance_is_that_of_the_recurrence():
    """For texts of few letters, which have many ways between them, and for empty ones."""
    chance = random.Random(0)
    for _ in range(500):
        first, second = ("".join(chance.choices("abc", k=chance.randrange(14))) for _ in range(2))
        assert (
            by_table(first, second)
            == Levenshtein.distance(first, second)
            == Levenshtein.distance(second, first)
        )


def test_the_distance_of_long_texts_is_exact():
    """As long as a prompt may be."""
    assert 2000 == Levenshtein.distance("ab" * 2000, "a" * 4000)
    assert 4000 == Levenshtein.distance("x" * 4000, "")


def test_texts_are_compared_in_lower_case_without_white_space():
    """Not in upper case, which has no ß of its own."""
    assert "straße1" == plain(" Straße\n1")
