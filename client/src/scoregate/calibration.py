"""
Thresholds from the scores and labels of a file: for a pass rate, another model's, or a false-accept rate.

A picture is accepted if `score >= threshold`, ties included.  Shares are compared as fractions of whole
numbers, so no rounding moves a threshold.
"""

import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from math import ceil, isfinite, sqrt
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, TypeVar

from scoregate.errors import InputError, NoColumnError, ScoregateError, named
from scoregate.local import Service
from scoregate.records import Record, number, truth
from scoregate.results import lower_is_better
from scoregate.runs.plan import Line, is_line
from scoregate.runs.results import line_of, nested, records_in
from scoregate.runs.summary import WarningKind, kinds_of
from scoregate.settings import Column, MetricName, Setting, SettingError

MAX_NAMED_ROWS = 5  # rows without a score that are named

PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99)
BINS = 40  # bins of a plot
MIN_TAIL = 10  # scores on either side of a threshold; with fewer the rate is a guess
T = TypeVar("T")

NORMAL_QUANTILE = 1.959963984540054  # the normal distribution's two-sided 95 %


PASS_RATE = Fraction(9, 10)
FALSE_ACCEPT_RATE = Fraction(1, 100)
GOAL = "goal"


def share(text: str) -> Fraction:
    """Return a share as it was written, without rounding."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError) as exc:
        raise SettingError("a share is a number from 0 to 1") from exc
    if not 0 <= value <= 1:
        raise SettingError("a share is a number from 0 to 1")
    return value


@dataclass(frozen=True, kw_only=True)
class CalibrationSettings:
    """
    Settings of a threshold.

    Raises:
        InputError: they do not go together.
    """

    scores: Annotated[
        Path,
        Setting(
            "a result of `scoregate batch`, also a folder of them, or any .jsonl, .csv or .parquet",
            positional=True,
            metavar="SCORES",
        ),
    ]
    metric: Annotated[str | None, MetricName("the metric, or the column that holds the scores")] = None
    label: Annotated[
        str | None, Column("the column that says 1 or true of a good picture, else 0 or false")
    ] = None
    lower_is_better: Annotated[bool, Setting("of this metric; else as the file or the service says")] = False
    pass_rate: Annotated[
        Fraction | None,
        Setting("the share of pictures to pass (default 0.9)", metavar="SHARE", parse=share, excludes=GOAL),
    ] = None
    false_accept_rate: Annotated[
        Fraction | None,
        Setting(
            "the share of bad pictures that may pass (default with labels, 0.01)",
            metavar="SHARE",
            parse=share,
            excludes=GOAL,
        ),
    ] = None
    like: Annotated[
        Path | None,
        Setting(
            "keep the pass rate of these scores of the same pictures by another model",
            metavar="OLD",
            excludes=GOAL,
        ),
    ] = None
    threshold: Annotated[
        float | None, Setting("with --like: of the other model (default: its percentiles)", parse=float)
    ] = None

    def __post_init__(self) -> None:
        if self.false_accept_rate is not None and not self.label:
            raise InputError(
                f"{named('false_accept_rate')} needs labels: name their column with {named('label')}"
            )
        if self.pass_rate == 0:
            raise InputError(f"{named('pass_rate', 0)} passes nothing, so there is no threshold to choose")
        if self.threshold is not None and not self.like:
            raise InputError(f"{named('threshold')} is that of the model whose scores {named('like')} names")
        if self.like and self.label:
            raise InputError(f"{named('like')} takes neither {named('label')} nor {named('plot')}")


@dataclass
class Samples:
    """
    The scores of a file, with their labels if a column is given.

    Attributes:
        lower: True if lower scores are better.
        notes: warnings about them.
        fault: of the request for the direction of the metric, whose higher scores are taken as better then.
    """

    metric: str
    rows: int = 0
    scores: list[float] = field(default_factory=list)
    labels: list[bool] = field(default_factory=list)
    left_out: dict[str, list[int]] = field(default_factory=dict)  # the rows, by what they lack
    lower: bool = False
    notes: Sequence[str] = ()
    fault: ScoregateError | None = None

    def leave_out(self, why: str, row: int) -> None:
        self.left_out.setdefault(why, []).append(row)

    def of(self, label: bool) -> list[float]:
        """Return the scores with *label*; empty without a column of labels."""
        return [score for score, each in zip(self.scores, self.labels, strict=False) if each is label]

    def worth(self, scores: Iterable[float]) -> list[float]:
        """Return the scores in ascending order, negated if lower ones are better."""
        return sorted(turned(score, self.lower) for score in scores)


def turned(score: float, lower: bool) -> float:
    """Return the score, negated if *lower* ones are better."""
    return 0.0 - score if lower else score


def read_samples(path: Path, metric: str | None, label: str | None) -> Samples:
    """
    Return the scores of *metric* in *path*, a result of `scoregate batch` or any file with such a column.

    Args:
        metric: None takes the one metric that the first row has, or its column `score`.

    Raises:
        InputError: there is no such column, or a cell is not valid.
    """
    samples = Samples(metric or "")
    for record in records_in(path):
        samples.rows += 1
        if record.fault:
            samples.leave_out("cannot be read", record.number)
            continue
        record = replace(record, values=nested(record.values))
        samples.metric = samples.metric or only_metric(record, path)
        add_record(samples, record, label)
    if not samples.scores:
        check_columns(path, [samples.metric], label)
        wanted = f"{samples.metric or 'any column'}" + (f" and a label in {label}" if label else "")
        raise InputError(f"{path}: no row has a score in {wanted}")
    return samples


def check_columns(path: Path, metrics: Sequence[str], label: str | None) -> None:
    """Raise `NoColumnError` if no row has scores of one of *metrics*, or the column of labels."""
    names, top = dict[str, None](), set[str]()
    for record in records_in(path):
        values = nested(record.values)
        fields = (values.get(name) for name in ("scores", "errors", "columns"))
        inner = [each for each in fields if isinstance(each, Mapping)]
        names |= dict.fromkeys(chain.from_iterable(inner) if inner else values)
        top |= values.keys()
    missing = [name for name in (*metrics, label) if name and name not in {*names, *top}]
    if missing and names:
        raise NoColumnError(path, missing[0], names, taken=metrics)


def only_metric(record: Record, path: Path) -> str:
    """Return the default metric."""
    scores = record.values.get("scores")
    names = list(scores) if isinstance(scores, Mapping) else []
    if isinstance(scores, Mapping) and isinstance(errors := record.values.get("errors"), Mapping):
        names += [name for name in errors if name not in names]
    if not names and "score" in record.values:
        names = ["score"]
    if len(names) == 1:
        return str(names[0])
    offered = ", ".join(map(str, names or record.values))
    raise InputError(f"{path}: say which scores are meant with {named('metric')}; there are {offered}")


def add_record(samples: Samples, record: Record, label: str | None) -> None:
    """Add a row's score and label, or count the row as left out."""
    nested = record.values.get("scores")
    values = nested if isinstance(nested, Mapping) else record.values
    score = cell_of(record, samples.metric, values.get(samples.metric), number)
    if score is None:
        return samples.leave_out("no score", record.number)
    if not isfinite(score):
        return samples.leave_out("not a finite number", record.number)
    if label is not None:
        known = cell_of(record, label, labelled(record.values, label), truth)
        if known is None:
            return samples.leave_out("no label", record.number)
        samples.labels.append(known)
    samples.scores.append(score)
    return None


