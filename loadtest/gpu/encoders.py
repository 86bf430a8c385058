"""
Encoders: pictures a second of each CLIP and reward model, with `score` of the service and without it.

The service's figure begins with resized pixels in memory and ends with results in memory; the others begin
and end on the device.  Weights are random, so each model is put together without a checkpoint.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import open_clip
import torch
from transformers import (
    Blip2Config,
    Blip2ForImageTextRetrieval,
    BlipImageProcessorPil,
    BlipTextConfig,
    BlipVisionConfig,
    CLIPConfig,
    CLIPModel,
    Mask2FormerConfig,
    Mask2FormerImageProcessor,
    SiglipConfig,
    SiglipImageProcessor,
    SiglipModel,
    SwinConfig,
)

from loadtest.forward import default_dtype
from loadtest.gpu.bench import Bench, drop
from loadtest.gpu.geometry import CLIP_H, CLIP_L, DETECTOR, IMAGEREWARD, ITM, SIGLIP, Config
from loadtest.gpu.results import Row
from loadtest.gpu.steps import Step
from models.core.contract import Prepared
from models.families.blip_itm.model import KINDS, BlipItm, blip_2
from models.families.clip.model import Clip
from models.families.clip.towers import Input
from models.families.clip.transformers_layout import open_clip_config
from models.families.detector.image import PreparedImage
from models.families.detector.mask2former import Mask2Former, Mask2FormerNetwork
from models.families.imagereward.model import ImageReward, ImageRewardNetwork
from models.families.inputs import ImageAndText
from models.families.processors import ProcessorPixels
from models.families.reward_heads import Layers
from models.families.transformers_clip.model import TransformersClip
from models.images.pixels import Pixels

TOKENS = 16  # length of a prompt
Own = Callable[[torch.Tensor], object]
Score = Callable[[Sequence[Prepared]], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Encoder:
    """
    A model with random weights.

    Attributes:
        score: of the service, for a list of what *ready* returns.
        ready: the prepared call of a picture, by its number.
        own: the forward pass of a library by the library's name, for pixels on the device.
    """

    score: Score
    ready: Callable[[int], Prepared]
    own: Mapping[str, Own]
    side: int


def steps(bench: Bench) -> Iterator[Step]:
    """Yield each model with each batch."""
    for name, config in bench.geometry.encoders.items():
        made = cache(partial(MAKERS[name], bench, config))
        for images in bench.geometry.images:
            yield Step(f"{name}, {images}", partial(measure, bench, name, made, images))
        drop(made)


def measure(bench: Bench, name: str, made: Callable[[], Encoder], images: int) -> Iterator[Row]:
    """Measure a batch of distinct pictures, in the service and in each library."""
    encoder, what = made(), f"{name}, {images} at once"
    batch = [encoder.ready(number) for number in range(images)]
    pixels = torch.zeros(images, 3, encoder.side, encoder.side, device=bench.device)
    runs = {
        f"{what}, {library}": torch.inference_mode()(partial(own, pixels.to(bench.torch_dtype)))
        for library, own in encoder.own.items()
    }
    last = [*runs.values()][-1]
    operations = bench.operations(last)  # open_clip's attention is fused with more, and not counted
    yield rate(bench, what, images, operations, lambda: scored(encoder.score, batch))
    for each, run in runs.items():
        yield rate(bench, each, images, operations, run)


def scored(score: Score, batch: Sequence[Prepared]) -> list[Any]:
    """Return the results of a batch.  Raises the error of a call."""
    results = [*score(batch)]
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def rate(bench: Bench, what: str, images: int, operations: int, run: Callable[[], object]) -> Row:
    """Return pictures a second of *run*, after a first run that warms up."""
    run()
    batch_s = bench.pace_s(run)
    return Row(what, images / batch_s, "pictures/s", share=operations / batch_s / bench.peak)


# --- models without a checkpoint ----------------------------------------------------------------


def random_module(bench: Bench, make: Callable[[], torch.nn.Module], dtype: torch.dtype | None = None) -> Any:
    """Return a module with random weights, made on the device, by default in the run's dtype."""
    torch.manual_seed(0)
    dtype = dtype or bench.torch_dtype
    with torch.device(bench.device), default_dtype(dtype):
        return make().eval().to(bench.device, dtype)  # a few of transformers' parameters pass by the device


def bare(bench: Bench, kind: type, **parts: Any) -> Any:
    """Return a model of a class of the service with the attributes that it scores with."""
    made: Any = object.__new__(kind)
    vars(made).update(_device=bench.device, _dtype=bench.torch_dtype, **parts)
    return made


def bytes_of(side: int) -> torch.Tensor:
    """Return random pixels of 8 bits, as a resize makes them."""
    return torch.randint(256, (3, side, side), dtype=torch.uint8)


def image(side: int, number: int) -> Prepared:
    """Return a picture as a CLIP takes it."""
    return Prepared(1, Input("image", str(number), (bytes_of(side),)))


