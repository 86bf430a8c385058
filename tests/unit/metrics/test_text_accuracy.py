"""Text read in an image, judged word by word with the gaps between the words."""

from itertools import product

import pytest

from service.metrics.common.texts import WordAccuracy, about_gaps, about_words, word_accuracy, words_of


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
        for read in (words for n in range(5) for words in product("abx", repeat=n)):
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
