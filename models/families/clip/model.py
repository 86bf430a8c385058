"""
CLIP (Radford et al. 2021) through open_clip: one embedding for an image, one for a text.

open_clip loads, preprocesses and tokenises, so embeddings equal open_clip's.  Nothing but plain tensors is
unpickled, and no code of a checkpoint is run.
"""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
import open_clip
import torch
from open_clip.modified_resnet import ModifiedResNet
from open_clip.transformer import Transformer
from transformers import AutoConfig

from models.checkpoints.files import CONFIG, OPEN_CLIP_CONFIG, read_json
from models.checkpoints.info import read_vocabulary
from models.checkpoints.weights import DTYPES
from models.core.calls import ImageCall, TextCall
from models.core.contract import CheckpointError, ModelError, ModelInfo, Prepared
from models.core.examples import grey
from models.core.outcomes import Embedding
from models.core.turn import LOADING
from models.families.clip import FAMILY, ClipSettings, transformers_layout
from models.families.clip.preprocessing import (
    OwnTokenizer,
    Preprocessing,
    named_tokenizer,
    own_tokenizer,
    unknown_token,
)
from models.families.clip.source import Found, fault, find, has_own_layout
from models.families.clip.towers import Input, check_ids, embed
from models.families.torchscript import Traced, pays_on
from models.images.pixels import Pixels, Preprocessor, middle


@dataclass(frozen=True, slots=True)
class Parts:
    """A network with its preprocessing and tokenizer; *crops*: the preprocessing crops the centre."""

    network: Any
    preprocess: Preprocessor
    tokenizer: Any
    crops: bool


def load_parts(found: Found, dtype: str, device: str, resize_mode: str | None = None) -> Parts:
    """
    Load the network, its preprocessing and its tokenizer.

    Args:
        resize_mode: overrides the checkpoint's way to make a picture square.

    Raises:
        CheckpointError: a file is missing or broken, or the weights don't fit.
    """
    directory = found.directory
    try:
        if directory is None or has_own_layout(directory):
            return load_open_clip(found, dtype, device, resize_mode)
        if not (directory / CONFIG).is_file():
            raise CheckpointError(f"{directory}: neither {OPEN_CLIP_CONFIG} nor transformers' {CONFIG} in it")
        if resize_mode is not None:
            raise CheckpointError(f"{directory}: resize_mode is for open_clip's own layout")
        return load_transformers(directory, dtype, device)
    except CheckpointError:
        raise
    except Exception as exc:  # open_clip, torch and transformers raise many kinds
        raise CheckpointError(fault(found, exc)) from exc


def load_open_clip(found: Found, dtype: str, device: str, resize_mode: str | None) -> Parts:
    """Load a model in open_clip's own layout, or by a name of open_clip."""
    if found.directory is not None and "model_cfg" not in read_json(found.directory / OPEN_CLIP_CONFIG):
        raise CheckpointError(f"{found.directory / OPEN_CLIP_CONFIG}: has no model_cfg")
    found.weights()  # raises if open_clip would read another file
    config = open_clip.get_model_config(found.open_clip_name)
    check_towers(found, config)
    if found.online and not found.directory:  # a tag of weights, which open_clip finds in the cache then
        with LOADING.released():
            open_clip.download_pretrained(open_clip.get_pretrained_cfg(found.name, found.pretrained))
    options = {"precision": precision(config, dtype), "device": device, "image_resize_mode": resize_mode}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "QuickGELU mismatch")  # then comes the wrong activation
        network = open_clip.create_model_from_pretrained(
            found.open_clip_name,
            found.pretrained or None,
            return_transform=False,
            weights_only=True,
            **options,
        )
    preprocess = Preprocessing.of(network.visual.preprocess_cfg)
    crops = preprocess.resize_mode == "shortest"
    return Parts(network.eval(), preprocess, named_tokenizer(found, config), crops)


