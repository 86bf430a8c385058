"""Known scores of pictures, and their comparison with a service's."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TIE = 0.005  # known scores that differ by no more have no order


@dataclass(frozen=True, slots=True)
class Case:
    """A picture with a prompt, and the known score; *name* is for people."""

    name: str
    picture: Path
    prompt: str
    score: float


@dataclass(frozen=True, slots=True)
class Known:
    """
    Known scores of one metric by one model.

    Attributes:
        model: a pattern that is searched in the `label` of a model.
        tolerance: for each score.
        groups: cases by name.  The order of the scores must hold within each.
        hint: how to have them checked.
    """

    metric: str
    model: re.Pattern[str]
    tolerance: float
    groups: Mapping[str, Sequence[Case]]
    hint: str

    @property
    def cases(self) -> list[Case]:
        """All cases, group by group."""
        return [case for group in self.groups.values() for case in group]


def label(model: Mapping[str, str]) -> str:
    """Return the identity of a model of `GET /models`, on which its scores depend."""
    return f"{model['id']}@{model.get('revision', '')} in {model.get('dtype', '')}"


def disordered(known: Sequence[float], scores: Sequence[float]) -> list[tuple[int, int]]:
    """Return the pairs whose order differs; known scores within `TIE` of each other have none."""
    pairs = [(a, b) for a in range(len(scores)) for b in range(a)]
    return [
        (a, b)
        for a, b in pairs
        if abs(known[a] - known[b]) > TIE and (known[a] - known[b]) * (scores[a] - scores[b]) <= 0
    ]
