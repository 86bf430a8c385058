"""
CLIP (Radford et al. 2021) through open_clip: one embedding for an image, one for a text.

open_clip's public API does the loading, the preprocessing and the tokenising, so an embedding here
is the one that open_clip's users get.
"""

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import open_clip
import PIL.Image
import torch
import torch.nn.functional as F

from models.base import (
    CheckpointError,
    Embedding,
    Image,
    ImageCall,
    ModelError,
    ModelInfo,
    Prepared,
    TextCall,
)
from models.checkpoint import DTYPES, digest_of, read_json, read_vocabulary

PRECISIONS = {"float32": "fp32", "bfloat16": "bf16"}  # open_clip's names
CONFIG = "open_clip_config.json"
DATA = (".json", ".safetensors", ".bin", ".pt", ".pth", ".txt", ".model")
LONGEST = 64  # sides; what is cut off a longer strip is far outside the centre crop


@dataclass(frozen=True, slots=True)
class Input:
    """One tower's input; calls with equal keys have equal tensors."""

    tower: Literal["image", "text"]
    key: str
    tensor: torch.Tensor
    truncated: bool = False


class Clip:
    """
    A loaded CLIP.

    Args:
        model: a directory in open_clip's format (never causes a request), or a name open_clip knows.
        pretrained: for a name, open_clip's tag of the weights or a file of them.
        dtype: "float32" or "bfloat16" (open_clip's "bf16": layer norms stay float32).

    Raises:
        CheckpointError: a file is missing or unreadable, or the weights don't fit the configuration.
    """

    def __init__(
        self,
        model: str,
        *,
        pretrained: str | None = None,
        dtype: str,
        device: str,
        id: str = "",
        revision: str = "",
    ) -> None:
        directory = Path(model.removeprefix("local-dir:"))
        local = directory.is_dir()
        if local:
            check_local(directory)
        elif not pretrained or model.replace("/", "-") not in open_clip.list_models():
            raise CheckpointError(
                f"{model}: neither a directory nor a name with `pretrained` that open_clip knows"
            )
        name = f"local-dir:{directory}" if local else model
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        self.network, self.preprocess, self.tokenizer = load(name, pretrained, dtype, device)
        # Tokenizers keep their last settings, so each length has its own: `prepare` is thread-safe.
        self._roomy = copy.deepcopy(self.tokenizer)
        self._length: int = self.tokenizer.context_length
        self._patches = count_patches(self.network.visual)
        self._crops = self.network.visual.preprocess_cfg["resize_mode"] == "shortest"
        self.info = ModelInfo(
            role="clip",
            family="open_clip",
            id=id or (directory.name if local else model),
            revision=revision or revision_of(directory, local, pretrained),
            dtype=dtype,
            device=device,
            vocabulary=read_vocabulary(directory) if local else frozenset(),
        )
        self.prepare(TextCall("the tokenizers take their settings now"))

    def prepare(self, call: ImageCall | TextCall) -> Prepared:
        """Preprocess an image or tokenise a text; the cost is the tower's length in tokens."""
        if isinstance(call, TextCall):
            tokens = self.tokenizer([call.text])[0]
            return Prepared(self._length, Input("text", call.text, tokens, self._cuts(call.text)))
        rgb = middle(call.image.rgb) if self._crops else call.image.rgb
        try:
            pixels = self.preprocess(rgb)
        except ValueError as exc:  # some of open_clip's modes round a thin strip to no pixels
            raise ModelError("the image is too thin for the model's preprocessing") from exc
        return Prepared(self._patches, Input("image", call.image.digest, pixels))

    def _cuts(self, text: str) -> bool:
        """Whether the tower doesn't see all of *text*: then one more word past its end is lost too."""
        one, more = self._roomy([text, f"{text} x"], context_length=self._length + 1)
        return torch.equal(one, more)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Embedding | ModelError]:
        """One pass of each tower, over the distinct images and the distinct texts."""
        inputs: list[Input] = [prepared.data for prepared in batch]
        towers = {"image": self.network.encode_image, "text": self.network.encode_text}
        vectors: dict[tuple[str, str], np.ndarray | None] = {}
        for tower, encode in towers.items():
            tensors = {input.key: input.tensor for input in inputs if input.tower == tower}
            if tensors:
                rows = self._embed(encode, torch.stack(list(tensors.values())))
                vectors |= {(tower, key): row for key, row in zip(tensors, rows, strict=True)}
        return [outcome(vectors[input.tower, input.key], input.truncated) for input in inputs]

    def _embed(
        self, encode: Callable[[torch.Tensor], torch.Tensor], tensors: torch.Tensor
    ) -> list[np.ndarray | None]:
        """Unit vectors, read-only, each with memory of its own; None where one is not finite."""
        tensors = tensors.to(self._device)
        if tensors.is_floating_point():
            tensors = tensors.to(self._dtype)
        rows = F.normalize(encode(tensors).float(), dim=-1).cpu().numpy()
        return [frozen(row) if np.isfinite(row).all() else None for row in rows]

    def example(self) -> ImageCall:
        """A grey square."""
        return ImageCall(Image(PIL.Image.new("RGB", (336, 336), (128, 128, 128)), "example"))


