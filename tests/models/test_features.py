"""Features kept on the device: each image is seen once, and no more memory is held than allowed."""

import torch

from models.families.batches import FeatureCache

ROW = 6 * 4 * 4  # bytes of one image's features below


def images(*numbers):
    return {str(n): torch.full((3, 2, 2), float(n)) for n in numbers}


class Eyes:
    """Sees an image as its first number, and remembers how many came at once."""

    def __init__(self):
        self.batches = []

    def __call__(self, pixels):
        self.batches.append(len(pixels))
        return torch.stack(pixels)[:, :1, :1, :1].reshape(-1, 1, 1).expand(-1, 6, 4).contiguous()


def test_an_image_is_seen_once():
    """New ones of a batch are seen together, the others not at all."""
    cache, see = FeatureCache(10 * ROW), Eyes()
    first = cache.of(images(1, 2), see)
    second = cache.of(images(2, 3, 1), see)

    assert [2, 1] == see.batches
    assert [1.0, 2.0] == [float(row[0, 0]) for row in first.values()]
    assert {"1": 1.0, "2": 2.0, "3": 3.0} == {digest: float(row[0, 0]) for digest, row in second.items()}


def test_what_was_used_last_stays_within_the_bytes_allowed():
    """The image that was not asked about for longest leaves first."""
    cache, see = FeatureCache(2 * ROW), Eyes()
    for batch in ((1, 2), (1,), (3,), (1,), (2,)):
        cache.of(images(*batch), see)

    assert [2, 1, 1] == see.batches
    assert 2 * ROW == cache.bytes


def test_a_row_that_is_kept_keeps_nothing_else_of_its_batch():
    cache = FeatureCache(10 * ROW)
    rows = cache.of(images(1, 2, 3), Eyes())

    assert [row.untyped_storage().nbytes() for row in rows.values()] == [ROW] * 3


def test_nothing_is_kept_where_nothing_fits():
    """Off: every batch sees its images."""
    cache, see = FeatureCache(0), Eyes()
    cache.of(images(1), see)
    cache.of(images(1), see)

    assert [1, 1] == see.batches
    assert 0 == cache.bytes