def precision(config: dict[str, Any], dtype: str) -> str:
    """Return open_clip's name of *dtype*."""
    if dtype == "float32":
        return "fp32"
    # Its "bf16" keeps layer norms in float32, and fails with SigLIP's biased projection and CoCa's pooler.
    pure = config["text_cfg"].get("proj_bias") or config["vision_cfg"].get("attentional_pool")
    return "pure_bf16" if pure else "bf16"


def check_towers(found: Found, config: dict[str, Any]) -> None:
    """Reject a tower that needs a forbidden download, or that has code of its own."""
    if ":" in (config["vision_cfg"].get("timm_model_name") or ""):
        raise CheckpointError(
            f"{found.place}: the vision tower's configuration is on a hub, and is not downloaded"
        )
    text = config["text_cfg"].get("hf_model_name")
    if text and found.online:
        with LOADING.released():
            AutoConfig.from_pretrained(text, trust_remote_code=False)
    elif text and not Path(text).is_dir():
        raise CheckpointError(
            f"{found.place}: the text tower {text} is not a local directory, and is not downloaded"
        )


def load_transformers(directory: Path, dtype: str, device: str) -> Parts:
    """Load a model in the layout of transformers."""
    network = transformers_layout.network(directory, DTYPES[dtype]).to(device).eval()
    preprocess = transformers_layout.pixels(directory, network.visual.image_size[0])
    crops = isinstance(preprocess, Pixels)  # any other preprocessor squashes
    return Parts(network, preprocess, own_tokenizer(directory, network.context_length), crops)


def trace(network: Any) -> Traced:
    """
    Trace all transformers of *network*, and a ResNet, at their first run; return the holder of the traces.

    A part refers to itself weakly, so that a dropped network is freed at once.

    Their operations depend neither on the content nor on the number of rows.  That is not certain for towers
    of other libraries, so those are not traced.
    """
    run = Traced(untraced)
    network.requires_grad_(False)  # a trace cannot hold weights with gradients
    for part in network.modules():
        if type(part) is ModifiedResNet:
            part.forward = partial(run, ref(part))
        elif type(part) is Transformer:
            part.forward = partial(masked, run, ref(part))
    return run


def untraced(held: "ReferenceType[Any]", *given: Any) -> torch.Tensor:
    """Run open_clip's own code of a part."""
    part: Any = held()
    passed: torch.Tensor = type(part).forward(part, *given)
    return passed


def masked(run: Traced, part: Any, x: torch.Tensor, attn_mask: torch.Tensor | None = None) -> torch.Tensor:
    """Run a transformer, with open_clip's names of the arguments."""
    return run(part, x, attn_mask)


