"""
Outcomes: what a model says of one call.

Each kind is one class, which knows whether its numbers are finite and how it is written down and read
again, to the last bit.  Outcomes are never pickled.
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
