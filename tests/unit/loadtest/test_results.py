"""What came of requests, and the figures made of it; what a perfect server would reach."""

import pytest

from loadtest.measures.queueing import largest
from loadtest.results import drain_ratios, goodput, latencies, lateness, percentile, throughput
from loadtest.simulate import Shape, perfect
from tests.unit.loadtest.conftest import outcome, refusal


def test_a_percentile_is_a_value_that_was_measured():
    """Nearest rank: of 1 to 100, p99 is 99."""
    values = list(range(100, 0, -1))

    assert [1, 50, 99, 100] == [percentile(values, share) for share in (0.0, 0.5, 0.99, 1.0)]
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_latency_counts_from_when_a_request_was_due():
    """A generator that is late does not make the server look faster."""
    late = outcome(due=1.0, sent=1.5, done=2.0)

    assert 1.0 == late.latency_s
    assert 0.5 == lateness([late])


def test_a_request_without_all_its_scores_was_never_answered():
    """A failure is worse than the slowest answer, not better."""
    assert [1.0, float("inf")] == latencies([outcome(), outcome(scored=0)])


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        (outcome(), "ok"),
        (outcome(scored=0), "error"),
        (outcome(status=429, scored=0), "refused"),
        (outcome(status=503, scored=0), "refused"),
        (outcome(status=504, scored=0, failure="deadline_exceeded"), "timeout"),
        (outcome(status=0, scored=0, failure="timeout"), "timeout"),
        (outcome(status=0, scored=0, failure="ConnectionResetError"), "error"),
        (outcome(status=500, scored=0, failure="model_fault"), "error"),
    ],
)
def test_refusals_timeouts_and_errors_are_counted_apart(what, kind):
    """Each outcome is of one kind."""
    assert kind == what.kind


def test_goodput_counts_what_was_answered_in_time():
    """Over the time in which requests came, not the time the last one took."""
    run = [outcome(0, 0.5), outcome(0, 3.0), outcome(1, 1.2), outcome(1, 1.1, scored=0)]

    assert 1.0 == goodput(run, within_s=1.0, seconds=2.0)
    assert 1.0 == throughput(run)


def test_a_refusal_is_held_to_the_drain_of_what_was_accepted_before_it():
    """It met requests that were all answered 4 s later; what was accepted after it is not its queue."""
    run = [outcome(0, 3), outcome(1, 6), refusal(2, says=5.0), outcome(3, 30)]

    assert [1.25] == drain_ratios(run, least_s=3)


def test_short_predictions_and_other_failures_are_not_held_to_the_drain():
    """Below the bound, without a prediction, or no refusal at all."""
    failed = outcome(2, 2, status=500, scored=0, retry_after_s=5.0)

    assert [] == drain_ratios([outcome(0, 9), refusal(2, says=1.0), refusal(2, says=None), failed], least_s=3)


def test_a_perfect_server_batches_what_waits():
    """The first goes alone; the two that come meanwhile share a batch; the batch's limit holds."""
    shape = Shape(fixed_ms=100, per_call_ms=10, max_items=2)

    assert perfect([0.0, 0.01, 0.02, 0.03], shape) == pytest.approx([0.11, 0.22, 0.21, 0.31])


def test_the_largest_share_that_passes_is_found_by_bisection():
    """As if all had been tried."""
    shares = (0.5, 0.6, 0.7, 0.8)
    asked = []

    assert 0.7 == largest(shares, lambda share: asked.append(share) or share <= 0.7)
    assert (0.0, 0.8) == (largest(shares, lambda share: False), largest(shares, lambda share: True))
    assert [0.6, 0.7, 0.8] == asked
