"""
A CLIP in the layout of transformers, the only one that infinity supports; the service supports it, too.

The demo's CLIP is a ResNet in open_clip's layout.  This one has random weights and about the same cost: a
vision transformer of 26 tokens, and the same text tower.  Its scores mean nothing.
"""

import json
from pathlib import Path

import open_clip
import torch
from transformers import CLIPConfig, CLIPModel

SIDE = 80  # the side of the demo's CLIP
TEXT = {"hidden_size": 96, "intermediate_size": 384, "num_hidden_layers": 3, "num_attention_heads": 4}
VISION = {"hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 4}
SPECIAL = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}
PROCESSOR = {
    "image_processor_type": "CLIPImageProcessor",
    "size": {"shortest_edge": SIDE},
    "crop_size": {"height": SIDE, "width": SIDE},
    "resample": 3,
}
TOKENIZER = {
    "tokenizer_class": "CLIPTokenizer",
    "model_max_length": 32,
    "bos_token": "<|startoftext|>",
    "eos_token": "<|endoftext|>",
    "unk_token": "<|endoftext|>",
    "pad_token": "<|endoftext|>",
}


def make_checkpoint(directory: Path) -> Path:
    """Create the checkpoint in *directory* if it is missing, and return it; always with the same weights."""
    if (directory / "model.safetensors").is_file():
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    config = CLIPConfig(
        text_config={**TEXT, "max_position_embeddings": 32, "eos_token_id": 49407, "bos_token_id": 49406},
        vision_config={**VISION, "image_size": SIDE, "patch_size": 16},
        projection_dim=128,
    )
    words = open_clip.SimpleTokenizer()
    pieces = {SPECIAL.get(piece, piece): number for piece, number in words.encoder.items()}
    merges = ["#version: 0.2", *(" ".join(pair) for pair in words.bpe_ranks)]
    write(directory / "preprocessor_config.json", json.dumps(PROCESSOR))
    write(directory / "tokenizer_config.json", json.dumps(TOKENIZER))
    write(directory / "vocab.json", json.dumps(pieces, ensure_ascii=False))
    write(directory / "merges.txt", "\n".join(merges) + "\n")
    CLIPModel(config).eval().save_pretrained(directory)  # the weights last: they mark it as complete
    return directory


def write(file: Path, text: str) -> None:
    file.write_text(text, "utf-8")