def cell_of(record: Record, column: str, cell: Any, read: Callable[[Any], T]) -> T | None:
    """Return what *read* returns for a cell; None if it is empty.  Raises `InputError` for `ValueError`."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        return read(cell)
    except ValueError as exc:
        raise InputError(f"row {record.number}, column {column}: {exc}") from exc


def labelled(values: Mapping[str, Any], label: str) -> Any:
    """Return a label's cell; a result of `scoregate batch` has the data set's columns in `columns`."""
    columns = values.get("columns")
    return columns.get(label) if label not in values and isinstance(columns, Mapping) else values.get(label)


def noted(left_out: Mapping[str, Sequence[int]], of: int) -> list[str]:
    """Return one line about each kind of row that was left out of all, with the first of them."""
    return [
        f"{len(rows)} of {of} rows left out, {why}: row{'s' * (len(rows) > 1)} "
        + ", ".join(map(str, rows[:MAX_NAMED_ROWS]))
        + ", …" * (len(rows) > MAX_NAMED_ROWS)
        for why, rows in left_out.items()
    ]


@dataclass(frozen=True)
class Origin:
    """
    The origin of one metric's scores; empty for a file that `scoregate batch` did not write.

    Attributes:
        lower: True if lower scores are better.
        models: each set of models that gave scores.
        options: each set of options of the metric.
    """

    lower: bool = False
    kinds: list[WarningKind] = field(default_factory=list)
    models: list[Mapping[str, str]] = field(default_factory=list)
    options: list[Mapping[str, Any]] = field(default_factory=list)

    def notes(self) -> list[str]:
        """Return a line for each kind of warning, and one if several sets of models gave the scores."""
        mixed = [
            f"the scores are of {len(sets)} sets of {what}, and not comparable"
            for what, sets in (("models", self.models), ("options", self.options))
            if len(sets) > 1
        ]
        return [*map(str, self.kinds), *mixed]


def origin(path: Path, metric: str) -> Origin:
    """Read the origin of *metric*'s scores from *path*."""
    models: dict[str, Mapping[str, str]] = {}
    options: dict[str, Mapping[str, Any]] = {}
    lower = False
    for line in scored_lines(path, metric):
        lower = lower or metric in line.get("lower_is_better", ())
        labels, given = line.get("models", {}), line.get("options", {}).get(metric, {})
        models.setdefault(json.dumps(labels, sort_keys=True), labels)
        options.setdefault(json.dumps(given, sort_keys=True), given)
    kinds = kinds_of(scored_lines(path, metric))
    return Origin(lower, kinds, list(models.values()), list(options.values()))