class Clip:
    """
    A loaded CLIP.

    Args:
        model: a directory in open_clip's format or in that of transformers (neither causes a request), a hub
            id, or a name of open_clip.
        pretrained: for a name, open_clip's tag of the weights or a file of them.
        resize_mode: "shortest", "longest" or "squash", overrides the checkpoint's own.
        dtype: "float32" or "bfloat16" (layer norms stay float32 if open_clip supports that).

    Raises:
        CheckpointError: a file is missing or unreadable, or the weights don't fit the configuration.
    """

    def __init__(
        self,
        model: str,
        *,
        pretrained: str | None = None,
        resize_mode: str | None = None,
        dtype: str,
        device: str,
        id: str = "",
        revision: str = "",
    ) -> None:
        found = find(model, pretrained, revision)
        parts = load_parts(found, dtype, device, resize_mode)
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        self.network, self.preprocess = parts.network, parts.preprocess
        self._traced = trace(self.network) if pays_on(self._device) else None
        self.tokenizer = parts.tokenizer
        # open_clip's tokenizers of transformers keep the last length, so each has a copy, for thread safety.
        stateless = isinstance(self.tokenizer, open_clip.SimpleTokenizer | OwnTokenizer)
        self._roomy = self.tokenizer if stateless else copy.deepcopy(self.tokenizer)
        self._length: int = self.tokenizer.context_length
        self._unknown = unknown_token(self.tokenizer)
        self._patches = count_patches(self.network.visual)
        self._vocabulary: int = getattr(self.network, "text", self.network).vocab_size
        self._crops = parts.crops
        self.info = ModelInfo(
            role=FAMILY.role,
            family=FAMILY.name,
            id=id or found.id,
            revision=found.revision,
            files=found.files,
            dtype=dtype,
            device=device,
            vocabulary=read_vocabulary(found.directory) if found.directory else frozenset(),
            logit_scale=float(self.network.logit_scale.detach().exp()),
            reentrant=True,
        )
        try:
            self.prepare(TextCall("the tokenizers take their settings now"))
        except ModelError as exc:
            raise CheckpointError(f"{model}: {exc}") from exc

    def prepare(self, call: ImageCall | TextCall) -> Prepared:
        """Preprocess an image or tokenise a text; the cost is the tower's length in tokens."""
        if isinstance(call, TextCall):
            tokens = self.tokenizer([call.text])[0]
            check_ids(tokens, self._vocabulary)
            return Prepared(self._length, self._input(call.text, tokens))
        rgb = middle(call.image.rgb) if self._crops else call.image.rgb
        try:
            pixels = self.preprocess.resized(rgb)
        except ValueError as exc:  # some of open_clip's modes round a thin strip to 0 pixels
            raise ModelError("the image is too thin for the model's preprocessing") from exc
        return Prepared(self._patches, Input("image", call.image.digest, (pixels,)))

    def _input(self, text: str, tokens: torch.Tensor) -> Input:
        return Input("text", text, (tokens,), self._cuts(text), self._unknown.share(tokens.tolist()))

    def _cuts(self, text: str) -> bool:
        """
        Return True if *text* is cut, at the tower's length or by <|endoftext|> in it.

        A word appended to it is lost then: up to the token that the tower reads the ids are the same.
        """
        one, more = self._roomy([text, f"{text} x"], context_length=self._length + 1)
        read = pooled(getattr(self.network, "text", self.network), one) + 1
        return torch.equal(one[:read], more[:read])

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Embedding]:
        """Run each tower once, on the distinct images and the distinct texts."""
        towers = {"image": self._see, "text": self.network.encode_text}
        return embed([prepared.data for prepared in batch], towers, self._device, self._dtype)

    def _see(self, pixels: torch.Tensor) -> torch.Tensor:
        """Run the image tower on resized pixels (n, 3, height, width)."""
        embedded: torch.Tensor = self.network.encode_image(self.preprocess.normalised(pixels).to(self._dtype))
        return embedded

    def example(self) -> ImageCall:
        return ImageCall(grey(336, 336))


def from_settings(settings: ClipSettings) -> Clip:
    """Load the CLIP of a table.  Raises `CheckpointError`."""
    return Clip(
        settings.model or settings.checkpoint,
        pretrained=settings.pretrained,
        resize_mode=settings.resize_mode,
        dtype=settings.dtype,
        device=settings.device,
        id=settings.id,
        revision=settings.revision,
    )


def pooled(tower: Any, ids: torch.Tensor) -> int:
    """Return the position of the token whose output is a text's embedding; the last if all may matter."""
    kind = getattr(tower, "text_pool_type", None) or getattr(tower, "pool_type", None)
    if kind == "argmax":
        return int(ids.argmax())
    if kind == "eos":
        end: int = getattr(tower, "text_eos_id", getattr(tower, "eos_id", -1))
        return int(ids.eq(end).int().argmax())
    return len(ids) - 1


def count_patches(visual: Any) -> int:
    """Count the patches of an image, or 16x16 squares if the tower has no patches."""
    sizes = np.broadcast_to(visual.image_size, 2) // np.broadcast_to(getattr(visual, "patch_size", 16), 2)
    return int(sizes.prod())
