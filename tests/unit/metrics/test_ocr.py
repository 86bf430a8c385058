"""The OCR reward: which text is wanted, what is read, and the distance between both."""

import random
import unicodedata

import pytest
from rapidfuzz.distance import Levenshtein

from service.core.errors import NoText
from service.metrics.ocr import (
    distances_to_parts,
    outputs_of,
    plain,
    quoted,
    text_distance,
    text_score,
    unbalanced,
    window_distance,
)


@pytest.mark.parametrize(
    ("prompt", "texts"),
    [
        ('a sign "OPEN"', ["OPEN"]),
        ("a sign “Don’t stop” in red", ["Don’t stop"]),
        ("ein Schild „Guten Tag“", ["Guten Tag"]),
        ("un panneau « Bonjour »", ["Bonjour"]),
        ('"One" above “two”, and "three', ["One", "two"]),
        ('a "" before "one"', ["one"]),
        ('"said “so” aloud"', ["said “so” aloud"]),
        ("a sign ＂OPEN＂", ["OPEN"]),
    ],
)
def test_quoted_texts_are_found_in_their_order(prompt, texts):
    """Straight, typographic and full-width quotes; one that is left open quotes nothing."""
    assert texts == quoted(prompt)


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


@pytest.mark.parametrize(
    ("wanted", "read"),
    [
        (unicodedata.normalize("NFD", "CAFÉ OLÉ"), "CAFÉ OLÉ"),
        ("Don’t Panic", "Don't Panic"),
        ("ＯＰＥＮ　２４", "OPEN 24"),
        ("ｶﾞｽ", "ガス"),
        ("say “hi”", 'say "hi"'),
        ("WAIT… A—B", "WAIT... A-B"),
    ],
)
def test_typography_is_no_difference_between_texts(wanted, read):
    """In either of both: composed or not, the width of characters, apostrophes, quotes, dashes, ellipses."""
    assert plain(wanted) == plain(read)


def test_what_is_another_character_stays_another():
    """An accent, a superscript, a fraction."""
    assert 3 == len({plain("cafe"), plain("café"), plain("cafê")})
    assert plain("x²") != plain("x2")
    assert plain("½") != plain("1/2")


@pytest.mark.parametrize(
    ("wanted", "read", "distance"),
    [
        (["world", "hello"], "HELLO WORLD", 0),
        (["world", "hello"], "HELLO lunch WORLD", 0),
        (["world", "hello"], "HELLO W0RLD", 1),
        (["world", "hello"], "HELL0 W0RLD", 2),
        (["open", "open"], "OPEN", 4),
        (["open", "openhere"], "open here OPEN", 0),
        (["world", "hello"], "", 10),
        (["ab", "cd"], "A CD B", 0),
        (["pen", "open"], "LLOPEN", 3),
        (["shop", "late"], "RTT RNEH", 8),
    ],
)
def test_several_texts_are_compared_one_by_one_whatever_their_order(wanted, read, distance):
    """Each part of what was read counts for one of them; what lies around a found one becomes no text."""
    assert distance == text_distance(wanted, read)


@pytest.mark.parametrize(
    ("prompt", "warned"),
    [
        ('a 12" tall sign that says "OPEN"', True),
        ('a sign "OPEN" beside “EXIT', True),
        ('a sign "OPEN" and ＂EXIT＂ and “so” and „so“ and «so»', False),
        ('a sign "OPEN" and ""', False),
    ],
)
def test_a_quote_without_its_other_half_is_a_warning(prompt, warned):
    """With the text that is wanted because of it; pairs of any kind are none."""
    notes = unbalanced(prompt, ["OPEN", "EXIT"])

    assert ["quotes_unbalanced"] * warned == [note.code for note in notes]
    assert all(note.text.endswith("the wanted text is: OPEN, EXIT") for note in notes)


def nearest_part(text, read):
    """The least distance to any part of *read*, by trying all."""
    ends = range(len(read) + 1)
    return min(Levenshtein.distance(text, read[start:end]) for end in ends for start in range(end + 1))


def test_the_distance_to_a_window_is_the_least_to_any_part_of_the_text():
    """For texts of few letters, also beyond the basic plane; a text is at most its length away."""
    chance = random.Random(1)
    for _ in range(200):
        text, read = ("".join(chance.choices("ab𝒞", k=chance.randrange(low, 9))) for low in (1, 0))

        assert nearest_part(text, read) == window_distance([text], read)
        assert nearest_part(text, read) == distances_to_parts(text, read).min()


def test_two_texts_have_a_window_each():
    """The one part that is like both is taken once: two signs are not one."""
    assert 1 == window_distance(["open"], "xxopemxx")
    assert 1 + 4 == window_distance(["open", "open"], "opem")
    assert 1 + 1 == window_distance(["open", "open"], "opem...opex")


def test_the_longest_text_has_the_first_choice_of_a_window():
    """Not the shortest, nor the last of the alphabet."""
    assert 2 + 2 == window_distance(["no", "top"], "ohp")
    assert 2 + 2 == window_distance(["pen", "top"], "p attra")


def test_the_window_leaves_a_gradient_where_other_text_makes_the_released_score_zero():
    """More of a sign is better, whatever else the picture says."""
    other = "0123 456 789 " * 9
    signs = ("zzzz", "ozzz", "opzz", "opez", "open")

    windows = [outputs_of(["open"], f"{other} {sign}")["window"] for sign in signs]

    assert {0.0} == {text_score(text_distance(["open"], f"{other} {sign}"), 4) for sign in signs[:-1]}
    assert windows == sorted(set(windows))
    assert 1 == windows[-1]


@pytest.mark.parametrize(
    ("wanted", "read", "exact", "substring", "window"),
    [
        (["open"], "OPEN", 1, 1, 1),
        (["open"], "We are open", 0, 1, 1),
        (["open"], "opem", 0, 0, 0.75),
        (["open", "late"], "late open", 1, 1, 1),
        (["open", "late"], "open", 0, 0.5, 0.5),
        (["no", "no"], "no", 0, 0.5, 0.5),
        (["no", "no"], "no no", 1, 1, 1),
        (["no"], "no no", 0, 1, 1),
        (["no", "no"], "no no no", 0, 1, 1),
        (["open"], "", 0, 0, 0),
        (["营业中"], "店 营业 中", 0, 1, 1),
    ],
)
def test_the_outputs_say_how_much_of_the_text_was_read(wanted, read, exact, substring, window):
    assert {"exact": exact, "substring": substring, "window": window} == outputs_of(wanted, read)
