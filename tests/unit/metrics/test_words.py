"""Every word of a prompt has the mean score of the questions about it."""

import pytest

from service.metrics.common.texts import stem, words


def scores(prompt, *scored):
    return [(word["word"], word["score"]) for word in words(prompt, scored)]


def test_a_word_has_the_mean_of_the_questions_that_cover_it():
    """One that no question is about has none, and words stay in the order of the prompt."""
    found = scores("a glowing red circle", ("red", 1.0), ("circle", 1.0), ("red circle", 0.4))

    assert [("a", None), ("glowing", None), ("red", 0.7), ("circle", 0.7)] == found


@pytest.mark.parametrize(
    ("prompt", "phrase"),
    [("three Circles", "circle"), ("two boxes", "BOX"), ("a bus stop", "bus"), ("glass", "glass")],
)
def test_case_and_plural_make_no_difference(prompt, phrase):
    """The word is covered."""
    assert 1.0 in [score for _, score in scores(prompt, (phrase, 1.0))]


@pytest.mark.parametrize("phrase", ["ring", "cat", "", "?"])
def test_a_part_of_a_word_covers_nothing(phrase):
    """ "ring" is not "string"."""
    assert [("a", None), ("string", None), ("concatenated", None)] == scores(
        "a string, concatenated", (phrase, 1.0)
    )


def test_a_word_that_stands_there_twice_is_listed_twice():
    """With the same score, since questions do not say which of both they mean."""
    assert [("red", 0.5), ("red", 0.5)] == scores("red red", ("red", 0.5))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *[("Buses", "bus"), ("boxes", "box"), ("waltzes", "waltz"), ("beaches", "beach"), ("dishes", "dish")],
        *[("uses", "use"), ("dogs", "dog"), ("gas", "gas"), ("grass", "grass"), ("STRASSE", "strasse")],
    ],
)
def test_a_stem_has_neither_case_nor_plural(word, expected):
    """Short words and those that end with "ss" are no plurals."""
    assert expected == stem(word)


def test_accents_and_apostrophes_make_no_difference():
    """Composed or not, typographic or not; the word stays as the prompt has it."""
    assert [("cafe\u0301", 1.0), ("dog’s", 0.5)] == scores("cafe\u0301 dog’s", ("Café", 1.0), ("dog's", 0.5))
