"""Results for a picture with its right and its wrong prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PROMPT_METRICS = {"vqascore": "VQAScore", "clipscore": "CLIPScore", "dsg": "DSG"}
METRICS = PROMPT_METRICS | {"geneval": "GenEval"}  # only for prompts with metadata


@dataclass(frozen=True, slots=True)
class Judged:
    """
    The service's results for a picture and a prompt.

    Attributes:
        scores, errors: by metric; neither for a metric that was not requested.
        questions: of DSG.
        found: the details of GenEval, with the objects in the picture; empty without.
    """

    prompt: str
    scores: Mapping[str, float]
    errors: Mapping[str, str]
    questions: Sequence[Mapping[str, Any]]
    found: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pair:
    """A picture with a prompt that is right for it and one that is wrong."""

    file: str
    picture: bytes
    right: Judged
    wrong: Judged

    def requested(self, metric: str) -> bool:
        """Return True if the metric was requested for it."""
        return metric in self.right.scores or metric in self.right.errors

    def distinguishes(self, metric: str) -> bool:
        """Return True if the right prompt scored above the wrong one; False if a score is missing."""
        right, wrong = self.right.scores.get(metric), self.wrong.scores.get(metric)
        return right is not None and wrong is not None and right > wrong
