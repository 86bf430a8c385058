"""Which detected objects count, by the options of GenEval's released code."""

import pytest

from service.metrics.objects.detections import DetectedObject, Limits, by_class, overlap

BOX = (0.0, 0.0, 9.0, 9.0)  # 10 x 10 pixels with the last ones
HALF = (0.0, 0.0, 9.0, 4.0)
APART = (20.0, 20.0, 29.0, 29.0)


def dogs(*boxes):
    """Dogs with falling confidence."""
    return [DetectedObject("dog", 0.99 - n / 100, box) for n, box in enumerate(boxes)]


def counted(found, tag="two_object", **limits):
    return [each.box for each in by_class(found, tag, Limits(**limits)).get("dog", ())]


def test_the_overlap_counts_the_last_pixel_of_each_box():
    """As the released code does."""
    assert 0.5 == overlap(BOX, HALF) == overlap(HALF, BOX)
    assert 0.0 == overlap(BOX, APART)
    assert 1.0 == overlap(BOX, BOX)


@pytest.mark.parametrize(
    "other", [(20.0, 0.0, 29.0, 9.0), (0.0, 20.0, 9.0, 29.0), (10.0, 0.0, 19.0, 9.0), (3.0, 3.0, 1.0, 1.0)]
)
def test_boxes_that_overlap_in_one_direction_only_do_not_overlap(other):
    """Nor do boxes side by side, and none overlaps with an empty one."""
    assert 0.0 == overlap(BOX, other) == overlap(other, BOX)


def test_the_overlap_is_the_intersection_over_the_union():
    """Here 7 by 14 pixels of 10 by 19 and 9 by 24; two empty boxes have none."""
    first, second, empty = (1.0, 2.0, 10.0, 20.0), (4.0, 7.0, 12.0, 30.0), (5.0, 5.0, 1.0, 1.0)

    assert 98 / (190 + 216 - 98) == pytest.approx(overlap(first, second)) == overlap(second, first)
    assert 0.0 == overlap(empty, empty)


def test_from_the_greatest_overlap_on_only_the_surer_object_counts():
    """By default both do."""
    found = dogs(HALF, BOX, APART)

    assert [HALF, BOX, APART] == counted(found)
    assert [HALF, BOX, APART] == counted(found, max_overlap=0.51)
    assert [HALF, APART] == counted(found, max_overlap=0.5)


def test_an_object_that_does_not_count_hides_no_other():
    """The third overlaps with the second alone."""
    lower = (0.0, 5.0, 9.0, 9.0)

    assert [HALF, lower] == counted(dogs(HALF, BOX, lower), max_overlap=0.5)


def test_overlapping_objects_take_the_places_of_others():
    """The released code limits the number before it compares boxes."""
    assert [HALF] == counted(dogs(HALF, BOX, APART), max_overlap=0.5, max_objects=2)


@pytest.mark.parametrize(
    ("tag", "limits", "expected"),
    [
        ("two_object", {}, 3),
        ("two_object", {"threshold": 0.98}, 1),
        ("two_object", {"counting_threshold": 0.98}, 3),
        ("counting", {"counting_threshold": 0.98}, 1),
        ("two_object", {"max_objects": 2}, 2),
    ],
)
def test_the_thresholds_and_the_number_are_options(tag, limits, expected):
    """That of counting for counting alone; an object must exceed it."""
    assert expected == len(counted(dogs(BOX, HALF, APART), tag, **limits))


def test_the_detector_gets_the_lower_threshold():
    """So that all tasks share its call."""
    assert (0.3, 0.2) == (Limits().least, Limits(counting_threshold=0.2).least)
