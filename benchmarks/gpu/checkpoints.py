"""Checkpoints with random weights in the layouts that are published, so that the real loaders read them."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import open_clip
import torch
from safetensors.torch import save_file
from transformers import CLIPConfig

from benchmarks.forward import DEMO, default_dtype, random_network
from benchmarks.gpu.bench import Bench
from models.checkpoints.files import read_json
from models.families.clip.transformers_layout import open_clip_config
from models.families.clip_flant5.layout import Tokenizer
from models.families.clip_flant5.network import ALIASES

TOWER = "vision_tower"
COMPLETE = "complete"  # a file that is written last


def flant5(bench: Bench) -> Path:
    """Return the directory of the CLIP-FlanT5 that is served; write it if it is not there."""
    size, (config, tower) = next(iter(bench.geometry.flant5.items()))
    directory = bench.folder / f"clip-flant5-{size.lower()}-{config['d_model']}"
    if (directory / COMPLETE).exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(DEMO, directory, ignore=shutil.ignore_patterns("*.safetensors", "vocabulary.txt"))
    pieces = Tokenizer(directory / "spiece.model", extra_ids=0).size
    change(directory / "tokenizer_config.json", extra_ids=config["vocab_size"] - pieces)
    change(directory / "config.json", **config)
    change(directory / TOWER / "config.json", **tower)
    side = tower["image_size"]
    sizes = {"size": {"shortest_edge": side}, "crop_size": {"height": side, "width": side}}
    change(directory / TOWER / "preprocessor_config.json", **sizes)
    network = random_network(config, tower, bench.device, bench.torch_dtype)
    write(directory / "model.safetensors", {
        name.removeprefix("t5.").replace(f"{TOWER}.", f"{TOWER}.{TOWER}.vision_model.", 1): tensor
        for name, tensor in network.state_dict().items()
        if name not in ALIASES
    })  # fmt: skip
    (directory / COMPLETE).touch()
    return directory


def clip(bench: Bench, name: str) -> Path:
    """Return the directory of a CLIP, by its name in the geometry, in open_clip's layout; likewise."""
    config = CLIPConfig(**bench.geometry.encoders[name])
    directory = bench.folder / f"{name.partition(' (')[0].replace('/', '-').replace(' ', '-').lower()}"
    directory = directory.with_name(f"{directory.name}-{config.vision_config.hidden_size}")
    if (directory / COMPLETE).exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    shape = open_clip_config(directory, config)
    (directory / "open_clip_config.json").write_text(json.dumps({"model_cfg": shape, "preprocess_cfg": {}}))
    with torch.device(bench.device), default_dtype(bench.torch_dtype):
        network: Any = open_clip.CLIP(**shape)
    write(directory / "open_clip_model.safetensors", network.state_dict())
    (directory / COMPLETE).touch()
    return directory


def write(file: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write *tensors* by name."""
    save_file({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, file)


def change(file: Path, **values: Any) -> None:
    """Set values of a JSON file."""
    file.write_text(json.dumps(read_json(file) | values, indent=2) + "\n")
