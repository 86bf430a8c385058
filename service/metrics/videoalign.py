"""
VideoAlign (Liu et al. 2025): visual quality, motion quality and text alignment of a video.

Quality and alignment of a video, by VideoAlign, which the released code also calls VideoReward. It reads
all frames and the prompt in one pass, and has a token for each of three outputs; the score is their sum.
Each has been normalised as the checkpoint's `model_config.json` says, as in the released code.

An item with one frame, such as a still picture, is `missing_picture`. Frames are scored together: the
option `frames` has no effect.
"""

from math import inf

from typing_extensions import TypedDict

from models.core.calls import VideoCall
from models.families.videoalign import REPOSITORY
from service.core.errors import MissingImage
from service.metrics.common.contract import Item, Metric, Score, TogetherOptions
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.outputs import with_outputs

ROLE = "videoalign"


class VideoAlignOptions(TogetherOptions):
    """Options of `videoalign`."""


class VideoAlignDetails(TypedDict):
    """
    Details of `videoalign`.

    Attributes:
        visual, motion, text: the outputs of the head about visual quality, motion quality and text alignment,
            normalised as the checkpoint's settings say.
        frames_used: the number of frames that the model was shown.
    """

    visual: float
    motion: float
    text: float
    frames_used: int


async def videoalign(item: Item, models: ModelCalls, options: VideoAlignOptions) -> Score:
    """
    Return the sum of the three outputs for the item's frames and prompt.

    Raises:
        MissingImage: the item has one frame.
    """
    if not item.frames:
        raise MissingImage("videoalign needs a video, or several frames, and the item has one frame")
    [found] = await models.ask(ROLE, [VideoCall(item.frames, item.prompt)])
    total, visual, motion, text = found.outputs
    details: VideoAlignDetails = {
        "visual": visual,
        "motion": motion,
        "text": text,
        "frames_used": len(item.frames),
    }
    return Score(total, details)


OUTPUTS = {
    "visual": "the output of the head about visual quality",
    "motion": "the output of the head about motion quality",
    "text": "the output of the head about text alignment",
}

metric = with_outputs(
    Metric(
        "videoalign",
        videoalign,
        options=VideoAlignOptions,
        details=VideoAlignDetails,
        roles=(ROLE,),
        range=(-inf, inf),
        formula="visual + motion + text",
        paper="Liu et al. 2025, arXiv 2501.13918",
        own_model=True,
        weights=REPOSITORY,
        needs="a video",
    ),
    OUTPUTS,
)
