"""The policies of the settings: parsed, and checked against the metrics that are served."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from models.core.contract import ModelInfo
from service.core.expression import (
    Condition,
    Formula,
    Interval,
    Logic,
    NameTerm,
    NoValueError,
    Relation,
    Truth,
    names_in,
    nodes,
    truth,
)
from service.core.fields import first_fault
from service.core.policy import Policy
from service.core.settings import SettingsError
from service.core.settings.scoring import PolicySettings
from service.metrics.common.contract import Metric, MetricOptions
from service.metrics.common.registry import Assignment

RISING_SIGNS = {">": True, ">=": True, "<": False, "<=": False}  # whether larger left sides satisfy a sign
DIGEST_DIGITS = 12  # digits of the digest in a policy's id

E = TypeVar("E", Condition, Formula)


@dataclass(frozen=True, slots=True)
class ServedPolicy:
    """
    A policy of the settings.

    Attributes:
        options: of each of its metrics.
        ranges: the least and the largest score of each metric under these options.
        warnings: what is allowed and probably a mistake.
    """

    name: str
    rules: Policy
    timeout_ms: int
    options: Mapping[str, MetricOptions]
    ranges: Mapping[str, Interval]
    warnings: tuple[str, ...] = ()
    _digest: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hash everything that decides, but for the models."""
        content = [
            *self.expressions.items(),
            *((name, given.model_dump(mode="json")) for name, given in sorted(self.options.items())),
        ]
        object.__setattr__(self, "_digest", hashlib.sha256(json.dumps(content).encode()))

    @property
    def expressions(self) -> dict[str, str]:
        """Its expressions and decisions, by setting."""
        rules = self.rules
        found = {"accept": rules.accept.text}
        if rules.review:
            found["review"] = rules.review.text
        if rules.rank_by:
            found["rank_by"] = rules.rank_by.text
        return {**found, "without_score": rules.without_score, "unreadable": rules.unreadable}

    def id(self, models: Mapping[str, ModelInfo]) -> str:
        """Return its id, `NAME@DIGEST`, where its metrics use these *models*, by configured name."""
        digest = self._digest.copy()
        for name, info in sorted(models.items()):
            digest.update(json.dumps([name, info.identity]).encode())
        return f"{self.name}@{digest.hexdigest()[:DIGEST_DIGITS]}"


def served_policies(
    known: Mapping[str, Metric], assigned: Assignment, tables: Mapping[str, PolicySettings]
) -> dict[str, ServedPolicy]:
    """
    Return the policies of the settings, by name.

    Args:
        known: every metric.
        assigned: the model of each role of each metric.

    Raises:
        SettingsError: an expression cannot be parsed, names a metric that is unknown or has no model, or has
            a comparison that can never be true; or options are wrong.
    """
    return {name: served_policy(name, known, assigned, table) for name, table in tables.items()}


def served_policy(
    name: str, known: Mapping[str, Metric], assigned: Assignment, table: PolicySettings
) -> ServedPolicy:
    """Return one policy.  Raises `SettingsError`."""
    place = f"policies.{name}"
    accept = parsed(f"{place}.accept", Condition, table.accept, known, assigned)
    review = rank_by = None
    if table.review is not None:
        review = parsed(f"{place}.review", Condition, table.review, known, assigned)
    if table.rank_by is not None:
        rank_by = parsed(f"{place}.rank_by", Formula, table.rank_by, known, assigned)
    rules = Policy(accept, review, table.without_score, table.unreadable, rank_by)
    if not rules.deciding:
        raise SettingsError(f"{place}.accept: names no metric")
    for metric in table.options:
        if metric not in rules.metrics and metric not in {name.partition(".")[0] for name in rules.metrics}:
            raise SettingsError(f"{place}.options.{metric}: no expression of the policy has this metric")
    options = {
        metric: checked(f"{place}.options.{metric}", known[metric], given_for(metric, table))
        for metric in rules.metrics
    }
    ranges = {metric: Interval(*known[metric].range_of(options[metric])) for metric in rules.metrics}
    for setting, condition in zip(("accept", "review"), rules.conditions, strict=False):
        check_possible(f"{place}.{setting}", condition, ranges)
    if rank_by:
        check_rank(f"{place}.rank_by", rank_by, ranges)
    warnings = [
        f"{place}.{setting}: {said}"
        for setting, condition in zip(("accept", "review"), rules.conditions, strict=False)
        for said in turned(condition.tree, known, wanted=True)
    ]
    return ServedPolicy(name, rules, table.timeout_ms, options, ranges, tuple(warnings))


