"""Tiny detectors with random weights, as transformers saves them."""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    Mask2FormerConfig,
    Mask2FormerForUniversalSegmentation,
    Mask2FormerImageProcessor,
    Owlv2Config,
    Owlv2ForObjectDetection,
    Owlv2ImageProcessor,
    SwinConfig,
)

LABELS = ("person", "dog", "mouse")
WORDS = ["a", "photo", "of", "dog", "cat", "red", "object", "tv", "remote"]
START, END = "<|startoftext|>", "<|endoftext|>"


def mask2former_config(labels: tuple[str, ...] = LABELS, **more: Any) -> Mask2FormerConfig:
    """Four small stages, and 12 queries."""
    swin = SwinConfig(
        image_size=64,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 2, 2],
        window_size=2,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    small: dict[str, Any] = {
        "feature_size": 32,
        "mask_feature_size": 32,
        "hidden_dim": 32,
        "encoder_feedforward_dim": 16,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "num_attention_heads": 2,
        "dim_feedforward": 16,
        "num_queries": 12,
        "init_std": 0.5,
    }
    names = {number: label for number, label in enumerate(labels)}
    ids = {label: number for number, label in names.items()}
    return Mask2FormerConfig(backbone_config=swin, **{**small, **more}, id2label=names, label2id=ids)


def mask2former(directory: Path, labels: tuple[str, ...] = LABELS) -> Path:
    """A Mask2Former that is sure of something: its last layer is scaled."""
    torch.manual_seed(3)
    network = Mask2FormerForUniversalSegmentation(mask2former_config(labels))
    with torch.no_grad():
        network.class_predictor.weight.mul_(3)
    network.save_pretrained(directory)
    size = {"shortest_edge": 64, "longest_edge": 160}
    Mask2FormerImageProcessor(size=size, size_divisor=32, ignore_index=255).save_pretrained(directory)
    return directory


def owlv2(directory: Path) -> Path:
    """An OWLv2 of 16 patches that is sure of something."""
    torch.manual_seed(5)
    text = {
        "vocab_size": len(WORDS) + 3,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 16,
        "pad_token_id": 0,
        "bos_token_id": len(WORDS) + 1,
        "eos_token_id": len(WORDS) + 2,
    }
    vision = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 64,
        "patch_size": 16,
    }
    network = Owlv2ForObjectDetection(Owlv2Config(text_config=text, vision_config=vision, projection_dim=16))
    with torch.no_grad():
        network.class_head.dense0.weight.normal_()
        network.class_head.logit_shift.weight.zero_()
        network.class_head.logit_scale.weight.zero_()
        network.class_head.logit_scale.bias.fill_(2)
        network.box_head.dense2.weight.normal_()
        network.box_head.dense2.bias.copy_(torch.tensor([0.0, 0.0, 2.0, 2.0]))
    network.save_pretrained(directory)
    Owlv2ImageProcessor(size={"height": 64, "width": 64}).save_pretrained(directory)
    return save_words(directory)


def save_words(directory: Path) -> Path:
    """CLIP's tokenizer with a few words: 0 pads, and the end has the largest number."""
    vocabulary = {word: number for number, word in enumerate(["!", *WORDS, START, END])}
    words = Tokenizer(models.WordLevel(vocabulary, "!"))
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.BertProcessing((END, vocabulary[END]), (START, vocabulary[START]))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "!",
        "bos_token": START,
        "eos_token": END,
        "unk_token": "!",
        "model_max_length": 16,
    }
    words.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return directory
