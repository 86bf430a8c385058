"""Decisions about items: the records that a log gets of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from service.core.policy import Verdict


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """
    One decision of one policy about one item, as a log keeps it.

    Attributes:
        decision_id: unique, in the response too.
        time: when it was made, in seconds since 1970.
        request_id: of its request.
        caller_id: the caller's `id` of the item, if it has one.
        key: the name of the caller's API key, if keys are configured.
        policy: the policy's id, such as `show@3f2a90c1d4e5`.
        reason: `expression`, an error's code, `unreadable` or `group`.
        because: the reason as a sentence for people.
        scores: by metric.
        errors: the code of each failed metric's error.
        skipped: metrics of the policy that were not started.
        models: the label (`id@revision`) of each model that the policy may use, by configured name.
        picture: the SHA-256 of its encoded bytes, in hexadecimal; of several, that of their digests in order.
            Empty if its bytes were never read.
        prompt: empty if the item has none.
        milliseconds: from the request's first byte to the decision.
    """

    decision_id: str
    time: float
    request_id: str
    caller_id: str | None
    key: str | None
    policy: str
    decision: Verdict
    reason: str
    because: str
    scores: Mapping[str, float]
    errors: Mapping[str, str]
    skipped: Sequence[str]
    models: Mapping[str, str]
    picture: str
    prompt: str
    milliseconds: float


class DecisionSink(Protocol):
    """What `Service.decisions` is, if decisions are logged."""

    def record(self, records: Sequence[DecisionRecord]) -> None:
        """Take the records of one answered request; return at once, and raise nothing."""
