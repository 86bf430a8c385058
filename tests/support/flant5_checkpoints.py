"""Checkpoints of CLIP-FlanT5: the golden one in other layouts, and random ones in other geometries."""

import json
import math
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import CLIPVisionConfig, CLIPVisionModel, T5Config, T5ForConditionalGeneration

from models.core.calls import LikelihoodCall
from models.core.outcomes import Likelihood
from models.families.clip_flant5.model import ClipFlanT5
from models.images.image import Image
from tests.support import paths

GOLDEN = paths.GOLDEN / "clip_flant5"
NUMBERS = json.loads((GOLDEN / "golden.json").read_text())
SHOWS = NUMBERS["templates"]["default"]["question_template"]

Tensors = dict[str, torch.Tensor]


def golden_weights() -> Tensors:
    """The golden checkpoint's tensors, each with memory of its own, as safetensors wants them."""
    held = torch.load(GOLDEN / "pytorch_model.bin", weights_only=True)
    return {name: tensor.clone() for name, tensor in held.items()}


def golden_copy(to: Path, change: Callable[[Tensors], Tensors] = dict, layout: str = "bin") -> Path:
    """The golden checkpoint in another *layout*, with *change* made to its tensors."""
    shutil.copytree(GOLDEN, to, ignore=shutil.ignore_patterns("images", "*.bin", "golden.json"))
    save(change(golden_weights()), to, layout)
    return to


def save(tensors: Tensors, directory: Path, layout: str) -> None:
    """Write weights as "bin" or "safetensors", or either "sharded"."""
    write: Callable[[Tensors, Path], None] = torch.save
    stem, ending = "pytorch_model", "bin"
    if "safetensors" in layout:
        write, stem, ending = save_file, "model", "safetensors"
    if "sharded" not in layout:
        write(tensors, directory / f"{stem}.{ending}")
        return
    names = sorted(tensors)
    held = {f"{stem}-0000{n}-of-00003.{ending}": names[n - 1 :: 3] for n in (1, 2, 3)}
    for shard, parts in held.items():
        write({name: tensors[name] for name in parts}, directory / shard)
    placed = {name: shard for shard, parts in held.items() for name in parts}
    index = {"metadata": {"total_size": 0}, "weight_map": placed}
    (directory / f"{stem}.{ending}.index.json").write_text(json.dumps(index))


def configure(directory: Path, file: str = "config.json", **values: Any) -> Path:
    """Set values of a JSON file; None takes one out."""
    path = directory / file
    held = json.loads(path.read_text()) | values
    path.write_text(json.dumps({name: value for name, value in held.items() if value is not None}))
    return directory


def load(directory: Path) -> ClipFlanT5:
    return ClipFlanT5(directory, dtype="float32", device="cpu")


@cache
def picture(number: int) -> Image:
    entry = NUMBERS["images"][number]
    return Image((GOLDEN / entry["file"]).read_bytes(), entry["sha256"])


def likelihoods(model: ClipFlanT5, pairs: list[tuple[int, int]]) -> list[Likelihood]:
    """What a model says of (image, prompt) pairs of the golden set, in one batch."""
    questions = [SHOWS.replace("{}", NUMBERS["prompts"][prompt]["text"]) for _, prompt in pairs]
    calls = [LikelihoodCall(picture(image), q) for (image, _), q in zip(pairs, questions, strict=True)]
    return model.score([model.prepare(call) for call in calls])


def score(likelihood: Likelihood) -> float:
    return math.exp(sum(likelihood.log_probs) / len(likelihood.log_probs))


# --- random checkpoints -------------------------------------------------------------------------


class Stock:
    """
    CLIP-FlanT5 of transformers' own classes with random weights, one pair at a time.

    *t5* and *tower* are settings of the two configurations that differ from the golden ones.
    """

    def __init__(self, t5: dict[str, Any], tower: dict[str, Any], seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.config = json.loads((GOLDEN / "config.json").read_text()) | t5
        self.tower_config = json.loads((GOLDEN / "vision_tower" / "config.json").read_text()) | tower
        sizes = {**self.config, "model_type": "t5", "initializer_factor": 1.0}
        self.t5 = T5ForConditionalGeneration(T5Config(**sizes)).eval()
        self.t5.lm_head.weight = torch.nn.Parameter(torch.randn_like(self.t5.shared.weight) / 4)
        self.tower = CLIPVisionModel(CLIPVisionConfig(**self.tower_config)).eval()
        width, seen = self.config["d_model"], self.tower_config["hidden_size"]
        first, second = torch.nn.Linear(seen, width), torch.nn.Linear(width, width)
        self.projector = torch.nn.Sequential(first, torch.nn.GELU(), second)

    def save(self, directory: Path) -> Path:
        """Write it in the published layout."""
        shutil.copytree(GOLDEN, directory, ignore=shutil.ignore_patterns("images", "*.bin", "golden.json"))
        (directory / "config.json").write_text(json.dumps(self.config))
        configure(directory, "vision_tower/config.json", **self.tower_config)
        side = self.tower_config["image_size"]
        configure(directory, "vision_tower/preprocessor_config.json", size=side, crop_size=side)
        tensors = dict(self.t5.state_dict())
        tensors |= {f"mm_projector.{name}": t for name, t in self.projector.state_dict().items()}
        prefix = "vision_tower.vision_tower.vision_model."
        tensors |= {f"{prefix}{name}": t for name, t in self.tower.state_dict().items()}
        save(tensors, directory, "bin")
        return directory

    @torch.inference_mode()
    def log_probs(self, pixels: torch.Tensor, before: list[int], after: list[int], rows: int) -> list[float]:
        """Of "Yes" and `</s>` with the softmax over the first *rows* pieces, each step written out."""
        states = [self.tower.pre_layrnorm(self.tower.embeddings(pixels[None]))]
        for layer in self.tower.encoder.layers:
            states.append(layer(states[-1], attention_mask=None))
        layer = self.config["mm_vision_select_layer"]
        image = self.projector(states[layer][0, 1:])
        text = self.t5.shared.weight
        embedded = torch.cat([text[before], image, text[after]])[None]
        labels = torch.tensor([[23, 1]])  # the golden tokenizer's
        logits = self.t5(inputs_embeds=embedded, labels=labels).logits[0, :, :rows]
        return logits.log_softmax(-1).gather(-1, labels[0][:, None])[:, 0].tolist()
