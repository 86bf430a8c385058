"""What is left of a key's quota: a bucket that holds a minute's pairs and fills steadily."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.errors import LargerThanQuota, QuotaExceeded
from service.web.keys import Key, Quotas


def key(quota, name="k"):
    return Key(name, b"", quota=quota)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_the_wait_is_exact():
    """Who comes a moment before is refused, who comes then is not."""
    clock = Clock()
    quotas = Quotas(clock)
    quotas.charge(key(60), 60)
    with pytest.raises(QuotaExceeded) as refused:
        quotas.charge(key(60), 7)

    assert 7.0 == refused.value.retry_after_s
    clock.now = 6.9
    with pytest.raises(QuotaExceeded):
        quotas.charge(key(60), 7)
    clock.now = 7.0
    quotas.charge(key(60), 7)


def test_more_than_the_bucket_holds_is_refused_without_a_wait():
    """It would never fit; nothing is taken for it."""
    quotas = Quotas(Clock())
    with pytest.raises(LargerThanQuota) as refused:
        quotas.charge(key(60), 61)

    assert refused.value.retry_after_s is None
    quotas.charge(key(60), 60)


def test_keys_do_not_share_a_bucket_and_some_need_none():
    """A key without a quota is never refused."""
    quotas = Quotas(Clock())
    for name in "ab":
        quotas.charge(key(1, name), 1)
    for _ in range(3):
        quotas.charge(key(None), 1000)


def test_a_changed_quota_counts_from_now_on():
    """The smaller bucket holds no more than it can."""
    clock = Clock()
    quotas = Quotas(clock)
    quotas.charge(key(600), 1)
    quotas.charge(key(6), 6)

    with pytest.raises(QuotaExceeded):
        quotas.charge(key(6), 1)


@pytest.mark.slow
@settings(derandomize=True, max_examples=300, database=None)
@given(st.integers(1, 50), st.lists(st.tuples(st.floats(0, 100), st.integers(1, 60))))
def test_no_minute_lets_more_through_than_a_bucket_and_what_it_fills_with(quota, requests):
    """Whatever is asked when; and a refused request that waits as told is let in."""
    clock, taken = Clock(), 0
    quotas = Quotas(clock)
    for pause, pairs in requests:
        clock.now += pause
        try:
            quotas.charge(key(quota), pairs)
        except LargerThanQuota:
            assert pairs > quota
            continue
        except QuotaExceeded as error:
            clock.now += error.retry_after_s or 0
            quotas.charge(key(quota), pairs)
        taken += pairs
        assert taken <= quota + clock.now * quota / 60 + 1e-3
