"""
The stable import for packages with metrics or families of models of their own.

All other modules of `service` and `models` may change in any version.
"""

from models.core.calls import (
    Call,
    DetectCall,
    EditCall,
    GenerateCall,
    ImageCall,
    LikelihoodCall,
    RewardCall,
    TextCall,
    VideoCall,
)
from models.core.contract import (
    CheckpointError,
    Model,
    ModelError,
    ModelInfo,
    Post,
    Prepared,
    RemoteModel,
    UpstreamError,
)
from models.core.family import Family, Plan, Served, Signs
from models.core.outcomes import CallResult, Detection, Detections, Embedding, Likelihood, Reward, Text
from models.core.settings import NOT_IN_RECIPE, LocalSettings, ModelSettings, RemoteSettings
from models.images.image import Image, ImageError
from service.core.errors import CallRefused, Invalid, ModelFault, NotReady
from service.metrics.common.contract import Item, Metric, MetricOptions, Score, TogetherOptions, TrainerFormat
from service.metrics.common.model_calls import ModelCalls
from service.questions.sets import Question, QuestionSet
from service.questions.style import Style
from service.serving.admission import Demand

__all__ = [
    "NOT_IN_RECIPE",
    "Call",
    "CallRefused",
    "CallResult",
    "CheckpointError",
    "Demand",
    "DetectCall",
    "Detection",
    "Detections",
    "EditCall",
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
    "ModelCalls",
    "ModelError",
    "ModelFault",
    "ModelInfo",
    "ModelSettings",
    "NotReady",
    "Plan",
    "Post",
    "Prepared",
    "Question",
    "QuestionSet",
    "RemoteModel",
    "RemoteSettings",
    "Reward",
    "RewardCall",
    "Score",
    "Served",
    "Signs",
    "Style",
    "Text",
    "TextCall",
    "TogetherOptions",
    "TrainerFormat",
    "UpstreamError",
    "VideoCall",
]
