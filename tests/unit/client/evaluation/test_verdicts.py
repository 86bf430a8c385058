"""Preference, AUROC and Winoground, counted by hand."""

from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scoregate.errors import ColumnError
from scoregate.evaluation.agreement import auroc
from scoregate.evaluation.pair_accuracy import preference
from scoregate.evaluation.winoground import winoground


def test_a_metric_is_right_where_it_prefers_what_people_prefer():
    """Equal scores are wrong; pairs without a preference and single pictures are counted."""
    found = preference(
        [0.9, 0.1, 0.2, 0.8, 0.5, 0.5, 0.3, 0.4, 0.7],
        [1, 0, 1, 0, 1, 0, 1, 1, 1],
        ["a", "a", "b", "b", "c", "c", "d", "d", "e"],
    )

    assert (3, 1, 1, 1) == (found.pairs, found.correct, found.wrong, found.ties_metric)
    assert (1 / 3, 1 / 2) == (found.accuracy, found.accuracy_ties_half)
    assert (1, 5, 1) == (found.ties_human, found.groups, found.single)


def test_the_accuracy_is_of_all_pairs_or_the_mean_over_groups():
    """A group without a preference is in no mean."""
    columns = [0.1, 0.2, 0.3, 0.9, 0.1, 0.5], [1, 2, 3, 1, 2, 2], ["a", "a", "a", "b", "b", "c"]
    of_pairs, of_groups = preference(*columns), preference(*columns, average="groups")

    assert (3 / 4, "pairs") == (of_pairs.accuracy, of_pairs.average)
    assert (1 / 2, "groups") == (pytest.approx(of_groups.accuracy), of_groups.average)
    tied = preference([1, 1, 2], [1, 2, 2], ["a", "a", "b"], average="groups")
    assert (0, 0.5) == (tied.accuracy, tied.accuracy_ties_half)


@pytest.mark.parametrize(
    ("metric", "human", "group", "argument"),
    [
        ([1, 1], [0, 1], ["a", "a"], "metric"),
        ([1, 2], [1, 1], ["a", "a"], "human"),
        ([1, 2], [0, 1], ["a", "b"], "group"),
    ],
)
def test_without_a_preference_there_is_no_accuracy(metric, human, group, argument):
    """Constant columns, or no pair."""
    with pytest.raises(ColumnError) as caught:
        preference(metric, human, group)
    assert argument == caught.value.argument


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=2, max_size=30))
@settings(deadline=None)
def test_the_area_is_the_share_of_pairs_with_the_right_picture_above(rows):
    """A tie counts half."""
    good, bad = ([score for score, label in rows if label == kind] for kind in (1, 0))
    assume(good and bad and len({*good, *bad}) > 1)
    found = auroc(*zip(*rows, strict=True))
    pairs = [(a > b) + (a == b) / 2 for a, b in product(good, bad)]

    assert sum(pairs) / len(pairs) == pytest.approx(found.auroc)
    assert sum(a == b for a, b in product(good, bad)) == found.tied


@pytest.mark.parametrize(
    ("metric", "label", "argument"),
    [([1, 2], [1, 1], "label"), ([1, 2], [0, 2], "label"), ([1, 1], [0, 1], "metric")],
)
def test_labels_are_of_both_kinds(metric, label, argument):
    """And 0 or 1."""
    with pytest.raises(ColumnError) as caught:
        auroc(metric, label)
    assert argument == caught.value.argument


PLACES = [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")]  # caption, image


@pytest.mark.parametrize(
    ("scores", "text", "image"),
    [
        ((9, 1, 1, 9), 1, 1),
        ((5, 6, 1, 9), 1, 0),  # caption 0 fits picture 1 better
        ((5, 1, 6, 9), 0, 1),  # picture 0 fits caption 1 better
        ((9, 1, 9, 9), 0, 0),  # a tie is wrong
        ((1, 9, 9, 1), 0, 0),
    ],
)
def test_text_and_image_score_of_one_item(scores, text, image):
    """The text score asks which caption a picture has, the image score which picture a caption has."""
    found = winoground(scores, ["x"] * 4, *zip(*PLACES, strict=True))

    assert (text, image, text * image) == (found.text, found.image, found.group)


def test_an_item_without_all_four_scores_is_counted():
    """It is in no share."""
    found = winoground(
        [9, 1, 1, 9, 5], list("xxxxy"), [*(c for c, _ in PLACES), "0"], [*(i for _, i in PLACES), "0"]
    )

    assert (1, 1) == (found.items, found.incomplete)


@pytest.mark.parametrize(
    ("captions", "images", "argument"),
    [
        ("0011", "0101", None),
        ("0001", "0001", "item"),
        ("0012", "0101", "caption"),
        ("0011", "010x", "image"),
    ],
)
def test_captions_and_images_are_0_or_1_once_each(captions, images, argument):
    """A second score of the same combination is a duplicate."""
    if argument is None:
        assert 1 == winoground([9, 1, 1, 9], ["x"] * 4, list(captions), list(images)).items
        return
    with pytest.raises(ColumnError) as caught:
        winoground([9, 1, 1, 9], ["x"] * 4, list(captions), list(images))
    assert argument == caught.value.argument