def scored_lines(path: Path, metric: str) -> Iterator[Line]:
    """Yield the lines with a score of *metric*; skip invalid ones."""
    for record in records_in(path):
        line = line_of(record.values)
        if is_line(line) and metric in line["scores"]:
            yield line


@dataclass(frozen=True)
class Rate:
    """*count* of *of* samples, of which there is at least one."""

    count: int
    of: int

    @property
    def value(self) -> float:
        return self.count / self.of

    @property
    def interval(self) -> tuple[float, float]:
        """The binomial 95 % interval (Wilson 1927)."""
        centre = self.count + NORMAL_QUANTILE * NORMAL_QUANTILE / 2
        half = NORMAL_QUANTILE * sqrt(
            self.count * (self.of - self.count) / self.of + NORMAL_QUANTILE * NORMAL_QUANTILE / 4
        )
        low, high = (
            (centre - half) / (self.of + NORMAL_QUANTILE * NORMAL_QUANTILE),
            (centre + half) / (self.of + NORMAL_QUANTILE * NORMAL_QUANTILE),
        )
        return (0.0 if self.count == 0 else low), (1.0 if self.count == self.of else high)

    def as_json(self) -> dict[str, Any]:
        """Return the share as JSON."""
        interval = list(self.interval)
        return {"value": self.value, "count": self.count, "of": self.of, "interval_95": interval}

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.4f}, {self.count} of {self.of} (95 % interval {low:.4f} to {high:.4f})"


