"""The results of a group, as they come back to the gateway."""

from collections import defaultdict
from dataclasses import replace
from time import monotonic

from service.serving.batcher.batch_span import add_batch_span
from service.serving.batcher.scheduler import RunningBatch
from service.serving.job import Job, Result
from service.serving.ray.contract import Answer
from service.serving.ray.replica_queue import ReplicaQueue


def returned(
    model: str, replica: ReplicaQueue, batch: RunningBatch[None], answer: Answer, now: float
) -> list[Result]:
    """
    Return the result of each call of a group, with its batch's span, and the way there and back as waiting.

    The replica's queue learns from the replica's own batches: a group's time includes the wait for the one
    before it.  The clocks of two machines differ, so a batch's span ends when its answer arrives.
    """
    served: dict[float, list[Job]] = defaultdict(list)  # by duration, which no two batches share
    for call, result in zip(batch.calls, answer.results, strict=True):
        if result.ran_s:
            served[result.ran_s].append(call)
    spans, ended, took_s = dict[float, str](), monotonic(), now - batch.began
    for ran_s, calls in served.items():
        replica.queue.finished(sum(call.prepared.cost for call in calls), ran_s)
        spans[ran_s] = add_batch_span(calls, model, replica.described.device, ended - ran_s, ended)
    return [
        replace(
            each,
            waited_s=max(each.waited_s, took_s - each.ran_s - each.decoded_s - each.prepared_s),
            batch=spans.get(each.ran_s, ""),
        )
        for each in answer.results
    ]
