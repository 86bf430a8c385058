"""Decisions of a service's policies: their request, their parts, and the fallback in place of an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scoregate.errors import BadImageError, InvalidError, ScoregateError, WarnedError, error_of
from scoregate.items import Files, Item, given
from scoregate.policy import STRICTEST_FIRST, Verdict
from scoregate.results import Entries, Notice, is_number, wrong

TEMPORARY = (408, 425, 429)  # statuses of requests that are valid


@dataclass(frozen=True)
class Decision:
    """
    The decision about one item; of several policies the first decides, and `policies` has all.

    Attributes:
        index: the item's index in the request.
        policy: the policy's id, such as `show@3f2a90c1d4e5`; of a fallback its name.
        decision: `accept`, `review` or `reject`.
        because: the scores from which it follows, or what decided in their place; `fallback: …` without an
            answer of the service.
        errors: by metric, also of metrics that were not needed.
        skipped: metrics of the policy that were not started.
        decision_id: as in the service's log; empty for a fallback.
        policies: the decision of each policy by name, if the request named several.
        details: the parts of each score, by metric, with `explain`.
        warnings: of the service, such as a truncated prompt.
    """

    index: int
    id: str | None
    policy: str
    decision: Verdict
    because: str
    scores: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, ScoregateError] = field(default_factory=dict)
    skipped: Sequence[str] = ()
    decision_id: str = ""
    policies: Mapping[str, Decision] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[Notice] = ()

    @property
    def accepted(self) -> bool:
        """Whether users should see the picture."""
        return self.decision == "accept"


class Decisions(Entries[Decision]):
    """The decisions of one request, in the order of its items."""

    @property
    def accepted(self) -> Sequence[Decision]:
        """Those of accepted items."""
        return [each for each in self if each.accepted]


@dataclass(frozen=True)
class DecideBody:
    """
    The body of `POST /decide`: the items of one request, with the policies.

    Attributes:
        policy: one name, or several that decide from the same scores.
        broken: why an item's pictures cannot be encoded, by its index.
    """

    items: Sequence[Item]
    policy: str | Sequence[str]
    keep: int = 1
    explain: bool = False
    broken: dict[int, BadImageError] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The policies."""
        return [self.policy] if isinstance(self.policy, str) else [*self.policy]

    def request(self, files: Files) -> dict[str, Any]:
        """Return the body of `POST /decide`, whose pictures are in *files*."""
        return given(
            policy=self.policy if isinstance(self.policy, str) else [*self.policy],
            items=[self._wire(files, index, item) for index, item in enumerate(self.items)],
            keep=None if self.keep == 1 else self.keep,
            explain=self.explain or None,
        )

    def _wire(self, files: Files, index: int, item: Item) -> dict[str, Any]:
        """Return an item; pictures that cannot be encoded are sent empty, and the policy decides."""
        own = {} if item.group is None else {"group": item.group}
        try:
            return files.item(item, f"/items/{index}") | own
        except BadImageError as exc:
            self.broken[index] = exc
            empty = files.empty()
            plain = replace(item, image=b"\0", references=(), source=None)
            related = {"references": [empty] * bool(item.references), "source": item.source and empty}
            held = {name: value for name, value in related.items() if value}
            return Files().item(plain, "") | {"image": empty} | held | own

    def decisions(self, raw: Mapping[str, Any]) -> Decisions:
        """Parse the response.  Raises `ScoregateError`, `LookupError`, `TypeError` or `ValueError`."""
        ids = raw["policy"] if isinstance(raw["policy"], list) else [raw["policy"]]
        if len(raw["decisions"]) != len(self.items) or len(ids) != len(self.names):
            raise wrong(f"it has not a decision for each of {len(self.items)} items", raw)
        made = Decisions([], raw, range(len(self.items)))
        policies = dict(zip(self.names, map(str, ids), strict=True))
        every = [self._decision(index, raw, policies, made.warnings) for index in range(len(self.items))]
        return Decisions(every, raw, range(len(self.items)))

    def _decision(
        self, index: int, raw: Mapping[str, Any], policies: Mapping[str, str], notices: Sequence[Notice]
    ) -> Decision:
        entry, request_id = raw["decisions"][index], str(raw.get("request_id", ""))
        scores = entry.get("scores") or {}
        if entry["index"] != index or not all(map(is_number, scores.values())):
            raise wrong(f"item {index} is not in its place, or has a score that is no number", raw)
        errors = {
            name: self.broken.get(index) or error_of(error, request_id=request_id)
            for name, error in (entry.get("errors") or {}).items()
        }
        shared: dict[str, Any] = {
            "index": index,
            "id": self.items[index].id,
            "scores": {name: float(score) for name, score in scores.items()},
            "errors": errors,
            "details": dict(entry.get("details") or {}),
            "warnings": tuple(notice.of_item() for notice in notices if notice.about(index)),
        }
        if isinstance(self.policy, str):
            return decision_of(entry, policies[self.policy], shared, raw)
        each = {name: decision_of(entry["policies"][name], policies[name], shared, raw) for name in policies}
        return replace(each[self.names[0]], policies=each)

    def fallback(self, decision: Verdict, why: str) -> Decisions:
        """
        Return the same *decision* about all items, without an answer of the service.

        An item that cannot be encoded is rejected, and so are those of a group beyond `keep`.
        """
        taken = Counter[str]()
        every = [
            self._instead(index, decision, f"fallback: {why}", taken) for index in range(len(self.items))
        ]
        return Decisions(every, {}, range(len(self.items)))

    def _instead(self, index: int, decision: Verdict, because: str, taken: Counter[str]) -> Decision:
        item = self.items[index]
        if error := self.broken.get(index):
            decision, because = "reject", f"fallback: unreadable: {error.code}: {error.detail}"
        elif item.group is not None and decision == "accept":
            taken[item.group] += 1
            if taken[item.group] > self.keep:
                decision, because = "reject", f"fallback: group: {self.keep} accepted before it"
        each = {name: Decision(index, item.id, name, decision, because) for name in self.names}
        first = each[self.names[0]]
        return first if isinstance(self.policy, str) else replace(first, policies=each)


def decision_of(
    entry: Mapping[str, Any], policy: str, shared: Mapping[str, Any], raw: Mapping[str, Any]
) -> Decision:
    """Parse the decision of one policy; *shared* are the fields that all policies share."""
    if (decision := entry["decision"]) not in STRICTEST_FIRST:
        raise wrong(f"item {shared['index']} has the decision {decision!r}", raw)
    return Decision(
        policy=policy,
        decision=decision,
        because=str(entry["because"]),
        skipped=tuple(entry.get("skipped") or ()),
        decision_id=str(entry["decision_id"]),
        **shared,
    )


def check_fallback(decision: str) -> None:
    """Raise `ValueError` for anything but a decision."""
    if decision not in STRICTEST_FIRST:
        raise ValueError(f"fallback is one of {', '.join(STRICTEST_FIRST)}, not {decision!r}")


def is_fault(error: ScoregateError) -> bool:
    """Return True for an error of the service or the network, and False for one of the request."""
    if isinstance(error, (InvalidError, WarnedError)):
        return False
    if error.status == 404 and error.code == ScoregateError.code:  # a gateway's page, without a route to it
        return True
    return not 400 <= error.status < 500 or error.status in TEMPORARY
