"""All kinds of local models, each with a small checkpoint."""

import shutil
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch

from models.checkpoints.locate import DEMO
from models.core.calls import (
    DetectCall,
    EntailmentCall,
    GenerateCall,
    ImageCall,
    RewardCall,
    TextCall,
)
from models.core.outcomes import Detections, Embedding, Entailment, Likelihood, Reward, Text
from models.families.question_llm.model import user_message
from models.images.image import Image
from tests.models.contract import references
from tests.models.contract.blips import BLIPS, likelihoods
from tests.models.contract.kind import Gpu, Kind
from tests.models.contract.qwens import REWARDS, VQAS
from tests.support import (
    artifact_checkpoints,
    clip_checkpoints,
    detector_checkpoints,
    image_classifiers,
    imagereward_checkpoints,
    nli_checkpoints,
    transformers_clips,
)
from tests.support.clip_checkpoints import noise

IMAGES = [Image.of(noise(*size)) for size in [(32, 32), (97, 41), (40, 123), (7, 5)]]

# --- models of pictures alone, and ImageReward --------------------------------------------------

SAID = imagereward_checkpoints.golden()
GOLDEN = {
    path.name: Image(path.read_bytes()) for path in (imagereward_checkpoints.GOLDEN / "images").iterdir()
}
GOLDEN_CALLS = [
    RewardCall(GOLDEN[row["image"]], SAID["prompts"][row["prompt"]]["text"]) for row in SAID["scores"]
]
IMAGEREWARD = Kind(
    family="imagereward",
    make=imagereward_checkpoints.imagereward,
    calls=GOLDEN_CALLS,
    every=9,
    result=Reward,
    reference=references.recorded(GOLDEN_CALLS, [[row["score"]] for row in SAID["scores"]]),
    near={"bfloat16": 0.3},
    rounded=lambda model: model._network.vision,
    exact=lambda model: [model._network.mlp],
    last=lambda model: model._network.mlp.layers[7].bias,
    parts=lambda model: [
        model._network.mlp,
        model._network.text.embeddings,
        model._network.vision.post_layernorm,
    ],
)


def of_open_clip(model: Any) -> Any:
    """Return weights that are not those of a norm, which stay in float32."""
    return model.network.visual.transformer.resblocks[0].mlp


def aesthetic(directory: Path) -> None:
    """A CLIP, and the head of version 1 for its embeddings."""
    clip_checkpoints.save_published(directory)
    head = {"weight": torch.linspace(-3, 4, 24)[None], "bias": torch.tensor([5.5])}
    torch.save(head, directory / "head.pth")


AESTHETIC = Kind(
    family="aesthetic",
    make=aesthetic,
    settings=lambda directory: {"head": str(directory / "head.pth")},
    calls=[*map(RewardCall, IMAGES), RewardCall(IMAGES[0], "a masterpiece")],
    result=Reward,
    near={"bfloat16": 0.3},
    rounded=lambda model: of_open_clip(model._clip),
    last=lambda model: model._head.bias,
    parts=lambda model: [model._clip.network],
)

RNG = np.random.default_rng(3)
SPOTS = [PIL.Image.fromarray(RNG.integers(0, 255, (*size, 3), np.uint8)) for size in ((40, 60), (90, 30))]
ARTIFACT = Kind(
    family="pal4vst",
    make=lambda directory: artifact_checkpoints.save(artifact_checkpoints.network(), directory / "pal.pth"),
    calls=[RewardCall(Image.of(picture)) for picture in SPOTS],
    result=Reward,
    reference=references.artifact_ratio,
    within=1e-4,
    near={"bfloat16": 0.1},
    rounded=lambda model: model._network,
    last=lambda model: model._network.decode_head.classifier.bias,
)


def classifier(kind: str) -> Kind:
    return Kind(
        family="image_classifier",
        make=partial(image_classifiers.save, kind=kind),
        settings=lambda directory: {"unsafe": image_classifiers.UNSAFE},
        calls=[*map(RewardCall, IMAGES)],
        result=Reward,
        reference=references.unsafe_shares,
        near={"bfloat16": 0.1},
        rounded=lambda model: model._network,
        last=lambda model: model._network.classifier.bias,
        parts=lambda model: [model._network.classifier],
    )


# --- detectors ----------------------------------------------------------------------------------

EVERYTHING = 0.05
WANTED = ("dog", "red cat", "tv remote")
SHAPES = [(50, 70), (60, 60), (50, 70), (200, 90)]
SCENES = [
    Image.of(PIL.Image.fromarray(np.random.default_rng(seed).integers(0, 256, (*shape, 3), np.uint8)))
    for seed, shape in enumerate(SHAPES)
]


def detector(make: Any, labels: tuple[str, ...], **parts: Any) -> Kind:
    return Kind(
        family=make.__name__,
        make=make,
        calls=[DetectCall(image, labels, EVERYTHING) for image in SCENES],
        result=Detections,
        rounded=lambda model: model._network,
        **parts,
    )


