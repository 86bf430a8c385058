"""What a whole request amounts to: its scores, what to know about them, and when it failed as a whole."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from models.core.contract import ModelInfo
from service.core.errors import REFUSALS, DeadlineExceeded, Fault, ScoregateError
from service.metrics.common.contract import Score
from service.observability.instruments import Instruments
from service.observability.notes import Code, Note, Warned
from service.scoring.items import UnopenedItem

MetricResult = Score | ScoregateError

MAX_WORDS = 20  # of one model that a warning names


@dataclass(frozen=True, slots=True)
class ItemReport:
    """What came of one item: a score or an error for each metric."""

    item: UnopenedItem
    outcomes: Mapping[str, MetricResult]

    @property
    def scores(self) -> dict[str, Score]:
        """The metrics that gave a score."""
        return {name: o for name, o in self.outcomes.items() if isinstance(o, Score)}

    @property
    def errors(self) -> dict[str, ScoregateError]:
        """The metrics that failed."""
        return {name: o for name, o in self.outcomes.items() if isinstance(o, ScoregateError)}

    def count(self, instruments: Instruments) -> None:
        """Show each outcome in the *instruments*."""
        for name, outcome in self.outcomes.items():
            instruments.count_score(name, outcome.value if isinstance(outcome, Score) else outcome)


@dataclass(frozen=True, slots=True)
class Report:
    """
    Attributes:
        items: in the request's order.
        models: the label (`id@revision`) of each model that the metrics may have asked, by configured name.
        notes: what the caller should know about models and prompts.
    """

    items: Sequence[ItemReport]
    models: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[Note] = ()

    @property
    def warnings(self) -> list[Warned]:
        """What the caller should know: the notes, then what the scores themselves warn about, in order."""
        of_scores = [
            Warned(note, index, name)
            for index, item in enumerate(self.items)
            for name, score in item.scores.items()
            for note in score.notes
        ]
        return [*map(Warned, self.notes), *of_scores]

    @property
    def partial(self) -> bool:
        """Whether some metric of some item failed."""
        return any(item.errors for item in self.items)

    def failure(self) -> ScoregateError | None:
        """Why the whole request failed: nothing has a score, since the time ran out or all was refused."""
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
        Raise where nothing has a score, for a reason that is the whole request's.

        Raises:
            DeadlineExceeded: the time ran out somewhere.
            LaneFull, Overloaded, NotReady: everything was refused.
        """
        if failure := self.failure():
            raise failure

    def count(self, instruments: Instruments) -> None:
        """Show each score and each warning in the *instruments*, and once each metric that was refused."""
        for item in self.items:
            item.count(instruments)
        for warned in self.warnings:
            instruments.warnings.labels(warned.note.code).inc()
        if self.partial and self.failure() is None:  # a refusal of the whole is counted as it is answered
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
    The one of *errors* that is the answer where nothing came of a request; of equals the first.

    What may pass by itself is told first, for then the same request may succeed: refusals, the longest
    wait before the others, then a deadline.  Faults of ours come next, and last what the caller got wrong.
    """
    return min(errors, key=lambda error: (rank(error), -(error.retry_after_s or 0.0)))


def rank(error: ScoregateError) -> int:
    """The lower, the more it tells about a whole request."""
    if isinstance(error, REFUSALS):
        return 0
    if isinstance(error, DeadlineExceeded):
        return 1
    return 2 if error.status >= 500 else 3


def notes(prompts: Iterable[str], models: Mapping[str, ModelInfo], demo: Collection[str]) -> list[Note]:
    """
    Demo models that were used, then words of the prompts that a model was never taught.

    Args:
        models: those that were used, by configured name.
        demo: names of demo models.
    """
    unknown = unknown_words(prompts, models.values())
    return [*used_demos([name for name in models if name in demo]), *unknown]


def used_demos(names: Sequence[str]) -> list[Note]:
    """A note about each demo model that was used."""
    meaning = "scores that rest on it mean nothing for real pictures"
    return [Note(Code.DEMO_MODEL, f"{name} is a demo model: {meaning}") for name in names]


def unknown_words(prompts: Iterable[str], models: Iterable[ModelInfo]) -> list[Note]:
    """A note for each vocabulary that lacks words of the *prompts*."""
    taught: dict[frozenset[str], list[str]] = {}
    for info in models:
        if info.vocabulary:
            taught.setdefault(info.vocabulary, []).append(info.id)
    if not taught:
        return []
    words = {word for prompt in prompts for word in re.findall(r"\w+", prompt.lower())}
    notes = []
    for vocabulary, ids in taught.items():
        if unknown := sorted(words - vocabulary):
            shown = ", ".join(unknown[:MAX_WORDS]) + (", …" if len(unknown) > MAX_WORDS else "")
            notes.append(Note(Code.UNKNOWN_WORDS, f"words that {', '.join(ids)} never learnt: {shown}"))
    return notes
