"""
Outcomes: what a model says of one call.

Each kind is one class, which knows whether its numbers are finite and how it is written down and read
again, to the last bit.  Outcomes are never pickled.
"""

from models.outcomes.choices import Choices, FirstToken
from models.outcomes.contract import Outcome
from models.outcomes.detections import Detection, Detections
from models.outcomes.embedding import Embedding
from models.outcomes.entailment import Entailment
from models.outcomes.likelihood import Likelihood
from models.outcomes.reading import Line, Reading
from models.outcomes.reward import Reward
from models.outcomes.text import Text

__all__ = [
    "Choices",
    "Detection",
    "Detections",
    "Embedding",
    "Entailment",
    "FirstToken",
    "Likelihood",
    "Line",
    "Outcome",
    "Reading",
    "Reward",
    "Text",
]
