"""From a model's outcome to its callers: the last step of a call, in which all backends are alike."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from models.core.contract import ModelError
from models.core.outcomes import CallResult
from service.core.errors import ModelFault
from service.observability.instruments import Instruments
from service.serving.batcher.queue import Queue, TokenTally
from service.serving.job import Job, JobResult


def answer(
    name: str,
    queue: Queue,
    calls: Sequence[Job],
    results: Sequence[JobResult],
    instruments: Instruments,
    gap_s: float = 0.0,
) -> None:
    """
    Check the results of *calls* of the model *name*, observe their times, count and set them.

    A call that is in a batch of this process, or was sent to a model server or a replica, ends here once,
    also after a fault or without callers.  One that waits, also for a retry, ends elsewhere, and is not
    counted.  The cost model learns from calls that succeeded: how soon one fails is no measure of the work.
    The cache stores the results that are set here.

    Args:
        queue: in which they waited.
        results: those of a batch have its seconds as `ran_s`, which no two batches share.
        gap_s: see `CostModel.observe`.
    """
    accepted, costs = list[JobResult](), defaultdict[float, TokenTally](TokenTally)
    for call, result in zip(calls, results, strict=True):
        outcome = checked(name, result.outcome)
        accepted.append(result if outcome is result.outcome else replace(result, outcome=outcome))
        if not isinstance(outcome, Exception):
            costs[result.ran_s].add(call.prepared)
    for ran_s, cost in costs.items():
        queue.finished(cost.total, ran_s, gap_s)
    for call, result in zip(calls, accepted, strict=True):
        gone = call.result.done()
        call.finish(result)
        instruments.count_call(name, call.lane, result.outcome, result.waited_s, gone=gone)


def checked(name: str, outcome: Any) -> Any:
    """
    Return the *outcome* of the model *name*, or a `ModelFault` if it is a `ModelError` or not finite.

    It is `CallRefused` where a call is refused: `prepare` raises it, or `answer` of a served model.  `score`
    gets accepted calls only, so its error in place of a result is a fault of the model.
    """
    match outcome:
        case ModelError():
            return ModelFault(str(outcome))
        case CallResult() if not outcome.is_finite():
            return ModelFault(f"the model {name} returned a number that is not finite")
    return outcome
