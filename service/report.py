"""What a whole request amounts to: its scores, what to know about them, and when it failed as a whole."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from models.contract import ModelInfo
from service.errors import DeadlineExceeded, Fault, LaneFull, NotReady, Overloaded, ScoregateError
from service.items import UnopenedItem
from service.metrics.contract import Score

Outcome = Score | ScoregateError

MAX_WORDS = 20  # of one model that a warning names


@dataclass(frozen=True, slots=True)
class ItemReport:
    """What came of one item: a score or an error for each metric."""

    item: UnopenedItem
    outcomes: Mapping[str, Outcome]

    @property
    def scores(self) -> dict[str, Score]:
        """The metrics that gave a score."""
        return {name: o for name, o in self.outcomes.items() if isinstance(o, Score)}

    @property
    def errors(self) -> dict[str, ScoregateError]:
        """The metrics that failed."""
        return {name: o for name, o in self.outcomes.items() if isinstance(o, ScoregateError)}


@dataclass(frozen=True, slots=True)
class Report:
    """
    Attributes:
        items: in the request's order.
        models: the label (`id@revision`) of each model that the metrics may have asked, by configured name.
        warnings: what the caller should know.
    """

    items: Sequence[ItemReport]
    models: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    @property
    def partial(self) -> bool:
        """Whether some metric of some item failed."""
        return any(item.errors for item in self.items)

    def raise_if_failed(self) -> None:
        """
        Raise where nothing has a score, for a reason that is the whole request's.

        Raises:
            DeadlineExceeded: the time ran out somewhere.
            LaneFull, Overloaded, NotReady: everything was refused.
        """
        if any(item.scores for item in self.items):
            return
        failed = [(item.item.place, error) for item in self.items for error in item.errors.values()]
        for _, error in failed:
            if isinstance(error, DeadlineExceeded):
                faults = [Fault(place, each.code, each.detail) for place, each in failed]
                raise DeadlineExceeded(stage=error.stage, faults=faults)
        if failed and all(isinstance(error, LaneFull | Overloaded | NotReady) for _, error in failed):
            raise failed[0][1]


def warnings(items: Sequence[ItemReport], models: Iterable[ModelInfo]) -> list[str]:
    """Words of the prompts that a model was never taught, then what the scores themselves warn about."""
    noted = {
        f"item {index}, {name}: {note}"
        for index, item in enumerate(items)
        for name, score in item.scores.items()
        for note in score.warnings
    }
    return [*unknown_words([item.item.prompt for item in items], models), *sorted(noted)]


def unknown_words(prompts: Iterable[str], models: Iterable[ModelInfo]) -> list[str]:
    """A sentence for each vocabulary that lacks words of the *prompts*."""
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
            notes.append(f"words that {', '.join(ids)} never learnt: {shown}")
    return notes