def given_for(metric: str, table: PolicySettings) -> Mapping[str, Any]:
    """Return the options of a metric in the settings; an output's are by default those of its metric."""
    whole = metric.partition(".")[0]
    return table.options.get(metric) or table.options.get(whole) or {}


def parsed(place: str, kind: type[E], text: str, known: Mapping[str, Metric], assigned: Assignment) -> E:
    """Return the expression of a setting, whose metrics all have their models.  Raises `SettingsError`."""
    try:
        found = kind.of(text, known)
    except ValueError as exc:
        raise SettingsError(f"{place}: {exc}") from exc
    for each in names_in(found.tree):
        metric = known[each.name]
        parts = metric.asks(metric.options())
        lacking = {role for part in parts for role in known[part].roles if (part, role) not in assigned}
        if lacking:
            roles = ", ".join(sorted(lacking))
            raise SettingsError(
                f"{place}: column {each.column}: {each.name} has no model for its roles: {roles}"
            )
    return found


def checked(place: str, metric: Metric, given: Mapping[str, Any]) -> MetricOptions:
    """Return the options of a metric.  Raises `SettingsError`."""
    try:
        return metric.options.model_validate(given)
    except ValidationError as exc:
        raise SettingsError(first_fault(exc, place)) from exc


def check_possible(place: str, condition: Condition, ranges: Mapping[str, Interval]) -> None:
    """Raise `SettingsError` for a comparison that no scores within the metrics' *ranges* make true."""
    for node in nodes(condition.tree):
        if isinstance(node, Relation) and truth(node, ranges) is False:
            raise SettingsError(
                f"{place}: column {node.column}: this comparison is never true: {bounds(node, ranges)}"
            )


def check_rank(place: str, formula: Formula, ranges: Mapping[str, Interval]) -> None:
    """Raise `SettingsError` if a formula may be too large for a number."""
    try:
        formula.range(ranges)
    except NoValueError as exc:
        raise SettingsError(f"{place}: {exc}") from exc


def bounds(node: Relation, ranges: Mapping[str, Interval]) -> str:
    """Return the ranges of the metrics of a comparison, in words."""
    names = dict.fromkeys(each.name for each in names_in(node))
    said = [f"{name} is {ranges[name].low:g} to {ranges[name].high:g}" for name in names]
    return ", ".join(said) or "it has no metric"


def turned(node: Truth, known: Mapping[str, Metric], *, wanted: bool) -> Iterator[str]:
    """
    Yield a warning for each metric that is compared with a number the wrong way round.

    Args:
        wanted: whether the policy is better satisfied if *node* holds; False below `not`.
    """
    if isinstance(node, Logic):
        for part in node.parts:
            yield from turned(part, known, wanted=wanted is not (node.word == "not"))
        return
    left, right = node.parts
    rising = RISING_SIGNS.get(node.sign)
    for side, other, up in ((left, right, rising), (right, left, not rising)):
        if rising is None or not isinstance(side, NameTerm) or names_in(other):
            continue
        lower = known[side.name].lower_is_better
        if lower is (up is wanted):
            better = "lower" if lower else "higher"
            yield f"column {node.column}: {side.name} is better the {better} it is; this is the reverse"


def together(policies: Iterable[ServedPolicy]) -> dict[str, MetricOptions]:
    """
    Return the options of all metrics of *policies*, which are decided from the same scores.

    Raises:
        ValueError: two of them have a metric with different options.
    """
    options: dict[str, MetricOptions] = {}
    for policy in policies:
        for name, given in policy.options.items():
            shared = options.setdefault(name, given)
            if shared is not given and shared != given:
                raise ValueError(f"the policies have different options of {name}, and cannot share its score")
    return options
