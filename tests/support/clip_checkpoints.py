"""Small random CLIPs, saved in the layouts that the service reads."""

import json
import logging
import shutil
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import open_clip
import PIL.Image
import torch
from safetensors.torch import save_file
from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, CLIPTokenizer

import models
from models.families.clip.model import Clip

DEMO = Path(models.__file__).parent / "demo" / "weights" / "clip"

TEXT = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
VIT = {"image_size": 32, "patch_size": 8, "width": 32, "layers": 2, "head_width": 16}
PLAIN = {"embed_dim": 24, "vision_cfg": VIT, "text_cfg": TEXT}
OWN_WORDS = {**TEXT, "vocab_size": 1003, "hf_tokenizer_name": "own"}
OWN: dict[str, dict[str, torch.Tensor]] = {}  # weights of open_clip's layout by the configuration
TINY = "ViT-test-8"  # the name that PLAIN goes by in tests that make it known to open_clip


def clip(model: object, **more: Any) -> Clip:
    return Clip(str(model), dtype="float32", device="cpu", **more)


def noise(width: int, height: int) -> PIL.Image.Image:
    """A picture of random colours, always the same for a size; coarse, so that resizing leaves some of it."""
    pixels = Random(f"{width}x{height}").randbytes(12 * 9 * 3)
    return PIL.Image.frombytes("RGB", (12, 9), pixels).resize((width, height))


def randomise(network: torch.nn.Module) -> None:
    """Weights large enough that texts and images differ, the same at each call."""
    generator = torch.Generator().manual_seed(7)
    for name, tensor in sorted(network.state_dict().items()):
        if tensor.ndim > 1:
            spread = 0.6 if "embedding" in name else tensor.shape[-1] ** -0.5
            tensor.normal_(0, spread, generator=generator)


def save_own(
    directory: Path,
    config: dict = PLAIN,
    preprocess: dict | None = None,
    weights="open_clip_model.safetensors",
) -> Path:
    """A checkpoint in open_clip's own layout."""
    directory.mkdir(exist_ok=True)
    whole = {"model_cfg": config, "preprocess_cfg": preprocess or {}}
    (directory / "open_clip_config.json").write_text(json.dumps(whole))
    if config["text_cfg"].get("hf_tokenizer_name"):
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(DEMO / name, directory)
    configured = json.dumps(whole)
    if configured not in OWN:
        logging.disable()  # open_clip warns that the weights are random
        network = open_clip.create_model(f"local-dir:{directory}", load_weights=False, pretrained_text=False)
        logging.disable(logging.NOTSET)
        randomise(network)
        OWN[configured] = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    state = OWN[configured]
    if weights.endswith(".safetensors"):
        save_file(state, directory / weights)
    else:
        torch.save({"state_dict": state}, directory / weights)
    return directory


def plain_embeddings(
    directory: Path, images: list[PIL.Image.Image], texts: list[str], **more: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of images and texts, each of length 1, as open_clip's README computes them."""
    name = f"local-dir:{directory}"
    network, _, preprocess = open_clip.create_model_and_transforms(name, **more)
    network.eval()
    words = open_clip.get_tokenizer(name)
    with torch.no_grad():
        seen = network.encode_image(torch.stack([preprocess(image) for image in images]))
        read = network.encode_text(words(texts))
        seen /= seen.norm(dim=-1, keepdim=True)
        read /= read.norm(dim=-1, keepdim=True)
        return seen.numpy(), read.numpy()


def plain_cosines(
    directory: Path, images: list[PIL.Image.Image], texts: list[str], **more: Any
) -> np.ndarray:
    """Each image's cosine with each text."""
    seen, read = plain_embeddings(directory, images, texts, **more)
    return seen @ read.T


@cache
def published_tokenizer() -> CLIPTokenizer:
    """CLIP's tokenizer as transformers has it, made of the pieces that open_clip ships."""
    words = open_clip.SimpleTokenizer()
    special = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}
    pieces = {special.get(piece, piece): number for piece, number in words.encoder.items()}
    return CLIPTokenizer(vocab=pieces, merges=list(words.bpe_ranks), pad_token="<|endoftext|>")


def save_published(
    directory: Path, text: dict | None = None, vision: dict | None = None, **more: Any
) -> CLIPModel:
    """
    A checkpoint as transformers saves one, without a processor, as PickScore is published.

    Returns:
        Its network, which no test changes: checkpoints of the same configuration have one.
    """
    network = published_network(json.dumps([text or {}, vision or {}, more]))
    network.save_pretrained(directory)
    return network


@cache
def published_network(configured: str) -> CLIPModel:
    """The network of a configuration, of which many tests change a file."""
    text, vision, more = json.loads(configured)
    common = {"hidden_size": 32, "intermediate_size": 70, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = CLIPConfig(
        text_config={**common, **text},
        vision_config={**common, "image_size": 32, "patch_size": 8, **vision},
        **{"projection_dim": 24, **more},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # the network is the same, whichever test needs it first
        network = CLIPModel(config).eval()
        randomise(network)
    return network


def published_cosines(network: CLIPModel, images: list[PIL.Image.Image], texts: list[str]) -> np.ndarray:
    """Each image's cosine with each text, as PickScore's README computes it, without the scale."""
    edge = network.config.vision_config.image_size
    pixels = CLIPImageProcessorPil(size={"shortest_edge": edge}, crop_size={"height": edge, "width": edge})
    length = network.config.text_config.max_position_embeddings
    with torch.no_grad():
        found = network(
            **pixels(images, return_tensors="pt"),
            **published_tokenizer()(
                texts, padding=True, truncation=True, max_length=length, return_tensors="pt"
            ),
        )
        return (found.image_embeds @ found.text_embeds.T).numpy()
