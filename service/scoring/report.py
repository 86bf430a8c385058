"""The report of a request: scores, warnings, and the error if it failed as a whole."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from models.core.contract import ModelInfo
from service.core.errors import REFUSALS, DeadlineExceeded, Fault, ModelChanged, ScoregateError
from service.metrics.common.contract import Score
from service.observability.instruments import Instruments
from service.observability.notes import Code, Note, Warned
from service.scoring.items import UnopenedItem

MetricResult = Score | ScoregateError

Vocabularies = Mapping[frozenset[str], Sequence[str]]

MAX_WORDS = 20  # unknown words in one warning


@dataclass(frozen=True, slots=True)
class ItemReport:
    """
    One item with a score or an error for each metric.

    Attributes:
        notes: warnings about its prompt, under all metrics.
    """

    item: UnopenedItem
    results: Mapping[str, MetricResult]
    notes: Sequence[Note] = ()

    def joined(self, later: "ItemReport") -> "ItemReport":
        """Return the report with the results of other metrics in a *later* one."""
        notes = tuple(dict.fromkeys([*self.notes, *later.notes]))
        return ItemReport(self.item, {**self.results, **later.results}, notes)

    @property
    def scores(self) -> dict[str, Score]:
        """The scores by metric."""
        return {name: r for name, r in self.results.items() if isinstance(r, Score)}

    @property
    def errors(self) -> dict[str, ScoregateError]:
        """The errors by metric."""
        return {name: r for name, r in self.results.items() if isinstance(r, ScoregateError)}

    def count(self, instruments: Instruments) -> None:
        """Count each result in the Prometheus metrics."""
        for name, result in self.results.items():
            instruments.count_score(name, result.value if isinstance(result, Score) else result)


@dataclass(frozen=True, slots=True)
class Report:
    """
    The results of a request.

    Attributes:
        items: in request order.
        infos: each model that the metrics may have used, by configured name.
        notes: warnings about the whole request.
    """

    items: Sequence[ItemReport]
    infos: Mapping[str, ModelInfo] = field(default_factory=dict)
    notes: Sequence[Note] = ()

    @property
    def models(self) -> dict[str, str]:
        """The label (`id@revision`) of each of these models."""
        return {name: info.label for name, info in self.infos.items()}

    def infos_with(self, later: "Report") -> dict[str, ModelInfo]:
        """Return the models of this part of a request and of a *later* one.  Raises `ModelChanged`."""
        for name, info in later.infos.items():
            if name in self.infos and self.infos[name].identity != info.identity:
                old, new = self.infos[name].label, info.label
                raise ModelChanged(f"models.{name} changed during the request, from {old} to {new}")
        return {**self.infos, **later.infos}

    @property
    def warnings(self) -> list[Warned]:
        """The warnings about the request, then about each item and its scores, in order."""
        found = [*map(Warned, self.notes)]
        for index, item in enumerate(self.items):
            found += [Warned(note, index) for note in item.notes]
            found += [
                Warned(note, index, name) for name, score in item.scores.items() for note in score.notes
            ]
        return found

    @property
    def partial(self) -> bool:
        """True if some metric of some item failed."""
        return any(item.errors for item in self.items)

    def failure(self) -> ScoregateError | None:
        """Return the error of the whole request if nothing has a score: it was late, or all was refused."""
        if any(item.scores for item in self.items):
            return None
        failed = [(item.item.place, error) for item in self.items for error in item.errors.values()]
        for _, error in failed:
            if isinstance(error, DeadlineExceeded):
                faults = [Fault(place, each.code, each.detail) for place, each in failed]
                return DeadlineExceeded(stage=error.stage, faults=faults)
        refusals = [error for _, error in failed if isinstance(error, REFUSALS)]
        return most_telling(refusals) if failed and len(refusals) == len(failed) else None

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
            item.count(instruments)
        for warned in self.warnings:
            instruments.warnings.labels(warned.note.code).inc()
        if (
            self.partial and self.failure() is None
        ):  # the rejection of a whole request is counted by its response
            refused = {
                (name, error.code): error
                for item in self.items
                for name, error in item.errors.items()
                if isinstance(error, REFUSALS)
            }
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


def used_demos(names: Sequence[str]) -> list[Note]:
    """Return a note about each demo model."""
    meaning = "scores that rest on it mean nothing for real pictures"
    return [Note(Code.DEMO_MODEL, f"{name} is a demo model: {meaning}") for name in names]


def vocabularies(models: Iterable[ModelInfo]) -> Vocabularies:
    """Return the ids of the models that were trained on each vocabulary; models without one are left out."""
    found = defaultdict[frozenset[str], list[str]](list)
    for info in models:
        if info.vocabulary:
            found[info.vocabulary].append(info.id)
    return found


def unknown_words(prompt: str, taught: Vocabularies) -> list[Note]:
    """Return a note for each vocabulary that lacks words of the *prompt*."""
    words = set(re.findall(r"\w+", prompt.lower())) if taught else set()
    notes = []
    for vocabulary, ids in taught.items():
        if unknown := sorted(words - vocabulary):
            shown = ", ".join(unknown[:MAX_WORDS]) + (", …" if len(unknown) > MAX_WORDS else "")
            notes.append(Note(Code.UNKNOWN_WORDS, f"words that {', '.join(ids)} never learnt: {shown}"))
    return notes
