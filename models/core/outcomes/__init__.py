"""
Outcomes: results of calls.

Each kind is a class that can check its numbers, and write and read itself without loss.  Outcomes are never
pickled.
"""

from models.core.outcomes.contract import CallResult
from models.core.outcomes.detections import Detection, Detections
from models.core.outcomes.numbers import Choices, Embedding, Entailment, FirstToken, Likelihood, Reward
from models.core.outcomes.text import Line, Reading, Text

__all__ = [
    "CallResult",
    "Choices",
    "Detection",
    "Detections",
    "Embedding",
    "Entailment",
    "FirstToken",
    "Likelihood",
    "Line",
    "Reading",
    "Reward",
    "Text",
]