def pair(side: int, number: int) -> Prepared:
    """Return a picture with a prompt as a reward model takes it."""
    ids = tuple(range(5, 5 + TOKENS))
    return Prepared(1, ImageAndText(str(number), bytes_of(side), ids, truncated=False, unknown=0.0))


def match(side: int, number: int) -> Prepared:
    """Return a picture with a prompt as a model of matches takes it, without the cosine."""
    prepared = pair(side, number)
    return replace(prepared, data=(prepared.data, False))


def clip(bench: Bench, config: Config) -> Encoder:
    """Return a CLIP of open_clip, with the forward passes of open_clip and transformers."""
    known = CLIPConfig(**config)
    half = bench.torch_dtype if bench.dtype != "float32" else None
    shape, side = open_clip_config(Path(), known), known.vision_config.image_size
    network = random_module(bench, lambda: open_clip.CLIP(**shape, cast_dtype=half), torch.float32)
    if half:
        open_clip.convert_weights_to_lp(network, half)  # layer norms stay in float32
    theirs = random_module(bench, lambda: CLIPModel(known))
    model = bare(bench, Clip, network=network, preprocess=Pixels(side, pad=False))
    own = {
        "open_clip": network.encode_image,
        "transformers": lambda pixels: theirs.get_image_features(pixel_values=pixels),
    }
    return Encoder(model.score, partial(image, side), own, side)


def siglip(bench: Bench, config: Config) -> Encoder:
    """Return a SigLIP; version 2 at a fixed size has its network."""
    network = random_module(bench, lambda: SiglipModel(SiglipConfig(**config)))
    side = network.config.vision_config.image_size
    pixels = ProcessorPixels(SiglipImageProcessor(), Path())
    model = bare(bench, TransformersClip, network=network, _pixels=pixels)
    own = {"transformers": lambda pixels: network.get_image_features(pixel_values=pixels)}
    return Encoder(model.score, partial(image, side), own, side)


def prompts(bench: Bench, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ids of as many prompts, and their mask."""
    ids = torch.arange(5, 5 + TOKENS, device=bench.device).expand(count, -1)
    return ids, torch.ones_like(ids)


def imagereward(bench: Bench, config: Config) -> Encoder:
    """Return an ImageReward, whose head is float32."""
    vision = BlipVisionConfig(**config["vision_config"])
    text = config["text_config"] | {"encoder_hidden_size": vision.hidden_size, "is_decoder": True}
    widths = [text["hidden_size"], 1024, 128, 64, 16]
    network = random_module(bench, lambda: ImageRewardNetwork(vision, BlipTextConfig(**text), Layers(widths)))
    network.mlp.float()
    side = vision.image_size
    model = bare(bench, ImageReward, _network=network, _pixels=Pixels(side, pad=False))

    def own(pixels: torch.Tensor) -> object:
        return network(pixels, torch.arange(len(pixels), device=bench.device), *prompts(bench, len(pixels)))

    return Encoder(model.score, partial(pair, side), {"its network": own}, side)


def itm(bench: Bench, config: Config) -> Encoder:
    """Return a BLIP-2 ITM; only its vision tower has the dtype."""
    known = Blip2Config(image_text_hidden_size=256, **config)
    known.qformer_config.encoder_hidden_size = known.vision_config.hidden_size
    known.qformer_config.use_qformer_text_input = True
    network = random_module(bench, lambda: Blip2ForImageTextRetrieval(known)).float()
    network.vision_model.to(bench.torch_dtype)
    side = known.vision_config.image_size
    pixels = ProcessorPixels(BlipImageProcessorPil(), Path())
    model = bare(bench, BlipItm, network=network, _kind=KINDS["blip-2"], _first=None, _pixels=pixels)

    def own(pixels: torch.Tensor) -> object:
        seen = network.vision_model(pixel_values=pixels).last_hidden_state.float()
        return blip_2(network, seen, *prompts(bench, len(pixels)))

    return Encoder(model.score, partial(match, side), {"its network": own}, side)


def detector(bench: Bench, config: Config) -> Encoder:
    """Return a Mask2Former with a Swin backbone."""
    side = config["side"]
    stages = [f"stage{number}" for number in range(1, 5)]
    sizes = {name: value for name, value in config.items() if name != "side"}
    sizes["backbone_config"] = SwinConfig(**config["backbone_config"], out_features=stages)
    known = Mask2FormerConfig(**sizes, id2label={number: str(number) for number in range(80)})
    network = random_module(bench, lambda: Mask2FormerNetwork(known))
    labels = tuple(map(str, range(80)))
    pixels = ProcessorPixels(Mask2FormerImageProcessor(), Path())
    model = bare(bench, Mask2Former, _network=network, _labels=labels, _pixels=pixels)

    def ready(number: int) -> Prepared:
        return Prepared(1, PreparedImage(bytes_of(side), (side, side), threshold=0.5))

    return Encoder(model.score, ready, {"its network": network}, side)


MAKERS: Mapping[str, Callable[[Bench, Config], Encoder]] = {
    CLIP_L: clip,
    CLIP_H: clip,
    SIGLIP: siglip,
    IMAGEREWARD: imagereward,
    ITM: itm,
    DETECTOR: detector,
}
