"""What the service said of a picture with its right and its wrong prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

METRICS = {"vqascore": "VQAScore", "clipscore": "CLIPScore", "dsg": "DSG"}


@dataclass(frozen=True, slots=True)
class Judged:
    """What the service says of a picture and a prompt: scores and errors by metric, DSG questions."""

    prompt: str
    scores: Mapping[str, float]
    errors: Mapping[str, str]
    questions: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Pair:
    """A picture with a prompt that is right for it and one that is wrong."""

    file: str
    picture: bytes
    right: Judged
    wrong: Judged

    def told_apart(self, metric: str) -> bool:
        """Whether the right prompt scored above the wrong one; a missing score tells nothing."""
        right, wrong = self.right.scores.get(metric), self.wrong.scores.get(metric)
        return right is not None and wrong is not None and right > wrong
