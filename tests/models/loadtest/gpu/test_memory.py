"""The search of `make gpu` for the largest batch, with a card that holds so many rows."""

from types import SimpleNamespace

import pytest
import torch

from loadtest.gpu.memory import largest, limit, recovers


def card(rows, broken_after=False):
    """Return a function that runs a batch, or raises what CUDA raises."""
    state = {"broken": False}

    def run(given):
        if given > rows or state["broken"]:
            state["broken"] = broken_after
            raise torch.OutOfMemoryError

    return run


@pytest.mark.parametrize(
    ("rows", "found"), [(100, (64, True)), (128, (128, True)), (15, (0, True)), (10_000, (1024, False))]
)
def test_the_batch_is_doubled_until_it_does_not_fit(rows, found):
    """From 16 to 1,024."""
    assert found == largest(card(rows), 16, 1024)


def test_another_error_is_not_taken_for_a_lack_of_memory():
    def run(rows):
        raise RuntimeError("another")

    with pytest.raises(RuntimeError, match="another"):
        largest(run, 1, 2)


@pytest.mark.parametrize("broken", [False, True])
def test_a_recovery_is_an_ordinary_batch_after_one_that_did_not_fit(broken):
    """A card that has no memory even for that has not recovered."""
    assert recovers(card(100, broken_after=broken), 128, 16) is not broken


@pytest.mark.parametrize(
    ("rows", "most", "note"),
    [(40, 0, "64 pairs, then 1"), (100, 64, "128 pairs, then 1"), (10_000, 1024, "left out: 1024 pairs fit")],
)
def test_recoveries_are_counted_after_batches_that_do_not_fit(rows, most, note):
    """Also where the first batch of the search does not fit, and not where the last one fits."""
    bench = SimpleNamespace(geometry=SimpleNamespace(pairs=(1, 64), most_rows=1024))
    found, recovery = limit(bench, "XL", lambda: SimpleNamespace(run=card(rows)))

    assert (most, note) == (found.value, recovery.note)
    assert not recovery.red