def outcome(vector: np.ndarray | None, truncated: bool) -> Embedding | ModelError:
    """An embedding, or why there is none."""
    return ModelError("the model's output is not finite") if vector is None else Embedding(vector, truncated)


def frozen(row: np.ndarray) -> np.ndarray:
    """A read-only copy: a cached row must not keep its whole batch in memory."""
    copied = row.copy()
    copied.flags.writeable = False
    return copied


def middle(rgb: PIL.Image.Image) -> PIL.Image.Image:
    """
    The middle of a very long strip.

    Resizing the shorter side up to the model's size first, as open_clip does, takes gigabytes for a
    16000x1 picture; only the middle square of the result is kept.
    """
    longest = LONGEST * min(rgb.size)
    left, top = ((side - min(side, longest)) // 2 for side in rgb.size)
    return rgb.crop((left, top, rgb.width - left, rgb.height - top)) if left or top else rgb


def count_patches(visual: Any) -> int:
    """Patches of an image, or pieces of 16x16 pixels where the tower has no patches."""
    sizes = np.broadcast_to(visual.image_size, 2) // np.broadcast_to(getattr(visual, "patch_size", 16), 2)
    return int(sizes.prod())


# --- loading ------------------------------------------------------------------------------------


def check_local(directory: Path) -> None:
    """Refuse a directory that names a part which open_clip would fetch from elsewhere."""
    config = read_json(directory / CONFIG).get("model_cfg", {})
    text, vision = config.get("text_cfg", {}), config.get("vision_cfg", {})
    hub_text = text.get("hf_model_name")
    if (hub_text and not Path(hub_text).is_dir()) or ":" in (vision.get("timm_model_name") or ""):
        raise CheckpointError(f"{directory / CONFIG}: a tower's configuration lies on a hub")


def load(name: str, pretrained: str | None, dtype: str, device: str) -> tuple[Any, Any, Any]:
    """The network, its preprocessing and its tokenizer, from open_clip."""
    try:
        config = open_clip.get_model_config(name)
        with warnings.catch_warnings():  # open_clip would go on with the wrong activation
            warnings.filterwarnings("error", "QuickGELU mismatch")
            network, preprocess = open_clip.create_model_from_pretrained(
                name, pretrained, precision=PRECISIONS[dtype], device=device, weights_only=True
            )
        from_hub = bool(config["text_cfg"].get("hf_tokenizer_name"))
        safe = {"trust_remote_code": False} if from_hub else {}
        tokenizer = open_clip.get_tokenizer(name, **safe)
    except Exception as exc:  # open_clip, torch and transformers raise many kinds
        raise CheckpointError(f"{name}: {' '.join(str(exc).split())[:300]}") from exc
    return network.eval(), preprocess, tokenizer


def revision_of(directory: Path, local: bool, pretrained: str | None) -> str:
    """What names the weights: the content of local files, or open_clip's tag."""
    if local:
        return digest_of(path for path in sorted(directory.iterdir()) if path.suffix in DATA)
    if pretrained and Path(pretrained).is_file():
        return digest_of([Path(pretrained)])
    return pretrained or ""
