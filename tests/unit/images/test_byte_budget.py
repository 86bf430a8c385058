"""How many bytes all requests hold together."""

import pytest

from service.core.errors import MemoryFull
from service.core.settings import sections
from service.core.settings.sections import Server
from service.images.byte_budget import SMALL, ByteBudget, Share

LARGE = 16 * SMALL


def test_what_does_not_fit_is_refused_and_changes_nothing():
    """429, with a time to wait."""
    budget = ByteBudget(2 * LARGE)
    with Share(budget) as first, Share(budget) as second:
        first.grow(LARGE)
        with pytest.raises(MemoryFull) as refused:
            second.grow(LARGE)

        assert (LARGE, 0, LARGE) == (first.size, second.size, budget.held)
        assert 429 == refused.value.status
        assert refused.value.retry_after_s


def test_a_share_goes_with_its_holder():
    """Whatever was given back before."""
    budget = ByteBudget(2 * LARGE)
    with Share(budget) as share:
        share.grow(LARGE)
        share.shrink(SMALL)

        assert LARGE - SMALL == budget.held
    assert 0 == budget.held


def test_large_ones_leave_room_for_small_ones():
    """Whoever floods the service with large bodies does not keep a caller with one small picture out."""
    budget = ByteBudget(2 * LARGE)
    with Share(budget) as large, Share(budget) as small:
        with pytest.raises(MemoryFull):
            large.grow(2 * LARGE)
        large.grow(2 * LARGE * 7 // 8)
        with pytest.raises(MemoryFull):
            large.grow(1)
        small.grow(SMALL)
        with pytest.raises(MemoryFull):
            small.grow(1)


def test_two_of_the_largest_bodies_fit_whatever_is_set():
    """Or a body within the limit could never be sent."""
    assert 128 * 2**20 == Server(requests_mb=1, body_limit_mb=64).request_bytes


@pytest.mark.parametrize(("limit", "expected"), [("1073741824\n", 256), ("max\n", None)])
def test_the_default_follows_the_memory_of_the_container(tmp_path, monkeypatch, limit, expected):
    """Of a container with 1 GiB it is 256 MiB; without a limit that of the machine counts."""
    file = tmp_path / "memory.max"
    file.write_text(limit)
    monkeypatch.setattr(sections, "MEMORY_LIMITS", [])
    machine = Server().requests_mb
    monkeypatch.setattr(sections, "MEMORY_LIMITS", [file, tmp_path / "missing"])

    assert min(expected or machine, machine) == Server().requests_mb
