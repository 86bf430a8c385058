"""A policy from labelled scores: thresholds of one metric or two that keep few bad pictures."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush, heappushpop
from itertools import chain, groupby
from math import inf, isfinite
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from scoregate.calibration import (
    Rate,
    cell_of,
    check_columns,
    for_false_accept_rate,
    labelled,
    origin,
    share,
    turned,
)
from scoregate.decisions.policies import NamedPolicy, as_toml, policy_name
from scoregate.errors import InputError, NoResultError, named
from scoregate.expression import Condition
from scoregate.policy import Policy
from scoregate.records import Record, number, truth
from scoregate.runs.results import nested, records_in
from scoregate.settings import Column, MetricNames, Setting, count, metric_names

MAX_METRICS = 2  # metrics of a policy, at most


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Labelled scores, and the share of bad pictures that may pass."""

    scores: Annotated[
        Path,
        Setting(
            "labelled scores: of `scoregate batch`, also a folder of them, of `decisions export`,"
            " or any .jsonl, .csv or .parquet",
            positional=True,
            metavar="SCORES",
        ),
    ]
    metrics: Annotated[
        Sequence[str],
        MetricNames("one or two, or columns that hold their scores (default: those of the file)"),
    ] = ()
    false_accept_rate: Annotated[
        Fraction, Setting("the share of bad pictures that may pass", parse=share, metavar="SHARE")
    ]
    label: Annotated[str, Column("1 or true of a good picture, else 0 or false")] = "good"
    prompt: Annotated[str, Column("the prompt: the rows of one stand in the same half")] = "prompt"
    lower_is_better: Annotated[
        Sequence[str], Setting("of this metric; else as the file says", several=True, metavar="METRIC")
    ] = ()
    seed: Annotated[int, Setting("of the halves (default 0)", parse=count, metavar="N")] = 0
    name: Annotated[str, Setting("of the policy (default fitted)", parse=policy_name, metavar="NAME")] = (
        "fitted"
    )
    out: Annotated[Path, Setting("the policy, a .toml", ("-o", "--out"), metavar="FILE")]


class LabelledRow(NamedTuple):
    """
    A labelled row.

    Attributes:
        prompt: what is drawn for a half: the prompt, or the row's number if it has none.
        scores: of each metric, negated if lower ones are better.
    """

    prompt: str
    scores: tuple[float, ...]
    good: bool


@dataclass
class LabelledTable:
    """
    The rows of a file that have a label and all scores.

    Attributes:
        lower: the metrics of which lower scores are better.
        options: with which the scores were computed, by metric, as far as the file says it.
        warnings: about the scores.
        read: the number of all rows.
        left_out: the numbers of other rows, by what they lack.
    """

    metrics: tuple[str, ...]
    lower: set[str]
    options: Mapping[str, Mapping[str, Any]]
    warnings: Sequence[str]
    rows: list[LabelledRow] = field(default_factory=list)
    read: int = 0
    left_out: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Fit:
    """
    Thresholds of a policy.

    Attributes:
        thresholds: of each metric, as its scores are.
        true_accepts, false_accepts: of rows that did not choose the thresholds if there are two metrics, of
            all rows if there is one.
        chosen_from: the numbers of good and bad rows that chose them.
    """

    table: LabelledTable
    thresholds: tuple[float, ...]
    true_accepts: Rate
    false_accepts: Rate
    chosen_from: tuple[int, int]

    @property
    def accept(self) -> str:
        """The condition."""
        pairs = zip(self.table.metrics, self.thresholds, strict=True)
        return " and ".join(
            f"{metric} {'<=' if metric in self.table.lower else '>='} {threshold!r}"
            for metric, threshold in pairs
        )

    def policy(self, name: str) -> NamedPolicy:
        """Return the policy.  Raises `InputError` if a metric's name is none of an expression."""
        try:
            condition = Condition.of(self.accept, self.table.metrics)
        except ValueError as exc:
            raise InputError(f"{self.accept}: {exc}") from exc
        return NamedPolicy(name, Policy(condition), self.table.options)

    def lines(self) -> list[str]:
        """Return its figures."""
        good, bad = self.chosen_from
        whose = "the other half" if len(self.thresholds) > 1 else "the same rows"
        return [
            f"chosen from {good} good and {bad} bad rows; of {whose}:",
            f"true accept rate {self.true_accepts}",
            f"false accept rate {self.false_accepts}",
        ]


