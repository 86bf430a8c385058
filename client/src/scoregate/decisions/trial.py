"""A new policy on the scores of logged decisions: how many it would change."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, NamedTuple

from scoregate.calibration import Rate
from scoregate.decisions.export import labels_of
from scoregate.decisions.logs import Selection, opened, rows_of
from scoregate.decisions.policies import NamedPolicy, PolicyFile, policy_of
from scoregate.errors import InputError
from scoregate.expression import ANY
from scoregate.policy import UNREADABLE, Policy, Verdict

Majority = Literal["good", "bad", "split", "none"]  # split: as many good as bad labels
LABELS: Sequence[Majority] = ("good", "bad", "split", "none")


@dataclass(frozen=True)
class TrialSettings(Selection, PolicyFile):
    """The new policy, and the rows that it is tried on."""


class DecisionChange(NamedTuple):
    """The logged decision and the new one, which may be the same, with the label of the row."""

    old: str
    new: Verdict
    label: Majority


@dataclass
class Trial:
    """
    What a policy would decide about the rows of one policy id.

    Attributes:
        rows: their number.
        changes: the number of rows of each change.
        lacking: rows that are open, by metric without a score on which they depend.
        open: the number of rows that are open for lack of a score.
        group: rows that were decided by others of their group, which a log does not have; they are left out.
        audits: audited rows, by the state of their audit; `unreadable` for pictures that no audit can
            read, and whose decision needs no score.
        audit_changed, audit_open: those of complete audits and of unreadable pictures whose decision changes,
            and those that are open.
    """

    rows: int = 0
    changes: Counter[DecisionChange] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    open: int = 0
    group: int = 0
    audits: Counter[str] = field(default_factory=Counter)
    audit_changed: int = 0
    audit_open: int = 0

    @property
    def decided(self) -> int:
        """The number of rows that the new policy decides."""
        return self.changes.total()

    @property
    def changed(self) -> int:
        """The number of rows whose decision changes."""
        return sum(count for each, count in self.changes.items() if each.old != each.new)

    @property
    def audited(self) -> int:
        """The number of rows that stand for all."""
        return self.audits["complete"] + self.audits["unreadable"]

    @property
    def of_all(self) -> Rate | None:
        """
        The share of all decisions that change, from audits, which were drawn before the decision.

        None without them, or if one is open: those that are decided without a metric are no fair sample.
        """
        return Rate(self.audit_changed, self.audited) if self.audited and not self.audit_open else None

    def as_json(self) -> dict[str, Any]:
        """Return the trial as JSON."""
        return {
            "rows": self.rows,
            "decided": self.decided,
            "changed": self.changed,
            "decisions": [
                {"from": each.old, "to": each.new, "label": each.label, "rows": count}
                for each, count in sorted(self.changes.items())
            ],
            "open": {"rows": self.open, "lacking": dict(sorted(self.lacking.items()))},
            "group": self.group,
            "audits": dict(sorted(self.audits.items())) | {"open": self.audit_open},
            "changed_of_all": self.of_all and self.of_all.as_json(),
        }

    def add(self, row: Mapping[str, Any], label: Majority, policy: Policy) -> None:
        """Decide about a row, and count it."""
        self.rows += 1
        if row["reason"] == "group":
            self.group += 1
            return
        audit = row["audit"]
        if audit and not UNREADABLE.isdisjoint(row["errors"].values()):
            audit = "unreadable"
        if audit:
            self.audits[audit] += 1
        stands = audit in ("complete", "unreadable")
        new = decided(policy, row["scores"], row["errors"])
        if isinstance(new, str):
            self.changes[DecisionChange(row["decision"], new, label)] += 1
            self.audit_changed += stands and new != row["decision"]
        else:
            self.open += 1
            self.lacking.update(new)
            self.audit_open += stands


def tried(settings: TrialSettings) -> tuple[NamedPolicy, dict[str, Trial]]:
    """
    Return the new policy, and what it would decide about the rows of each policy's id.

    The scores are those of the log: with the options and models of the policies that computed them.

    Raises:
        InputError: the policy or a log is not valid, or no row is selected.
    """
    policy = policy_of(settings)
    trials: dict[str, Trial] = {}
    with opened(settings.logs) as logs:
        for log in logs:
            log.execute("BEGIN")  # all queries see the same rows
        shares = {id: each["good"] for id, each in labels_of(logs).items()}
        for log in logs:
            for row in rows_of(log, *settings.where(), ("scores", "errors")):
                trial = trials.setdefault(row["policy"], Trial())
                trial.add(row, label_of(shares.get(row["decision_id"])), policy.rules)
    if not trials:
        raise InputError("no row is selected")
    return policy, dict(sorted(trials.items()))


def label_of(share: float | None) -> Majority:
    """Return the label of a row of whose labels this *share* is good; None without labels."""
    if share is None:
        return "none"
    return "good" if share > 0.5 else "bad" if share < 0.5 else "split"


def decided(policy: Policy, scores: Mapping[str, float], errors: Mapping[str, str]) -> Verdict | list[str]:
    """
    Return the decision, or the metrics without a score on which it depends.

    A metric that failed would fail under the new policy, too; its score of a later audit does not count.

    Args:
        errors: the codes of the errors of metrics.
    """
    if not UNREADABLE.isdisjoint(errors.values()):
        return policy.unreadable
    known = {name: ANY if name in errors else scores.get(name, ANY) for name in policy.deciding}
    if len(policy.possible(known)) > 1:
        needed = dict.fromkeys(chain.from_iterable(policy.open(known)))
        if lacking := [name for name in needed if name not in errors]:
            return lacking
    return policy.decide(known, errors).decision
