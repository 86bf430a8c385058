"""Gecko's reliable prompts, from tables that can be counted."""

import pytest

from scoregate.errors import ColumnError
from scoregate.evaluation.arrays import Scale
from scoregate.evaluation.templates import reliable

# Variances under generator a: 0, 1, 4; under b: 4, 0, 0.25.
RATINGS = {
    ("p", "a"): (3, 3),
    ("q", "a"): (2, 4),
    ("r", "a"): (1, 5),
    ("p", "b"): (1, 5),
    ("q", "b"): (2, 2),
    ("r", "b"): (2, 3),
}
ROWS = [(prompt, model, each) for (prompt, model), pair in RATINGS.items() for each in pair]


def test_a_prompt_stays_where_every_generator_keeps_it():
    """Its disagreement is below half of the generator's largest."""
    found = reliable(*zip(*ROWS, strict=True))

    assert ["q"] == found.ids
    assert (3, 1, 0.5, 0) == (found.prompts, found.reliable, found.threshold, found.missing)
    assert [("a", 3, 4.0, 2), ("b", 3, 4.0, 2)] == [
        (part.model, part.prompts, part.max_disagreement, part.reliable) for part in found.parts
    ]


def test_half_of_the_largest_is_not_below_it():
    """Though its variance is no exact float."""
    rows = [("p", "a", each) for each in (0.1, 0.3, 0.2)] + [("q", "a", each) for each in (0.1, 0.5, 0.3)]

    assert ["p"] == reliable(*zip(*rows, strict=True), threshold=0.26).ids
    assert [] == reliable(*zip(*rows, strict=True), threshold=0.25).ids


def test_templates_are_parts_of_their_own():
    """Here the second one drops what the first one keeps."""
    template = ["likert"] * len(ROWS) + ["words"] * 4
    more = [("q", "a", 1), ("q", "a", 3), ("p", "a", 2), ("p", "a", 2)]
    found = reliable(*zip(*ROWS, *more, strict=True), template=template)

    assert [("a", "likert"), ("a", "words"), ("b", "likert")] == [
        (part.model, part.template) for part in found.parts
    ]
    assert [] == found.ids
    assert 1 == found.missing  # r was not rated by words


def test_the_variance_of_words_is_averaged():
    """Of each word over its raters, and not of all words together."""
    rows = [("p", "a", 0), ("p", "a", 0), ("p", "a", 1), ("p", "a", 1), ("q", "a", 0), ("q", "a", 1)]
    found = reliable(*zip(*rows, strict=True), unit=list("wwvvww"))

    assert ["p"] == found.ids
    assert 0.25 == found.parts[0].max_disagreement


def test_a_prompt_that_all_are_unsure_about_is_not_reliable():
    """Its ratings are off the scale: they are counted, and the prompt is missing."""
    found = reliable(*zip(*ROWS, ("s", "a", 6), ("s", "b", 6), strict=True), scale=Scale(1, 5))

    assert (4, 1, 2) == (found.prompts, found.missing, found.out_of_scale)
    assert "s" not in found.ids


@pytest.mark.parametrize(
    ("rows", "said"), [([("p", "a", 1), ("q", "a", 2)], "a: nothing has two"), ([("p", "a", 1)] * 2, "all 2")]
)
def test_without_disagreement_there_is_nothing_to_select(rows, said):
    """One rating each, or ratings that are all the same."""
    with pytest.raises(ColumnError, match=said):
        reliable(*zip(*rows, strict=True))
