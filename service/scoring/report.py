"""The report of a request: items' scores from those of their frames, warnings, and the error of the whole."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, hypot
from typing import Any

from models.core.contract import ModelInfo
from models.images.grid import side
from service.core.errors import REFUSALS, BadImage, DeadlineExceeded, Fault, ScoregateError
from service.metrics.common.contract import Metric, MetricOptions, Score
from service.observability.instruments import Instruments
from service.observability.notes import Code, Note
from service.scoring.plan import Input, Inputs, UnopenedItem
from service.serving.context import WORST_FIRST

MetricResult = Score | ScoregateError

ROUNDING = 1e-9  # frames by which rounding may change a share of them
MAX_WORDS = 20  # unknown words in one warning


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning; *item* is None if it is about the whole request, *metric* if it is about all metrics."""

    note: Note
    item: int | None = None
    metric: str | None = None

    @property
    def sentence(self) -> str:
        """The note's text, prefixed by its subject."""
        if self.item is None:
            return self.note.text
        subject = f"item {self.item}" if self.metric is None else f"item {self.item}, {self.metric}"
        return f"{subject}: {self.note.text}"


@dataclass(slots=True)
class ItemReport:
    """
    One item with a score or an error for each metric.

    Attributes:
        results: by metric; `scores` and `errors` are its parts.
        notes: warnings about its prompt, under all metrics.
    """

    item: UnopenedItem
    results: Mapping[str, MetricResult]
    notes: Sequence[Note] = ()
    scores: dict[str, Score] = field(init=False)
    errors: dict[str, ScoregateError] = field(init=False)

    def __post_init__(self) -> None:
        """Divide the results."""
        results = self.results.items()
        self.scores = {name: each for name, each in results if isinstance(each, Score)}
        self.errors = {name: each for name, each in results if isinstance(each, ScoregateError)}

    def warned(self, index: int) -> list[Warned]:
        """Return the warnings about the item, which has this *index*, and then about its scores."""
        found = [Warned(note, index) for note in self.notes]
        for name, score in self.scores.items():
            if score.warnings:
                found += [Warned(note, index, name) for note in score.notes]
        return found

    def joined(self, later: "ItemReport") -> "ItemReport":
        """Return the report with the results of other metrics in a *later* one."""
        notes = tuple(dict.fromkeys([*self.notes, *later.notes]))
        return ItemReport(self.item, {**self.results, **later.results}, notes)


@dataclass(slots=True)
class Report:
    """
    The results of a request.

    Attributes:
        items: in request order.
        infos: each model that the metrics may have used, by configured name.
        notes: warnings about the whole request.
        warnings: these, then those about each item and its scores, in order.
        partial: True if some metric of some item failed.
    """

    items: Sequence[ItemReport]
    infos: Mapping[str, ModelInfo] = field(default_factory=dict)
    notes: Sequence[Note] = ()
    warnings: list[Warned] = field(init=False)
    partial: bool = field(init=False)

    def __post_init__(self) -> None:
        """Collect the warnings."""
        self.partial = any(item.errors for item in self.items)
        self.warnings = [Warned(note) for note in self.notes]
        for index, item in enumerate(self.items):
            self.warnings += item.warned(index)

    @property
    def models(self) -> dict[str, str]:
        """The label (`id@revision`) of each of these models."""
        return {name: info.label for name, info in self.infos.items()}

    def failure(self) -> ScoregateError | None:
        """Return the error of the whole request if nothing has a score: it was late, or all was refused."""
        if not self.partial or any(item.scores for item in self.items):
            return None
        failed = [(item.item.place, error) for item in self.items for error in item.errors.values()]
        for _, error in failed:
            if isinstance(error, DeadlineExceeded):
                faults = [Fault(place, each.code, each.detail) for place, each in failed]
                return DeadlineExceeded(stage=error.stage, faults=faults)
        refusals = [error for _, error in failed if isinstance(error, REFUSALS)]
        return most_telling(refusals) if len(refusals) == len(failed) else None

    def raise_if_failed(self) -> None:
        """
        Raise the error of the whole request, if any.

        Raises:
            DeadlineExceeded: nothing has a score, and something was late.
            LaneFull, Overloaded, NotReady: everything was refused.
        """
        if failure := self.failure():
            raise failure

    def count(self, instruments: Instruments) -> None:
        """Count scores, warnings and refused metrics in the Prometheus metrics."""
        for item in self.items:
            for name, result in item.results.items():
                instruments.count_score(name, result.value if isinstance(result, Score) else result)
        for warned in self.warnings:
            instruments.warnings.labels(warned.note.code).inc()
        if self.partial and self.failure() is None:  # a whole request's rejection is counted by its response
            count_refused((each for item in self.items for each in item.errors.items()), instruments)


def count_refused(errors: Iterable[tuple[str, ScoregateError]], instruments: Instruments) -> None:
    """Count the refusals among the errors of metrics in a response, each metric and code once."""
    refused = {(metric, error.code): error for metric, error in errors if isinstance(error, REFUSALS)}
    for error in refused.values():
        instruments.count_rejection(error)