DETECTORS = {
    "mask2former": detector(
        detector_checkpoints.mask2former,
        (),
        last=lambda model: model._network.class_predictor.bias,
        parts=lambda model: [model._network.class_predictor],
        gpu=Gpu(dtype="float32", calls=1),
    ),
    "owlv2": detector(
        detector_checkpoints.owlv2,
        WANTED,
        last=lambda model: model._network.class_head.logit_shift.bias,
    ),
}

# --- texts --------------------------------------------------------------------------------------

ENTAILMENTS = [
    EntailmentCall("a red circle", "is there a circle ? yes"),
    EntailmentCall("the blue square", "what color is the square ? red"),
    EntailmentCall("a dog", "is there a cat ? no"),
    EntailmentCall("a", "cat"),
]


def nli(make: Any, reference: Any, last: Any) -> Kind:
    return Kind(
        family="transformers_nli",
        make=make,
        calls=ENTAILMENTS,
        result=Entailment,
        reference=reference,
        within=1e-6,
        near={"bfloat16": 0.1},
        rounded=lambda model: model._network._network,
        last=last,
    )


TEXTS = {
    "nli": nli(
        nli_checkpoints.classifier,
        references.entailment,
        lambda model: model._network._network.classifier.bias,
    ),
    "nli of RoBERTa": nli(
        nli_checkpoints.roberta,
        references.entailment,
        lambda model: model._network._network.classifier.out_proj.bias,
    ),
    "nli of TRUE": nli(
        nli_checkpoints.true,
        references.written_entailment,
        lambda model: model._network._network.lm_head.weight,
    ),
    "sentences": Kind(
        family="sentence_transformer",
        make=nli_checkpoints.sentences,
        calls=[*map(TextCall, ("a red circle", "the blue square is there ? yes", "dog"))],
        result=Embedding,
        reference=references.mean_state,
        within=1e-6,
        near={"bfloat16": 0.05},
        rounded=lambda model: model._network,
        last=lambda model: model._network.encoder.layer[-1].output.LayerNorm.bias,
        parts=lambda model: [model._network.embeddings],
    ),
    "questions": Kind(
        family="transformers",
        make=partial(shutil.copytree, DEMO / "question_llm", dirs_exist_ok=True),
        calls=[
            GenerateCall("Write questions.", user_message("dsg", prompt))
            for prompt in ("no star", "a red circle above a red square", "five rings", "a photo of a cat")
        ],
        result=Text,
        rounded=lambda model: model._network,
    ),
}

# --- CLIPs, and what is built on one ------------------------------------------------------------

EMBEDDED = [*map(ImageCall, IMAGES), *map(TextCall, ["a red circle", "Two RED cats", "", "a dog " * 40])]


def clip(family: str, make: Any, rounded: Any, **more: Any) -> Kind:
    return Kind(
        family=family,
        make=make,
        calls=EMBEDDED,
        result=Embedding,
        near={"bfloat16": 0.02},
        rounded=rounded,
        **more,
    )


def projection(model: Any) -> torch.Tensor:
    return model.network.visual.proj


def last_of_head(model: Any) -> torch.Tensor:
    return model.network.vision_model.head.mlp.fc2.bias


def last_of_blocks(model: Any) -> torch.Tensor:
    return model.network.vision_model.encoder.blocks[-1].projection.project_bn.bias


def of_texts(model: Any) -> list[torch.nn.Module]:
    return [model.network.text_model.embeddings]


CLIPS = {
    "clip": clip("open_clip", clip_checkpoints.save_own, of_open_clip, last=projection),
    "clip of transformers": clip("open_clip", clip_checkpoints.save_published, of_open_clip, last=projection),
    "clip_flant5": Kind(
        family="clip_flant5",
        make=partial(shutil.copytree, DEMO / "clip_flant5", dirs_exist_ok=True),
        settings=lambda directory: {"features_mb": 0},  # or a picture would pass by the vision tower
        calls=likelihoods(["a red circle?", "a blue square left of a green star", "star"]),
        result=Likelihood,
        rounded=lambda model: model.forward,
        last=lambda model: model.forward._head,
    ),
    **{
        kind: clip(
            "transformers_clip", partial(transformers_clips.save, kind), attrgetter("network"), **parts
        )
        for kind, parts in {
            "siglip": {"last": last_of_head, "parts": of_texts},
            "siglip2": {"last": last_of_head},  # on a GPU, its shapes depend on each picture's
            "align": {"last": last_of_blocks, "parts": of_texts},
        }.items()
    },
}

KINDS: dict[str, Kind] = {
    **BLIPS,
    **VQAS,
    **REWARDS,
    "imagereward": IMAGEREWARD,
    "aesthetic": AESTHETIC,
    "artifact": ARTIFACT,
    "vit": classifier("vit"),
    "convnext": classifier("convnext"),
    **DETECTORS,
    **TEXTS,
    **CLIPS,
}
