"""
Groups of samples whose rewards are compared: all of a group have a score, or all have its error.

So every rank of a trainer continues, or every rank fails the step.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from service.core.concurrency.promise import Promise
from service.core.errors import Conflict, DeadlineExceeded, Invalid, ScoregateError
from service.metrics.common.contract import Score
from service.scoring.report import most_telling

MOST = 1024  # finished groups that are kept for retries

Outcome = Score | ScoregateError


@dataclass
class Group:
    """
    The samples of one request.

    Attributes:
        digests: what was sent, by sample.
        outcomes: by sample, as they come.
        waiting: responses that are not sent yet.
        answered: when the last response was sent, in seconds.
    """

    expected: int
    digests: dict[str, bytes] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    waiting: int = 0
    answered: float = 0.0
    complete: Promise[None] = field(default_factory=Promise)

    def add(self, sample: str, outcome: Outcome) -> None:
        """Set the outcome of a sample; the last one completes the group."""
        self.outcomes.setdefault(sample, outcome)
        if len(self.outcomes) == self.expected and not self.complete.done():
            self.complete.set_result(None)

    @property
    def error(self) -> ScoregateError | None:
        """The most important error of a sample."""
        errors = [each for each in self.outcomes.values() if isinstance(each, ScoregateError)]
        return most_telling(errors) if errors else None

    async def score(self, sample: str, timeout_s: float) -> Score:
        """
        Return the score of *sample* when the group is complete.

        Raises:
            DeadlineExceeded: samples are missing after *timeout_s*.
            ScoregateError: a sample of the group has no score.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self.complete
        except TimeoutError as exc:
            have = f"group: {len(self.outcomes)} of {self.expected} samples are scored"
            raise DeadlineExceeded(stage=have) from exc
        if self.error:
            raise self.error
        score = self.outcomes[sample]
        assert isinstance(score, Score)
        return score


class Groups:
    """
    The groups in progress, and the last finished ones, by their ids and those of their requests.

    A trainer that starts again from a checkpoint uses the ids again, with other videos.

    Args:
        kept_s: for how long finished groups are kept for retries.
        most: of the finished ones.
        clock: in seconds.
    """

    def __init__(self, kept_s: float, most: int = MOST, clock: Callable[[], float] = monotonic) -> None:
        self._kept_s, self._most, self._clock = kept_s, most, clock
        self._groups: dict[tuple[str, str], Group] = {}

    @contextmanager
    def joined(self, request: str, group: str, expected: int, sample: str, digest: bytes) -> Iterator[Group]:
        """
        Add a sample to its group, which ends if it fails or if all callers leave.

        Raises:
            Invalid: others of the group expect another number.
            Conflict: the group is complete, or has other content for the sample.
        """
        self._forget(self._clock() - self._kept_s)
        key = (group, request)
        found = self._groups.setdefault(key, Group(expected))
        if found.expected != expected:
            raise Invalid(f"expected_group_size: {expected}, and {found.expected} for others of the group")
        if sample not in found.digests and len(found.digests) == expected:
            raise Conflict(f"group {group!r} has its {expected} samples without {sample!r}")
        if found.digests.setdefault(sample, digest) != digest:
            raise Conflict(f"sample_id {sample!r} was sent with other content")
        found.waiting += 1
        try:
            yield found
        finally:
            found.waiting -= 1
            found.answered = self._clock()
            if sample not in found.outcomes:
                found.digests.pop(sample, None)
            self._end(key, found)

    def _forget(self, before: float) -> None:
        """Drop finished groups whose last response was sent *before*."""
        for key, group in [*self._groups.items()]:
            if not group.waiting and group.answered < before:
                del self._groups[key]

    def _end(self, key: tuple[str, str], group: Group) -> None:
        """Drop a group that failed or was left, and the oldest if too many are kept."""
        failed = group.complete.done() and group.error
        unused = not (group.waiting or group.complete.done())
        if (failed or unused) and self._groups.get(key) is group:
            del self._groups[key]
        finished = [name for name, each in self._groups.items() if not each.waiting]
        for name in finished[: max(0, len(finished) - self._most)]:
            del self._groups[name]