def most_telling(errors: Sequence[ScoregateError]) -> ScoregateError:
    """
    Return the error that represents a failed request; of equals the first.

    Temporary errors come first, since the same request may succeed later: refusals with the longest wait,
    then deadlines.  Server errors are next, and client errors last.
    """
    return min(errors, key=lambda error: (rank(error), -(error.retry_after_s or 0.0)))


def rank(error: ScoregateError) -> int:
    """Return the priority of an error for `most_telling`; lower is first."""
    if isinstance(error, REFUSALS):
        return 0
    if isinstance(error, DeadlineExceeded):
        return 1
    return 2 if error.status >= 500 else 3


def demo_notes(names: Iterable[str], demo: Collection[str]) -> list[Note]:
    """Return a warning for each of the models *names* that is one of *demo*, the names of demo models."""
    meaning = "is a demo model: scores that rest on it mean nothing for real pictures"
    return [Note(Code.DEMO_MODEL, f"{name} {meaning}") for name in names if name in demo]


def unknown_words(prompt: str, models: Iterable[ModelInfo]) -> list[Note]:
    """Return a note for each vocabulary of *models* that lacks words of the *prompt*."""
    taught = defaultdict[frozenset[str], list[str]](list)
    for info in models:
        if info.vocabulary:
            taught[info.vocabulary].append(info.id)
    words, notes = set(re.findall(r"\w+", prompt.lower())), []
    for vocabulary, ids in taught.items():
        if unknown := sorted(words - vocabulary):
            shown = ", ".join(unknown[:MAX_WORDS]) + (", …" if len(unknown) > MAX_WORDS else "")
            notes.append(Note(Code.UNKNOWN_WORDS, f"words that {', '.join(ids)} never learnt: {shown}"))
    return notes


def report_of_item(
    item: UnopenedItem,
    inputs: Mapping[str, Inputs],
    models: Sequence[ModelInfo],
    metrics: Mapping[str, Metric],
) -> ItemReport:
    """Return the report of an item from the *inputs* of each of *metrics*, scored by *models*."""
    results = {name: folded(metrics[name], each) for name, each in inputs.items()}
    taught = [info for info in models if info.vocabulary]
    return ItemReport(item, results, unknown_words(item.prompt, taught) if taught else ())


def folded(metric: Metric, inputs: Inputs) -> MetricResult:
    """Return an item's result for a metric: from the scores of its frames, or the score of them all."""
    if isinstance(inputs, BadImage):
        return inputs
    results, first = [input.results[metric.name] for input in inputs], inputs[0]
    if first.given == 1 or first.together:
        return results[0]
    if len(first.frames) > 1:
        return of_grid(results[0], first)
    return of_frames(results, inputs, first.metrics[metric.name], metric.lower_is_better)


def of_grid(result: MetricResult, input: Input) -> MetricResult:
    """Return a grid's result with the grid's size added to its details."""
    if isinstance(result, ScoregateError):
        return result
    used = len(input.frames)
    details = {"grid": result.details, "side": side(used), "frames_used": used, "frames_given": input.given}
    return replace(result, details=details)


def of_frames(
    results: Sequence[MetricResult], inputs: Sequence[Input], options: MetricOptions, lower: bool
) -> MetricResult:
    """Return the score from those of all frames; if a frame failed, its error, which names the frame."""
    scores, frames = list[Score](), list[dict[str, Any]]()
    for result, input in zip(results, inputs, strict=True):
        [frame] = input.frames
        if isinstance(result, ScoregateError):
            return result.of_part(input.place(frame))
        number = frame.number  # only frames of an animation have a number
        at = {} if number is None else {"frame": number, "time_s": input.file(frame).times[number]}
        scores.append(result)
        frames.append({"score": result.value, **at, **result.details})
    details = {"frames": frames, "frames_used": len(scores), "frames_given": inputs[0].given}
    statuses = {score.cache for score in scores}
    cache = next((status for status in WORST_FIRST if status in statuses), None)
    value, error = statistic(scores, options, lower)
    return Score(value, details, cache, tuple(note for score in scores for note in score.warnings), error)


def statistic(scores: Sequence[Score], options: MetricOptions, lower: bool) -> tuple[float, float]:
    """Return the value of all frames, and its standard error.  *lower* scores may be better."""
    ordered, share = sorted(scores, key=lambda score: score.value), options.share
    match options.frames:
        case "min":
            return mean(ordered[:1])
        case "top":
            count = max(1, ceil(share * len(ordered) - ROUNDING))
            return mean(ordered[:count] if lower else ordered[-count:])
        case "quantile":
            place = share * (len(ordered) - 1)
            below, above = ordered[floor(place)], ordered[ceil(place)]
            part = place - floor(place)
            error = hypot((1 - part) * below.error, part * above.error)
            return (1 - part) * below.value + part * above.value, error
    return mean(scores)


def mean(scores: Sequence[Score]) -> tuple[float, float]:
    """Return the mean of scores, and its standard error."""
    value = sum(score.value for score in scores) / len(scores)
    return value, hypot(*(score.error for score in scores)) / len(scores)