def accepted(ordered: Sequence[float], threshold: float) -> Rate:
    """Return the number of ascending scores that are at least *threshold*."""
    return Rate(len(ordered) - bisect_left(ordered, threshold), len(ordered))


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the lowest score that at least *percent* % of the scores do not exceed (nearest rank)."""
    return ordered[max(0, ceil(Fraction(percent * len(ordered), 100)) - 1)]


def percentiles(ordered: Sequence[float]) -> list[float]:
    """Return the distinct scores at `PERCENTS`, ascending."""
    return sorted({percentile(ordered, percent) for percent in PERCENTS})


def for_pass_rate(scores: Iterable[float], wanted: Fraction) -> float:
    """Return the highest score that, as a threshold, passes at least the *wanted* share; above 0, to 1."""
    best_first = sorted(scores, reverse=True)
    return best_first[ceil(wanted * len(best_first)) - 1]


def for_false_accept_rate(bad: Sequence[float], good: Sequence[float], wanted: Fraction) -> float | None:
    """
    Return the lowest score that, as a threshold, accepts at most the *wanted* share of the *bad*.

    None if even the highest score accepts more of them.
    """
    allowed = int(wanted * len(bad))
    worst_last = sorted(bad, reverse=True)
    barrier = worst_last[allowed] if allowed < len(bad) else float("-inf")
    return min((score for score in [*bad, *good] if score > barrier), default=None)


@dataclass(frozen=True)
class Counterpart:
    """
    A threshold of one model, and the one of another model that as many scores pass.

    Attributes:
        threshold, rate: of the new model; None if the scores cannot show it.
        caution: a limit of this result; empty if there is none.
    """

    old_threshold: float
    old_rate: Rate
    threshold: float | None = None
    rate: Rate | None = None
    caution: str = ""


@dataclass(frozen=True)
class Counterparts:
    """The thresholds of one model, each with that of another one, whose scores *samples* are."""

    samples: Samples
    thresholds: Sequence[Counterpart]

    @property
    def complete(self) -> bool:
        """Whether there is a threshold."""
        return any(each.threshold is not None for each in self.thresholds)

    def as_json(self) -> dict[str, Any]:
        """Return the thresholds as JSON."""
        samples = self.samples
        return {
            "metric": samples.metric,
            "direction": f"{'lower' if samples.lower else 'higher'} is better",
            "scores": len(samples.scores),
            "thresholds": [
                {
                    "old": turned(each.old_threshold, samples.lower),
                    "new": None if each.threshold is None else turned(each.threshold, samples.lower),
                    "old_rate": each.old_rate.as_json(),
                    "new_rate": each.rate and each.rate.as_json(),
                    "caution": each.caution,
                }
                for each in self.thresholds
            ],
        }


def counterpart(old: Sequence[float], new: Sequence[float], threshold: float) -> Counterpart:
    """
    Return the threshold for *new* scores that keeps the pass rate of *threshold* for *old* ones; both ascend.

    Equal scores pass together, so the rate may not be reachable; then the nearest one is taken.
    """
    rate = accepted(old, threshold)
    if rate.count in (0, rate.of):
        who = "all" if rate.count else "none"
        return Counterpart(threshold, rate, caution=f"{who} of the old scores pass, so any threshold fits")
    found = min((accepted(new, score) for score in set(new)), key=lambda each: abs(each.value - rate.value))
    cautions = []
    if found.value != rate.value:
        cautions.append("equal new scores pass together, so the rate is not kept exactly")
    if min(rate.count, rate.of - rate.count) < MIN_TAIL:
        cautions.append(f"fewer than {MIN_TAIL} scores lie beyond it")
    return Counterpart(threshold, rate, new[found.of - found.count], found, "; ".join(cautions))


def roc_auc(bad: Iterable[float], good: Iterable[float]) -> float:
    """Return the probability that a good sample is above a bad one; a tie counts half."""
    ordered, better = sorted(bad), list(good)
    doubled = sum(bisect_left(ordered, score) + bisect_right(ordered, score) for score in better)
    return doubled / (2 * len(ordered) * len(better))


def roc(bad: Sequence[float], good: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the false-accept and true-accept rates of every threshold, from the highest."""
    falls, rises = sorted(bad), sorted(good)
    thresholds = sorted({*bad, *good}, reverse=True)
    false = [0.0, *(accepted(falls, threshold).value for threshold in thresholds)]
    return false, [0.0, *(accepted(rises, threshold).value for threshold in thresholds)]


# --- what the scores of a file say -----------------------------------------------------------------


@dataclass(frozen=True)
class Calibration:
    """
    What the scores say.

    Attributes:
        goal: `pass_rate` or `false_accept_rate`.
        threshold: None if even the best score accepts more bad pictures than wanted.
        rates: at the threshold, by name.
        auc: None without labels.
    """

    samples: Samples
    goal: str
    wanted: Fraction
    threshold: float | None
    rates: dict[str, Rate] = field(default_factory=dict)
    auc: float | None = None

    @property
    def complete(self) -> bool:
        """Whether there is a threshold."""
        return self.threshold is not None

    def draw(self, drawn: Any) -> None:
        """
        Draw histograms with the threshold on a figure of Matplotlib; with labels each, and the ROC curve.

        Raises:
            InputError: the scores lie too close together.
        """
        samples = self.samples
        groups = {"all": samples.scores}
        if samples.labels:
            groups = {"good": samples.of(True), "bad": samples.of(False)}
        drawn.set_size_inches(5 * len(groups), 4)
        left, *right = drawn.subplots(1, len(groups), squeeze=False)[0]
        span = (min(samples.scores), max(samples.scores))
        if span[0] + (span[1] - span[0]) / BINS == span[0]:
            raise InputError(f"{samples.metric}: the scores lie too close together to be drawn")
        for name, scores in groups.items():
            left.hist(scores, bins=BINS, range=span, alpha=0.6, label=f"{name} ({len(scores)})")
        if self.threshold is not None:
            text = f"threshold {self.threshold:.4g}"
            left.axvline(self.threshold, color="black", linestyle="--", label=text)
        left.set_xlabel(samples.metric.replace("$", r"\$"))
        left.set_ylabel("pictures")
        left.legend()
        for axes in right:
            axes.plot(*roc(samples.worth(samples.of(False)), samples.worth(samples.of(True))))
            axes.set_xlabel("false-accept rate")
            axes.set_ylabel("true-accept rate")

    def as_json(self) -> dict[str, Any]:
        """Return the calibration as JSON."""
        samples, scores = self.samples, sorted(self.samples.scores)
        content: dict[str, Any] = {
            "metric": samples.metric,
            "direction": f"{'lower' if samples.lower else 'higher'} is better",
            "rows": samples.rows,
            "scores": len(scores),
            "left_out": samples.left_out,
            "mean": fmean(scores),
            "min": scores[0],
            "max": scores[-1],
            "percentiles": {str(percent): percentile(scores, percent) for percent in PERCENTS},
            "wanted": {self.goal: float(self.wanted)},
            "threshold": self.threshold,
            "rates": {name: rate.as_json() for name, rate in self.rates.items()},
        }
        if self.auc is not None:
            content["roc_auc"] = self.auc
            content["labels"] = {"good": len(samples.of(True)), "bad": len(samples.of(False))}
        return content


