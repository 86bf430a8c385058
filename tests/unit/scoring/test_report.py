"""What becomes of a request whose scores or sets failed."""

import pytest

from service.core.errors import (
    CallRefused,
    DeadlineExceeded,
    Draining,
    LaneFull,
    ModelFault,
    NoQuestions,
    Overloaded,
    QuestionLLMFailed,
    UpstreamFailed,
)
from service.metrics.common.contract import Score
from service.observability.instruments import Instruments
from service.scoring.items import UnopenedItem
from service.scoring.report import ItemReport, Report, most_telling

SCORE = Score(0.5, {})


def report(*outcomes):
    """One item for each; its outcomes by metric."""
    items = [ItemReport(UnopenedItem("", [], place=f"/items/{n}"), each) for n, each in enumerate(outcomes)]
    return Report(items)


@pytest.mark.parametrize(
    ("telling", "others"),
    [
        (LaneFull(retry_after_s=9.0), [NoQuestions(), LaneFull(retry_after_s=2.0), DeadlineExceeded()]),
        (Draining(), [QuestionLLMFailed(), Draining()]),
        (DeadlineExceeded(), [QuestionLLMFailed(), CallRefused(), DeadlineExceeded()]),
        (QuestionLLMFailed(), [NoQuestions(), QuestionLLMFailed(), CallRefused()]),
        (UpstreamFailed(), [CallRefused(), ModelFault()]),
        (NoQuestions(), [CallRefused()]),
    ],
)
def test_what_passes_by_itself_is_told_first_and_the_callers_own_faults_last(telling, others):
    """Refusals with the longest wait, a deadline, faults of ours, and then what the caller must change."""
    mixed = [telling, *others] if isinstance(telling, (UpstreamFailed, NoQuestions)) else [*others, telling]
    told = most_telling(mixed)

    assert (telling.code, telling.retry_after_s) == (told.code, told.retry_after_s)


def test_of_errors_that_tell_as_much_the_first_is_told():
    """So that the same request gets the same answer."""
    first, second = ModelFault("one"), QuestionLLMFailed("other")

    assert most_telling([NoQuestions(), first, second]) is first


def test_a_request_fails_as_a_whole_only_where_nothing_was_scored():
    """Else a refusal is its metric's error."""
    full, bad = LaneFull(retry_after_s=3.0), ModelFault()

    assert report({"a": full}, {"a": SCORE}).failure() is None
    assert report({"a": full, "b": bad}).failure() is None
    assert report({"a": Overloaded()}, {"a": full}).failure() is full
    assert isinstance(report({"a": full}, {"a": DeadlineExceeded()}).failure(), DeadlineExceeded)
    assert report().failure() is None


def test_a_refused_metric_is_counted_once_and_a_refused_request_by_whoever_answers_it():
    """Two items with a refused metric are one rejection."""
    instruments = Instruments([], {"a": (0, 1), "b": (0, 1)})

    def rejections():
        return [
            instruments.registry.get_sample_value("scoregate_rejections_total", {"reason": reason})
            for reason in ("lane_full", "overloaded")
        ]

    report({"a": LaneFull()}, {"a": LaneFull()}).count(instruments)
    assert [0, 0] == rejections()
    report({"a": LaneFull(), "b": SCORE}, {"a": LaneFull(), "b": SCORE}).count(instruments)
    assert [1, 0] == rejections()
    report({"a": LaneFull(), "b": Overloaded()}, {"a": SCORE, "b": Overloaded()}).count(instruments)
    assert [2, 1] == rejections()
