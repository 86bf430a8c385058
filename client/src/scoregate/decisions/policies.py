"""Policies: of TOML files, as the service's settings have them, `[policies.NAME]`; and those of a service."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from scoregate.data.rows import QUESTION_SET, Row
from scoregate.decisions.logs import DECISIONS
from scoregate.errors import InputError, named
from scoregate.expression import ANY, NAME, Condition, Formula, Interval
from scoregate.policy import Policy, PolicyOutcome
from scoregate.records import toml_of
from scoregate.settings import Setting, SettingError
from scoregate.text import meant

CHOICES = {"without_score": DECISIONS, "unreadable": ("review", "reject")}
KEYS = ("accept", "review", "rank_by", *CHOICES, "timeout_ms", "options")

POLICY = re.compile(r"[a-z][a-z0-9_]{0,63}")

E = TypeVar("E", Condition, Formula)


def policy_name(text: str) -> str:
    """Return a name that a policy may have."""
    if not POLICY.fullmatch(text):
        raise SettingError("a policy's name has a-z, 0-9 and _, at most 64, and begins with a letter")
    return text


@dataclass(frozen=True, kw_only=True)
class PolicyFile:
    """The settings of a command that takes a policy of a file."""

    file: Annotated[
        Path, Setting("a TOML file with [policies.NAME], such as a profile", positional=True, metavar="FILE")
    ]
    name: Annotated[str | None, Setting("the policy, if the file has several", metavar="NAME")] = None


@dataclass(frozen=True)
class NamedPolicy:
    """
    A policy with its name, and the options of its metrics.

    Attributes:
        id: such as `show@3f2a90c1d4e5`; empty for one of a file.
        ranges: the least and the largest score of each metric; without one any number.
    """

    name: str
    rules: Policy
    options: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    ranges: Mapping[str, Interval] = field(default_factory=dict)

    def decide(self, scores: Mapping[str, float], errors: Mapping[str, str]) -> PolicyOutcome:
        """Return the decision from scores and the codes of errors, by metric."""
        known = {name: scores.get(name, self.ranges.get(name, ANY)) for name in self.rules.deciding}
        return self.rules.decide(known, errors)

    def check_options(self, row: Row) -> None:
        """Raise `InputError` if a row has options of its own for a deciding metric, but a question set."""
        for metric in self.rules.deciding:
            if own := [option for option in row.options.get(metric, {}) if option != QUESTION_SET]:
                raise InputError(
                    f"row {row.number}: the options of {metric} are those of the policy, and a row may have"
                    f" a {QUESTION_SET} alone: it has {', '.join(own)}"
                )

    def as_json(self) -> dict[str, Any]:
        """Return its id, its conditions and its choices."""
        rules = self.rules
        review = {"review": rules.review.text} if rules.review else {}
        chosen = {key: getattr(rules, key) for key in CHOICES}
        return {"id": self.id, "accept": rules.accept.text, **review, **chosen}


def policy_of(settings: PolicyFile) -> NamedPolicy:
    """
    Return the policy of a file; metrics are not checked, since only a service has them.

    Raises:
        InputError: the file has no such policy, or several and none is named, or a setting is not valid.
    """
    path, tables = settings.file, toml_of(settings.file).get("policies")
    if not isinstance(tables, dict) or not tables:
        raise InputError(f"{path}: has no table [policies.NAME]")
    if settings.name is None and len(tables) > 1:
        raise InputError(
            f"{path}: has several policies: choose one with {named('name')}: {', '.join(tables)}"
        )
    name = settings.name or next(iter(tables))
    if name not in tables:
        raise InputError(f"{path}: has no policy {name}; there are {', '.join(tables)}")
    place, table = f"{path}: policies.{name}", tables[name]
    if not isinstance(table, dict):
        raise InputError(f"{place}: is not a table")
    if unknown := [key for key in table if key not in KEYS]:
        raise InputError(f"{place}.{unknown[0]}: no such setting; there are {', '.join(KEYS)}")
    if not isinstance(options := table.get("options", {}), dict):
        raise InputError(f"{place}.options: is not a table")
    rules = rules_of(place, table)
    if not rules.deciding:  # the service refuses it, too
        raise InputError(f"{place}.accept: names no metric")
    return NamedPolicy(name, rules, options)


def served_policy(served: Mapping[str, Any], name: str) -> NamedPolicy:
    """
    Return a policy of a service.

    Args:
        served: the policies of `GET /policies`, by name.

    Raises:
        InputError: it has no such policy, or this client cannot parse it.
    """
    if name not in served:
        hint = (
            meant(name, served)
            if served
            else f"; with {named('local')}, {named('policy_file', 'FILE')} brings policies"
        )
        raise InputError(f"no policy {name}; the service has {', '.join(served) or 'none'}{hint}")
    table = served[name]
    ranges = {metric: interval_of(*bounds) for metric, bounds in table.get("ranges", {}).items()}
    return NamedPolicy(name, rules_of(f"policies.{name}", table), table["options"], table["id"], ranges)


def interval_of(low: float | None, high: float | None) -> Interval:
    """Return the interval between two bounds; None is no bound."""
    return Interval(ANY.low if low is None else low, ANY.high if high is None else high)


def rules_of(place: str, table: Mapping[str, Any]) -> Policy:
    """Return the conditions and choices in the table of a policy.  Raises `InputError`."""
    for key, choices in CHOICES.items():
        if table.get(key, choices[0]) not in choices:
            raise InputError(f"{place}.{key}: choose from {', '.join(choices)}")
    accept = parsed(place, "accept", Condition, table)
    if accept is None:
        raise InputError(f"{place}.accept: is missing")
    review = parsed(place, "review", Condition, table)
    rank_by = parsed(place, "rank_by", Formula, table)
    chosen = {key: table[key] for key in CHOICES if key in table}
    return Policy(accept, review, rank_by=rank_by, **chosen)


def parsed(place: str, key: str, kind: type[E], table: Mapping[str, Any]) -> E | None:
    """Return the expression of a setting; None if it is not set.  Raises `InputError`."""
    if key not in table:
        return None
    if not isinstance(table[key], str):
        raise InputError(f"{place}.{key}: is not a text")
    try:
        return kind.of(table[key])
    except ValueError as exc:
        raise InputError(f"{place}.{key}: {exc}") from exc


def as_toml(policy: NamedPolicy, comments: list[str]) -> str:
    """Return the file of a policy that only accepts or rejects, after *comments*."""
    lines = [f"# {each}" for each in comments]
    lines += ["", f"[policies.{policy.name}]", f"accept = {quoted(policy.rules.accept.text)}"]
    for metric, options in policy.options.items():
        lines += ["", f"[policies.{policy.name}.options.{key_of(metric)}]"]
        lines += [f"{key_of(name)} = {inline(value)}" for name, value in options.items() if value is not None]
    return "\n".join(lines) + "\n"


def key_of(name: str) -> str:
    """Return a key, in quotes if it needs them."""
    return name if NAME.fullmatch(name) and "." not in name else quoted(name)


def quoted(text: str) -> str:
    """Return a basic string of TOML, whose escapes are those of JSON but for pairs of surrogates."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def inline(value: Any) -> str:
    """Return a value of JSON in TOML."""
    if isinstance(value, Mapping):
        inside = (f"{key_of(name)} = {inline(each)}" for name, each in value.items() if each is not None)
        return f"{{{', '.join(inside)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)
