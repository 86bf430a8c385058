"""Which questions of a batch run together."""

from random import Random

import pytest

from models.families.batches import MAX_PADDING_RATIO, Size, alike, padded


def test_ordinary_questions_form_one_group():
    """Thirteen lengths with a picture of 576 patches, and choices beside likelihoods."""
    sizes = [Size(609 + 10 * number, answers, 3) for number in range(13) for answers in (1, 4)]

    assert [[*range(26)]] == [sorted(group) for group in alike(sizes)]


def test_a_long_question_does_not_make_the_others_long():
    """One of 2,624 tokens among those of 640; one with a long answer; one with many choices."""
    ordinary = [Size(640, 1, 2)] * 20

    for large in (Size(2624, 1, 2), Size(640, 1, 2048), Size(640, 26, 200)):
        assert [[20], [*range(20)]] == alike([*ordinary, large])


@pytest.mark.parametrize("seed", range(20))
def test_every_question_is_in_one_group_with_little_padding(seed):
    """Whatever the sizes; a group of one has no company to be padded for."""
    random = Random(seed)
    sizes = [
        Size(random.randint(600, 2624), random.choice((1, 1, 1, 4, 26)), random.choice((2, 2, 30, 900)))
        for _ in range(random.randint(1, 48))
    ]
    found = alike(sizes)

    assert [*range(len(sizes))] == sorted(number for group in found for number in group)
    for group in found:
        assert len(group) == 1 or padded([sizes[number] for number in group]) <= MAX_PADDING_RATIO


def test_padding_counts_as_the_forward_pass_pads():
    """Each of a group gets the longest question, the most answers and the longest of them."""
    assert padded([Size(100, 1, 50), Size(50, 2, 10)]) == 2 * (100 + 2 * 50) / (150 + 70)
    assert MAX_PADDING_RATIO > 1