def fit_policy(settings: FitSettings) -> Fit:
    """
    Write the policy of `fitted`, with its figures as comments.

    Raises:
        InputError, NoResultError: as `fitted`; or the name of the policy's file does not end in .toml.
        FileExistsError: there is such a file.
    """
    if settings.out.suffix.lower() != ".toml":
        raise InputError(f"{settings.out}: the name must end in .toml")
    found = fitted(settings)
    text = as_toml(found.policy(settings.name), found.lines())
    with settings.out.open("x", encoding="utf-8") as file:  # it may be a profile, which people wrote
        file.write(text)
    return found


def fitted(settings: FitSettings) -> Fit:
    """
    Return the thresholds for a false-accept rate.

    That of one metric is the one of `scoregate calibrate`.  Those of two are chosen on one half of the
    prompts, by the upper end of the interval of the false-accept rate; see `best_pair`.

    Raises:
        InputError: a row is not valid, or all labels are the same.
        NoResultError: no threshold accepts few enough bad rows, and some good row.
    """
    table = table_of(settings)
    wanted = settings.false_accept_rate
    if len(table.metrics) == 1:
        bad, good = ([row.scores[0] for row in table.rows if row.good is kind] for kind in (False, True))
        threshold = for_false_accept_rate(bad, good, wanted)
        if threshold is None:
            raise NoResultError(f"no threshold has a false-accept rate of {float(wanted):g}: {too_many(bad)}")
        return fit_of(table, (threshold,), table.rows, table.rows)
    first, other = halves(table.rows, settings.seed)
    found = best_pair(first, most_allowed(sum(not row.good for row in first), wanted))
    if found is None:
        raise NoResultError("no pair of thresholds accepts a good row of the half, and few enough bad rows")
    for kind in (True, False):
        if not any(row.good is kind for row in other):
            raise NoResultError(
                f"the other half has no {'good' if kind else 'bad'} row, so there are no figures"
            )
    return fit_of(table, found, first, other)


def too_many(bad: Sequence[float]) -> str:
    """Return why no threshold of one metric is possible."""
    return f"{bad.count(max(bad))} of {len(bad)} bad rows have the best score"


def fit_of(
    table: LabelledTable,
    thresholds: tuple[float, ...],
    first: Sequence[LabelledRow],
    other: Sequence[LabelledRow],
) -> Fit:
    """Return the figures of thresholds from *other* rows."""

    def accepted(good: bool) -> Rate:
        rows = [row for row in other if row.good is good]
        return Rate(sum(passes(row, thresholds) for row in rows), len(rows))

    good = sum(row.good for row in first)
    pairs = zip(table.metrics, thresholds, strict=True)
    plain = tuple(turned(threshold, metric in table.lower) for metric, threshold in pairs)
    return Fit(table, plain, accepted(True), accepted(False), (good, len(first) - good))


def passes(row: LabelledRow, thresholds: Sequence[float]) -> bool:
    """Return True if each score is at least its threshold."""
    return all(score >= threshold for score, threshold in zip(row.scores, thresholds, strict=True))


