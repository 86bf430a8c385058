"""
The one stable import for packages that bring metrics or families of models along.

Everything else below `service` and `models` may change from one version to the next.
"""

from models.calls import Call, DetectCall, GenerateCall, ImageCall, LikelihoodCall, TextCall
from models.contract import (
    CheckpointError,
    Model,
    ModelError,
    ModelInfo,
    Post,
    Prepared,
    RemoteModel,
    UpstreamError,
)
from models.family import Family, Plan
from models.image import Image, ImageError
from models.outcomes import Detection, Detections, Embedding, Likelihood, Outcome, Text
from models.settings import NOT_IN_RECIPE, LocalSettings, ModelSettings, RemoteSettings
from service.errors import CallRefused, Invalid, ModelFault, NotReady
from service.metrics.contract import Item, Metric, MetricOptions, Score, TrainerFormat
from service.metrics.models import Models
from service.questions.sets import Question, QuestionSet
from service.questions.style import Style
from service.serving.demand import Demand

__all__ = [
    "NOT_IN_RECIPE",
    "Call",
    "CallRefused",
    "CheckpointError",
    "Demand",
    "DetectCall",
    "Detection",
    "Detections",
    "Embedding",
    "Family",
    "GenerateCall",
    "Image",
    "ImageCall",
    "ImageError",
    "Invalid",
    "Item",
    "Likelihood",
    "LikelihoodCall",
    "LocalSettings",
    "Metric",
    "MetricOptions",
    "Model",
    "ModelError",
    "ModelFault",
    "ModelInfo",
    "ModelSettings",
    "Models",
    "NotReady",
    "Outcome",
    "Plan",
    "Post",
    "Prepared",
    "Question",
    "QuestionSet",
    "RemoteModel",
    "RemoteSettings",
    "Score",
    "Style",
    "Text",
    "TextCall",
    "TrainerFormat",
    "UpstreamError",
]
