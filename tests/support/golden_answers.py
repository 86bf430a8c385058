"""
Numbers that every model's answers rest on: pixels, and answers of a small checkpoint of each family.

`python -m tests.support.golden_answers` records them in `tests/golden/arithmetic.json`.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from math import log
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import numpy as np
import PIL.Image
import torch
from transformers import CLIPImageProcessorPil

from models.core.calls import (
    Call,
    ChoiceCall,
    ContrastCall,
    DetectCall,
    EditCall,
    EntailmentCall,
    FirstTokenCall,
    ImageCall,
    LabelCall,
    LikelihoodCall,
    ProgressCall,
    RerankCall,
    RewardCall,
    TextCall,
    VideoCall,
)
from models.core.contract import RemoteModel
from models.core.outcomes import (
    Choices,
    Detection,
    Detections,
    Embedding,
    Entailment,
    FirstToken,
    Likelihood,
    Reading,
    Reward,
    packed,
)
from models.families.registry import families
from models.images.frame_stack import FrameStack
from models.images.grid import Grid
from models.images.image import Image
from models.images.pixels import Pixels
from service.metrics.objects.detections import Cutout
from tests.support import (
    artifact_checkpoints,
    blip_checkpoints,
    detector_checkpoints,
    image_classifiers,
    nli_checkpoints,
    transformers_clips,
    vl_checkpoints,
)
from tests.support.clip_checkpoints import save_published
from tests.support.fake_openai import decided
from tests.support.films import film
from tests.support.imagereward_checkpoints import imagereward
from tests.support.paths import GOLDEN

RECORDED = GOLDEN / "arithmetic.json"
DIGITS = 4

FLANT5 = GOLDEN / "clip_flant5"
FILES = sorted(FLANT5.glob("images/*.*"))
PICTURE = Image((FLANT5 / "images" / "a1_tall_rgb.png").read_bytes())
PHOTO = Image((GOLDEN / "tifa_pictures" / "drawbench_8.jpg").read_bytes())
SQUARES = Image((FLANT5 / "images" / "a0_square_rgb.png").read_bytes())
DOG, PROMPT = "Is there a red dog?", "a red dog on a blue square"
POLICY = "Does this image show cruelty?"  # the server answers "Yes" or "No" to it


def answers() -> dict[str, Callable[[Path], list[float]]]:
    """What makes the numbers of each name; the folder is for a checkpoint."""
    return {
        **{f"pixels of {path.name}": pixels_of(path.read_bytes()) for path in FILES},
        **{
            f"pixels of a {kind} film": lambda _, kind=kind: of_film(FrameStack(film(kind))) for kind in KINDS
        },
        "pixels of a grid": lambda _: bytes_of(Grid([PHOTO, PICTURE], ["", ""]).rgb),
        "pixels of a cutout": lambda _: bytes_of(cutout().rgb),
        "pixels padded": lambda _: sampled(Pixels(32)(PHOTO.rgb)),
        "pixels cropped": lambda _: sampled(Pixels(32, pad=False)(PICTURE.rgb)),
        "pixels cropped to even": lambda _: sampled(Pixels(32, pad=False, to_even=True)(PHOTO.rgb)),
        "open_clip": family("open_clip", CLIP_CALLS, checkpoint="demo:clip"),
        **{
            f"open_clip {mode}": family(
                "open_clip", [ImageCall(PICTURE)], checkpoint="demo:clip", resize_mode=mode
            )
            for mode in ("shortest", "longest", "squash")
        },
        "open_clip of transformers": made(
            "open_clip", squashing, [*CLIP_CALLS, TextCall("a “red” dog’s bowl")]
        ),
        "aesthetic": aesthetic,
        "blip_itm": made("blip_itm", blip_checkpoints.blip, [RewardCall(PICTURE, PROMPT)]),
        "blip_itm with [ENC]": made(
            "blip_itm",
            lambda folder: blip_checkpoints.blip(folder, vocab_size=20, bos_token_id=18),
            [RewardCall(PICTURE, PROMPT)],
        ),
        "blip_itm contrast": made("blip_itm", blip_checkpoints.blip, [ContrastCall(PICTURE, PROMPT)]),
        "blip_vqa": made("blip_vqa", blip_checkpoints.blip_vqa, VQA_CALLS),
        "clip_flant5": family("clip_flant5", VQA_CALLS, checkpoint=str(FLANT5)),
        "demo_grader": family("demo_grader", GRADER_CALLS, checkpoint="demo:clip_flant5"),
        "imagereward": made("imagereward", imagereward, [RewardCall(PHOTO, PROMPT)]),
        "hpsv3": made("hpsv3", vl_checkpoints.hpsv3, [RewardCall(PHOTO, PROMPT)]),
        "hpsv3pp": made("hpsv3pp", vl_checkpoints.hpsv3pp, [ProgressCall(PHOTO, PROMPT, 0.3)]),
        "editreward": made("editreward", vl_checkpoints.editreward, [EditCall(PHOTO, PROMPT, PICTURE)]),
        "videoalign": made("videoalign", vl_checkpoints.videoalign, [VideoCall((PHOTO, PHOTO), PROMPT)]),
        "instructblip": made("instructblip", blip_checkpoints.instructblip, [LikelihoodCall(PICTURE, DOG)]),
        **{
            f"qwen_vl {kind}": made(
                "qwen_vl", lambda folder, kind=kind: vl_checkpoints.qwen_vl(folder, kind), VLM_CALLS
            )
            for kind in vl_checkpoints.VQA_KINDS
        },
        "mask2former": family("mask2former", [DetectCall(SQUARES, (), 0.3)], checkpoint="demo:detector"),
        "owlv2": made("owlv2", detector_checkpoints.owlv2, [DetectCall(PICTURE, ("dog", "red cat"), 0.1)]),
        "transformers_nli": family("transformers_nli", NLI_CALLS, checkpoint="demo:nli"),
        "transformers_nli TRUE": made("transformers_nli", nli_checkpoints.true, NLI_CALLS),
        **{
            f"transformers_clip {kind}": made(
                "transformers_clip",
                lambda folder, kind=kind: transformers_clips.save(kind, folder),
                CLIP_CALLS,
            )
            for kind in ("siglip", "siglip2", "align")
        },
        "pal4vst": made(
            "pal4vst",
            lambda folder: artifact_checkpoints.save(artifact_checkpoints.network(), folder / "pal.pth"),
            [RewardCall(PHOTO)],
        ),
        **{
            f"image_classifier {kind}": made(
                "image_classifier",
                lambda folder, kind=kind: image_classifiers.save(folder, kind),
                [RewardCall(PHOTO), RewardCall(PICTURE)],
                unsafe=image_classifiers.UNSAFE,
            )
            for kind in ("vit", "convnext")
        },
        "onnx_classifier": family("onnx_classifier", [RewardCall(PHOTO)], **image_classifiers.OPEN_NSFW),
        "rapidocr": family("rapidocr", None),
        "sentence_transformer": made(
            "sentence_transformer", nli_checkpoints.sentences, [TextCall(PROMPT), TextCall(DOG)]
        ),
        "openai_vlm": family("openai_vlm", VLM_CALLS, base_url="http://m/v1", model="m"),
        "decisions": family("decisions", DECISION_CALLS, base_url="http://m/v1", model="m"),
        "openai_reward": family(
            "openai_reward", [RewardCall(PICTURE, PROMPT)], base_url="http://m/v1", model="m"
        ),
        "openai_rerank": family(
            "openai_rerank", [RerankCall(PICTURE, PROMPT)], base_url="http://m/v1", model="m"
        ),
        "openai_clip": family("openai_clip", CLIP_CALLS, base_url="http://m/v1", model="m"),
        "openai_safety": family(
            "openai_safety", [RewardCall(PICTURE)], base_url="http://m/v1", model="m", policy=POLICY
        ),
        "openai_embedding": family("openai_embedding", [TextCall(PROMPT)], base_url="http://m/v1", model="m"),
    }


KINDS = ("GIF", "WEBP")
SUREST = 4  # objects that are recorded
DEMO_WIDTH = 128  # of the shipped CLIP's embeddings
CLIP_CALLS = [ImageCall(PHOTO), ImageCall(PICTURE), TextCall(PROMPT)]
NLI_CALLS = [EntailmentCall("a red circle is there", "Is there a red dog? yes")]
VQA_CALLS: list[Call] = [
    LikelihoodCall(PICTURE, DOG),
    ChoiceCall(PHOTO, "What is it?", ("a dog", "a red square")),
    FirstTokenCall(PICTURE, DOG, ("yes", "no")),
]
GRADER_CALLS = [LabelCall(SQUARES, 'Grade 1 to 3: does it show "a red square"?', ("1", "2", "3"))]
DECISION_CALLS: list[Call] = [LikelihoodCall(PICTURE, DOG), *VQA_CALLS[1:2]]
VLM_CALLS: list[Call] = [
    *VQA_CALLS,
    LabelCall(PICTURE, DOG, ("A", "B"), ("before it", PHOTO)),
]


def pixels_of(file: bytes) -> Callable[[Path], list[float]]:
    """The pixels of a picture file."""
    return lambda _: bytes_of(Image(file).rgb)


def cutout() -> Image:
    """One object of the photo: all of its box but for the first rows."""
    mask = np.ones((60, 80), bool)
    mask[:20] = False
    return Cutout(PHOTO, Detection("dog", 0.5, (10.0, 20.0, 90.0, 80.0), packed(mask)))


def family(name: str, calls: list[Any] | None, **settings: Any) -> Callable[[Path], list[float]]:
    """What a model of the family answers to *calls*, to its own example where there are none."""

    def answered(_: Path) -> list[float]:
        declared = families()[name]
        table = declared.settings(family=name, role=declared.role, **settings)
        model = declared.load(name, table)
        prepared = [model.prepare(call) for call in calls or [model.example()]]
        if isinstance(model, RemoteModel):
            found = [asyncio.run(model.answer(each, server)) for each in prepared]
        else:
            found = model.score(prepared)
        return [number for outcome in found for number in numbers(outcome)]

    return answered


def made(
    name: str, save: Callable[[Path], object], calls: list[Any], **settings: Any
) -> Callable[[Path], list[float]]:
    """The same for a checkpoint that *save* makes."""

    def answered(folder: Path) -> list[float]:
        save(folder)
        return family(name, calls, checkpoint=str(folder), **settings)(folder)

    return answered


def squashing(folder: Path) -> None:
    """A CLIP in transformers' format that squashes pictures, without a tokenizer."""
    save_published(folder)
    CLIPImageProcessorPil(size={"height": 32, "width": 32}, do_center_crop=False).save_pretrained(folder)


