"""Small random CLIPs of the kinds that transformers computes, saved as it saves them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import sentencepiece
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AlignConfig,
    AlignModel,
    AutoModel,
    AutoProcessor,
    EfficientNetImageProcessor,
    Siglip2Config,
    Siglip2ImageProcessor,
    Siglip2Model,
    Siglip2Tokenizer,
    SiglipConfig,
    SiglipImageProcessor,
    SiglipModel,
)

from models.checkpoints.files import PIECES
from tests.support.clip_checkpoints import randomise

LENGTHS = {"siglip": 12, "siglip2": 12, "align": 64}  # tokens of a text
PATCHES = {"patch_size": 8, "max_num_patches": 16}
WORDS = "a red circle blue square dog on the grass two cats star"
TOWER = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}


def save(kind: str, directory: Path) -> Path:
    """A checkpoint with its tokenizer and its image processor."""
    directory.mkdir(parents=True, exist_ok=True)
    network = {"siglip": siglip, "siglip2": siglip2, "align": align}[kind](directory)
    randomise(network)
    network.eval().save_pretrained(directory)
    return directory


def siglip(directory: Path) -> SiglipModel:
    """SigLIP: SentencePiece, pictures squashed to a square."""
    pieces(directory)
    SiglipImageProcessor(size={"height": 32, "width": 32}).save_pretrained(directory)
    text = {**TOWER, "vocab_size": 64, "max_position_embeddings": LENGTHS["siglip"]}
    vision = {**TOWER, "image_size": 32, "patch_size": 8}
    return SiglipModel(SiglipConfig(text_config=text, vision_config=vision))


def siglip2(directory: Path) -> Siglip2Model:
    """SigLIP 2 that keeps a picture's shape; to its tokenizer every letter is a token."""
    letters = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", *sorted({*WORDS} - {" "})]
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    Siglip2Tokenizer(vocabulary, [], model_input_names=["input_ids"]).save_pretrained(directory)
    Siglip2ImageProcessor(**PATCHES).save_pretrained(directory)
    text = {**TOWER, "vocab_size": 64, "max_position_embeddings": LENGTHS["siglip2"]}
    vision = {**TOWER, "patch_size": 8, "num_patches": 16}
    return Siglip2Model(Siglip2Config(text_config=text, vision_config=vision))


def align(directory: Path) -> AlignModel:
    """ALIGN: an EfficientNet, which sees the middle of a picture, and a BERT."""
    words(directory, lower=True, names=["input_ids", "attention_mask"])
    EfficientNetImageProcessor(
        size={"height": 40, "width": 40},
        crop_size={"height": 32, "width": 32},
        do_center_crop=True,
        rescale_factor=1 / 127.5,
        rescale_offset=True,
        include_top=False,
    ).save_pretrained(directory)
    text = {**TOWER, "vocab_size": 64, "max_position_embeddings": 80}
    vision = {
        "image_size": 32,
        "width_coefficient": 1.0,
        "depth_coefficient": 1.0,
        "in_channels": [32, 8],
        "out_channels": [8, 24],
        "kernel_sizes": [3, 3],
        "strides": [1, 2],
        "num_block_repeats": [1, 1],
        "expand_ratios": [1, 2],
        "hidden_dim": 24,
    }
    return AlignModel(AlignConfig(text_config=text, vision_config=vision, projection_dim=24))


def pieces(directory: Path) -> None:
    """A SentencePiece model of a few words and letters, in SigLIP's own class."""
    with (directory / PIECES).open("wb") as model:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([WORDS] * 40),
            model_writer=model,
            vocab_size=40,
            hard_vocab_limit=False,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            minloglevel=2,
        )
    said = {"tokenizer_class": "SiglipTokenizer", "model_input_names": ["input_ids"]}
    (directory / "tokenizer_config.json").write_text(json.dumps(said))


def words(directory: Path, *, lower: bool, names: list[str]) -> None:
    """A tokenizer that knows a few words, some of them with a capital."""
    listed = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS.split(), "Red", "Dog"]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(listed)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if lower:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(directory / "tokenizer.json"))
    said = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "model_input_names": names,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(said))


@torch.no_grad()
def cosines(kind: str, directory: Path, images: list[PIL.Image.Image], texts: list[str]) -> np.ndarray:
    """Each image's cosine with each text by transformers' own model and processor, one pair at a time."""
    network = AutoModel.from_pretrained(directory).eval()
    processor: Any = AutoProcessor.from_pretrained(directory)
    found = np.zeros((len(images), len(texts)))
    for row, image in enumerate(images):
        for column, text in enumerate(texts):
            inputs = processor(
                images=image,
                text=[text],
                padding="max_length",
                max_length=LENGTHS[kind],
                truncation=True,
                return_tensors="pt",
                **(PATCHES if kind == "siglip2" else {}),
            )
            said = network(**inputs)
            found[row, column] = torch.nn.functional.cosine_similarity(said.image_embeds, said.text_embeds)
    return found
