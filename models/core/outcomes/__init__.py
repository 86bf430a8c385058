"""
Outcomes: results of calls.

Each kind is a class that can check its numbers, and write and read itself without loss.  Outcomes are never
pickled.
"""

from models.core.outcomes.choices import Choices, FirstToken
from models.core.outcomes.contract import CallResult
from models.core.outcomes.detections import Detection, Detections
from models.core.outcomes.embedding import Embedding
from models.core.outcomes.entailment import Entailment
from models.core.outcomes.likelihood import Likelihood
from models.core.outcomes.reading import Line, Reading
from models.core.outcomes.reward import Reward
from models.core.outcomes.text import Text

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