def halves(rows: Sequence[LabelledRow], seed: int) -> tuple[list[LabelledRow], list[LabelledRow]]:
    """Return the rows of one half of the prompts, the larger one if they are odd, and the others."""
    prompts = sorted({row.prompt for row in rows})
    random.Random(seed).shuffle(prompts)
    chosen = {*prompts[: (len(prompts) + 1) // 2]}
    return [row for row in rows if row.prompt in chosen], [row for row in rows if row.prompt not in chosen]


def most_allowed(bad: int, wanted: Fraction) -> int:
    """
    Return the most false accepts of *bad* rows whose interval ends at *wanted* at the latest.

    Raises:
        NoResultError: even none would not show such a rate.
    """
    if not bad or Rate(0, bad).interval[1] > wanted:
        raise NoResultError(
            f"{bad} bad rows in the half that chooses are too few to show a false-accept rate of"
            f" {float(wanted):g}: the interval of 0 false accepts ends at"
            f" {Rate(0, bad).interval[1] if bad else 1:.4f}"
        )
    return max(allowed for allowed in range(bad + 1) if Rate(allowed, bad).interval[1] <= wanted)


def best_pair(rows: Sequence[LabelledRow], allowed: int) -> tuple[float, float] | None:
    """
    Return the pair of thresholds that accepts the most good rows and at most *allowed* bad ones.

    Of equals, the pair with the fewest bad ones, then the one with the larger thresholds; None if none
    accepts a good row.  The first threshold falls through all scores; a bad row that becomes too many raises
    the least second score that is allowed, which never falls again.
    """
    good, bad = list[float](), list[float]()  # heaps of the second scores that are allowed
    barrier = -inf  # a second score is allowed above it
    best, found = (0, 0), None
    for first, group in groupby(sorted(rows, key=lambda row: -row.scores[0]), lambda row: row.scores[0]):
        for row in group:
            second = row.scores[1]
            if row.good:
                heappush(good, second)
            elif len(bad) < allowed:
                heappush(bad, second)
            else:
                barrier = max(barrier, heappushpop(bad, second))
        while good and good[0] <= barrier:
            heappop(good)
        if len(good) >= max(1, best[0]):
            value = len(good), -sum(second >= good[0] for second in bad)
            if value > best or found is None:
                best, found = value, (first, good[0])
    return found


def table_of(settings: FitSettings) -> LabelledTable:
    """Return the labelled rows of a file.  Raises `InputError`."""
    names = metrics_of(settings)
    origins = {name: origin(settings.scores, name) for name in names}
    if unknown := [name for name in settings.lower_is_better if name not in names]:
        raise InputError(f"{named('lower_is_better', unknown[0])}: is none of the metrics {', '.join(names)}")
    if mixed := [name for name in names if len(origins[name].options) > 1]:
        raise InputError(f"{settings.scores}: the scores of {mixed[0]} are of several options: choose one")
    lower = {name for name in names if origins[name].lower} | {*settings.lower_is_better}
    options = {name: each for name in names for each in origins[name].options if each}
    warnings = [*dict.fromkeys(chain.from_iterable(each.notes() for each in origins.values()))]
    table = LabelledTable(names, lower, options, warnings)
    for record in records_in(settings.scores):
        table.read += 1
        if why := add_row(table, record, settings):
            table.left_out.setdefault(why, []).append(record.number)
    if not table.rows:
        check_columns(settings.scores, names, settings.label)
        raise InputError(f"{settings.scores}: no row has a label in {settings.label} and all scores")
    if len({row.good for row in table.rows}) == 1:
        only = int(table.rows[0].good)
        raise InputError(f"all {len(table.rows)} labels are {only}, and both kinds are needed")
    return table


def metrics_of(settings: FitSettings) -> tuple[str, ...]:
    """Return the metrics that are chosen, or all of the file.  Raises `InputError` for none or too many."""
    names = metric_names(settings.metrics)
    if not names:
        values = (nested(record.values) for record in records_in(settings.scores))
        names = [*dict.fromkeys(name for each in values for name in offered(each))]
    if not 1 <= len(names) <= MAX_METRICS:
        there = f"there are {', '.join(names)}" if names else "the file has no object `scores`"
        raise InputError(f"{settings.scores}: choose one or two metrics with {named('metrics')}; {there}")
    return tuple(names)


def offered(values: Mapping[str, Any]) -> list[str]:
    """Return the metrics of a row."""
    scores = values.get("scores")
    return [*scores] if isinstance(scores, Mapping) else ["score"] if "score" in values else []


def add_row(table: LabelledTable, record: Record, settings: FitSettings) -> str:
    """Add a row; return why it is left out, if it is.  Raises `InputError` for a cell that is not valid."""
    if record.fault:
        return "cannot be read"
    values = nested(record.values)
    inside = values.get("scores")
    cells = inside if isinstance(inside, Mapping) else values
    scores = []
    for metric in table.metrics:
        score = cell_of(record, metric, cells.get(metric), number)
        if score is None or not isfinite(score):
            return f"no score of {metric}" if score is None else f"{metric} is not a finite number"
        scores.append(turned(score, metric in table.lower))
    good = cell_of(record, settings.label, labelled(values, settings.label), majority)
    if good is None:
        return "no label, or as many good as bad ones"
    prompt = labelled(values, settings.prompt) or values.get("prompt_digest")
    table.rows.append(
        LabelledRow(f"prompt {prompt}" if prompt else f"row {record.number}", tuple(scores), good)
    )
    return ""


def majority(cell: Any) -> bool | None:
    """Return a label; of the share of people who say good, what most say; None if it is a half."""
    try:
        good = number(cell)
    except ValueError:
        return truth(cell)
    return None if good == 0.5 else good > 0.5 if 0 < good < 1 else truth(cell)
