"""The largest batches of a CLIP-FlanT5, and their memory."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from models.checkpoints.weights import DTYPES
from models.core.contract import Prepared
from models.core.family import Memory
from models.core.settings import Batch
from models.families.clip_flant5 import ClipFlanT5Settings
from models.families.clip_flant5.answers import AnswerQuery, choices
from models.families.clip_flant5.features import FeatureCache
from models.families.clip_flant5.forward import Forward
from models.families.clip_flant5.network import Network
from models.families.clip_flant5.scoring import Pair, Scorer
from models.families.clip_flant5.tokenizer import CONTEXT_LENGTH, EOS
from models.images.pixels import Pixels
from models.sizing.memory import full, predicted

BEFORE, AFTER = 33, 30  # tokens of the fixed text ahead of the image, and of an ordinary question behind it
ANSWER = (EOS, EOS)  # two tokens, as "Yes" and `</s>` are
FEW = {"num_layers": 2, "num_decoder_layers": 2}
FEW_OF_VISION = {"num_hidden_layers": 3}  # the last is not run if its input is used

Json = dict[str, Any]


def memory_of(config: Json, vision: Json, settings: ClipFlanT5Settings) -> Memory | None:
    """
    Predict the memory of a network with T5's *config* and a *vision* tower's, with a full cache of features.

    Layers free all their activations, so a network with few of them suffices for those.  Operations are
    scaled to all layers, which have nearly all.
    """
    whole = predicted(settings.device, lambda: scorer(config, vision, settings), lambda _: ())
    few = predicted(
        settings.device,
        lambda: scorer(config | FEW, vision | FEW_OF_VISION, settings),
        lambda _: full_batches(vision, settings.batch),
    )
    kept = settings.features_mb * 2**20
    deeper = config["num_layers"] / FEW["num_layers"]
    return whole and few and Memory(whole.weights, few.activations + kept, int(deeper * few.operations))


def scorer(config: Json, vision: Json, settings: ClipFlanT5Settings) -> Scorer:
    """Build the part that runs on the device, without tokenizer and cache."""
    device, dtype = torch.device(settings.device), DTYPES[settings.dtype]
    forward = Forward(Network(config, vision), device=device, dtype=dtype)
    return Scorer(forward, FeatureCache(0), Pixels(vision["image_size"]))


def full_batches(vision: Json, batch: Batch) -> Iterator[list[Prepared]]:
    """Yield the largest batches: with the most calls, the longest questions, and the longest answers."""
    ordinary = prepared(vision, AFTER, ANSWER).cost
    longer = max(0, batch.max_cost_tokens // batch.max_items - ordinary)
    for question, answer in (
        (AFTER + longer, ANSWER),
        (CONTEXT_LENGTH - BEFORE - 1, ANSWER),
        (AFTER, (EOS,) * CONTEXT_LENGTH),
    ):
        yield full(batch, prepared(vision, question, answer), "digest")


def prepared(vision: Json, question: int, answer: tuple[int, ...]) -> Prepared:
    """Return a call with that many tokens of question."""
    side, text = vision["image_size"], ((EOS,) * BEFORE, (EOS,) * question)
    query = AnswerQuery((answer,), tuple(enumerate(answer)), partial(choices, False, 0.0, [len(answer)]))
    patches = (side // vision["patch_size"]) ** 2
    pair = Pair("", torch.empty(3, side, side, dtype=torch.uint8), text, query)
    return Prepared(BEFORE + patches + question + len(answer), pair)