def calibrate(settings: CalibrationSettings, service: Service) -> Calibration | Counterparts:
    """
    Return the threshold for what is wanted; with `like` the thresholds that keep another model's pass rates.

    Args:
        service: says whether lower scores are better, if it is named and the file does not say it.

    Raises:
        InputError: there is no such column, a cell is not valid, or the scores have no threshold.
    """
    return thresholds_of(settings, scores_of(settings, service))


def thresholds_of(settings: CalibrationSettings, samples: Samples) -> Calibration | Counterparts:
    """Return what `calibrate` returns, from scores that have been read.  Raises `InputError`."""
    if settings.like:
        return Counterparts(samples, counterparts_of(settings, samples))
    return calibrated(samples, settings.pass_rate, settings.false_accept_rate)


def scores_of(settings: CalibrationSettings, service: Service) -> Samples:
    """
    Return the scores of a file, in the direction of the metric.

    Raises:
        InputError: there is no such column, or a cell is not valid.
    """
    samples = read_samples(settings.scores, settings.metric, settings.label)
    source = origin(settings.scores, samples.metric)
    samples.notes = source.notes()
    try:
        samples.lower = settings.lower_is_better or source.lower or lower_there(service, samples.metric)
    except ScoregateError as exc:
        samples.fault = exc
    return samples


def lower_there(service: Service, metric: str) -> bool:
    """Return True if a service that is named says that lower scores of *metric* are better."""
    if not (service.existing or service.base_url is not None or os.environ.get("SCOREGATE_BASE_URL")):
        return False
    with service.client(retries=0) as client:
        return lower_is_better(client.models().get("metrics", {}).get(metric, {}))


def calibrated(
    samples: Samples, pass_rate: Fraction | None, false_accept_rate: Fraction | None
) -> Calibration:
    """
    Return the threshold for what is wanted; with labels and nothing wanted, for a false-accept rate.

    Raises:
        InputError: all scores or all labels are the same.
    """
    scores, bad, good = map(samples.worth, (samples.scores, samples.of(False), samples.of(True)))
    if scores[0] == scores[-1]:
        alike = f"all {len(scores)} scores are {samples.scores[0]!r}" if scores[1:] else "there is one score"
        raise InputError(f"{samples.metric}: {alike}, and a threshold needs scores that differ")
    if samples.labels and not (bad and good):
        raise InputError(f"all {len(scores)} labels are {'1' if good else '0'}, and both kinds are needed")
    threshold: float | None
    if pass_rate is not None or not samples.labels:
        goal, wanted = "pass_rate", PASS_RATE if pass_rate is None else pass_rate
        threshold = for_pass_rate(scores, wanted)
    else:
        goal = "false_accept_rate"
        wanted = FALSE_ACCEPT_RATE if false_accept_rate is None else false_accept_rate
        threshold = for_false_accept_rate(bad, good, wanted)
    groups = {"pass_rate": scores, "true_accept_rate": good, "false_accept_rate": bad}
    rates = {
        name: accepted(group, threshold) for name, group in groups.items() if group and threshold is not None
    }
    auc = roc_auc(bad, good) if samples.labels else None
    found = None if threshold is None else turned(threshold, samples.lower)
    return Calibration(samples, goal, wanted, found, rates, auc)


def counterparts_of(settings: CalibrationSettings, samples: Samples) -> list[Counterpart]:
    """
    Return the thresholds of *samples* that keep the pass rates of the other model's.

    Raises:
        InputError: the files have no score for each other.
    """
    assert settings.like
    old = read_samples(settings.like, samples.metric, None)
    old.lower = samples.lower
    if len(old.scores) != len(samples.scores):
        counts = f"{len(old.scores)} scores in {settings.like}, {len(samples.scores)} in {settings.scores}"
        raise InputError(f"{counts}: score the same pictures with both models")
    scores, new = old.worth(old.scores), samples.worth(samples.scores)
    one = settings.threshold
    wanted = percentiles(scores) if one is None else [turned(one, old.lower)]
    return [counterpart(scores, new, threshold) for threshold in wanted]
