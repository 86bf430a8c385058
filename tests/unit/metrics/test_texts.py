"""Words of a prompt with the scores of their questions, and text in an image, judged word by word."""

from itertools import product

import pytest

from service.metrics.common.texts import (
    WordAccuracy,
    about_gaps,
    about_words,
    stem,
    word_accuracy,
    words,
    words_of,
)


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


@pytest.mark.parametrize(
    ("read", "right", "wrong_gaps", "accuracy"),
    [
        ("open 24 hours", 3, 0, 1.0),
        ("open 24", 2, 0, 2 / 3),  # a missing word
        ("open 42 hours", 2, 0, 2 / 3),  # a wrong one
        ("open 24 24 hours", 3, 1, 2 / 3),  # one too many, between
        ("we open 24 hours", 3, 1, 2 / 3),  # before
        ("open 24 hours all day long", 3, 1, 2 / 3),  # three in one gap, behind
        ("we open now 24 hours", 3, 2, 1 / 3),
        ("hours 24 open", 1, 0, 1 / 3),  # in another order
        ("", 0, 0, 0.0),
        ("closed until further notice", 0, 1, 0.0),  # never below 0
    ],
)
def test_accuracy_is_right_words_less_wrong_gaps_by_words(read, right, wrong_gaps, accuracy):
    """max(0, right - wrong gaps) / words, as the paper counts annotators' marks."""
    found = word_accuracy(words_of("OPEN 24 HOURS"), words_of(read))

    assert WordAccuracy(right, wrong_gaps, 3) == found
    assert accuracy == pytest.approx(found.accuracy)


def marked(wanted, read):
    """Every way to lay two texts side by side: (right words, wrong gaps)."""
    if not wanted:
        yield 0, int(bool(read))
        return
    for gap in range(len(read) + 1):  # words that fall into the gap before the first wanted word
        rest = read[gap:]
        for beside in {0, min(1, len(rest))}:
            for right, gaps in marked(wanted[1:], rest[beside:]):
                yield right + (rest[:beside] == wanted[:1]), gaps + bool(gap)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_best_of_all_ways_to_lay_them_side_by_side_counts(length):
    """Compared with trying every one of them."""
    for wanted in product("ab", repeat=length):
        for read in (each for n in range(5) for each in product("abx", repeat=n)):
            found = word_accuracy(wanted, read)
            ways = {*marked(wanted, read)}

            assert (found.right, found.wrong_gaps) in ways
            assert found.right - found.wrong_gaps == max(right - gaps for right, gaps in ways)


def test_case_and_punctuation_are_no_part_of_a_word():
    """As a reader would say that the sign is right."""
    assert ["open", "24", "hours", "3–1".replace("–", "-"), "café"] == words_of("“OPEN, 24 hours!” 3-1 Café.")


def test_a_vlm_is_asked_about_each_word_and_each_gap():
    """Three words have four gaps."""
    text = "OPEN 24 HOURS"
    beginning, ending = f'The image should show the text "{text}". ', "Please answer yes or no."

    assert [
        f'{beginning}Is word {n} of it, "{word}", in the image and spelled correctly? {ending}'
        for n, word in enumerate(text.split(), 1)
    ] == about_words(text, text.split())
    assert [
        f"{beginning}Is there other or repeated text {place}? {ending}"
        for place in ('before "OPEN"', 'between "OPEN" and "24"', 'between "24" and "HOURS"', 'after "HOURS"')
    ] == about_gaps(text, text.split())


def test_a_single_word_has_a_gap_before_and_one_after_it():
    places = [question.split("repeated text ")[1].split("?")[0] for question in about_gaps("OPEN", ["OPEN"])]

    assert ['before "OPEN"', 'after "OPEN"'] == places


def test_typography_is_no_difference_between_words():
    """An accent of its own, a typographic apostrophe, full-width letters."""
    assert ["café", "don't", "open"] == words_of("CAFE\u0301 don’t ＯＰＥＮ")
