"""The scores of the authors' package for pictures and prompts, and how a model here computes them."""

from models.core.calls import RewardCall
from models.images.image import Image
from tests.support.imagereward_checkpoints import GOLDEN, golden

SAID = golden()
PROMPTS = [prompt["text"] for prompt in SAID["prompts"]]
PICTURES = {path.name: Image(path.read_bytes()) for path in (GOLDEN / "images").iterdir()}
CALLS = [RewardCall(PICTURES[row["image"]], PROMPTS[row["prompt"]]) for row in SAID["scores"]]
ON_THE_CPU = {"dtype": "float32", "device": "cpu"}


def rewards(model, *calls):
    return [outcome.value for outcome in model.score([model.prepare(call) for call in calls])]