def aesthetic(folder: Path) -> list[float]:
    """A head of one layer on the shipped CLIP."""
    weight = torch.linspace(-3, 4, DEMO_WIDTH)[None]
    torch.save({"weight": weight, "bias": torch.tensor([5.5])}, folder / "head.pth")
    head = str(folder / "head.pth")
    return family("aesthetic", [RewardCall(PHOTO)], checkpoint="demo:clip", head=head)(folder)


async def server(path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """What an OpenAI-compatible server says: numbers that depend on the texts of the request."""
    if path == "../tokenize":
        return {"tokens": [crc32(body["prompt"].encode()) % 997], "token_strs": [body["prompt"]]}
    if path == "embeddings":
        [shown] = body.get("input", ["a chat"])
        return {"data": [{"embedding": [crc32(shown.encode()) % 997 - 500, 100, -200]}]}
    if path == "score":
        return {"data": [{"score": crc32(body["data_1"].encode()) % 997 / 1000}]}
    if path == "decisions":
        return {"answers": [decided(question) for question in body["questions"]]}
    asked = crc32("".join(each.get("text", "|") for each in body["messages"][0]["content"]).encode())
    if path == "../classify":
        return {"data": [{"probs": [asked % 997 / 100, 0.5]}]}
    said = [
        {"token": f"token_id:{token}", "logprob": -((asked + token) % 997) / 100}
        for token in body["logprob_token_ids"]
    ]
    return {"choices": [{"message": {"content": ""}, "logprobs": {"content": [{"top_logprobs": said}]}}]}


def numbers(outcome: Any) -> list[float]:
    """An outcome as numbers: a vector's sampled, places in parts of the picture, texts by their sum."""
    match outcome:
        case Embedding(vector):
            return sampled(vector)
        case Detections(found):
            sides = max(PICTURE.size)
            return [number for each in found[:SUREST] for number in (each.score, *np.divide(each.box, sides))]
        case Reading(lines):
            return [
                float(crc32("".join(line.text for line in lines).encode()) % 997),
                *map(attrgetter("confidence"), lines),
            ]
        case Likelihood(log_probs, yes, no):
            return [*log_probs, yes, no]
        case Choices(log_probs):
            return [number for tokens in log_probs for number in tokens]
        case FirstToken(log_probs):
            return [*log_probs]
        case Reward(outputs):
            return [*outputs]
        case Entailment(probability):
            return [log(probability / (1 - probability))]
    raise TypeError(f"nothing is recorded of a {type(outcome).__name__}")


def bytes_of(picture: PIL.Image.Image) -> list[float]:
    """Those of a picture, from 0 to 1."""
    return sampled(np.asarray(picture) / 255)


def of_film(found: FrameStack) -> list[float]:
    """Those of all frames, one below the other."""
    frames = [found.frame(number).rgb for number in range(found.header.frames)]
    return sampled(np.concatenate([np.asarray(frame) for frame in frames]) / 255)


def sampled(values: Any) -> list[float]:
    """The mean of an array, and twelve of its values from all over it."""
    flat = np.asarray(values, float).ravel()
    return [float(flat.mean()), *map(float, flat[:: max(1, len(flat) // 12 - 1)][:12])]


def rounded(values: list[float]) -> list[float]:
    """As they are recorded."""
    return [round(value, DIGITS) + 0.0 for value in values]


if __name__ == "__main__":
    found = {}
    for name, make in answers().items():
        with TemporaryDirectory() as folder:
            found[name] = rounded(make(Path(folder)))
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in found.items())
    RECORDED.write_text(f"{{\n{lines}\n}}\n")
