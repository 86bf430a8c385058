"""Tiny NLI checkpoints with random weights, as transformers saves them."""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    MPNetConfig,
    MPNetModel,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
)

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]  # their numbers: 0, 1, 2, 3
WORDS = "a the red blue green circle square dog cat is there what color yes no premise hypothesis : ? . 1 0"
LABELS = {0: "contradiction", 1: "Entailment", 2: "neutral"}
SMALL: dict[str, Any] = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "initializer_range": 0.5,
    "pad_token_id": 0,
    "num_labels": 3,
    "id2label": LABELS,
    "label2id": {label: n for n, label in LABELS.items()},
}


def classifier(directory: Path, *, positions: int = 48, **more: Any) -> Path:
    """A BERT that gives a pair one of three labels."""
    torch.manual_seed(1)
    network = BertForSequenceClassification(BertConfig(**SMALL, max_position_embeddings=positions, **more))
    return saved(directory, network)


def roberta(directory: Path) -> Path:
    """The same, whose first position is for padding; it has no parts."""
    torch.manual_seed(2)
    network = RobertaForSequenceClassification(
        RobertaConfig(**SMALL, max_position_embeddings=17, type_vocab_size=1)
    )
    return saved(directory, network)


def true(directory: Path) -> Path:
    """A T5 that writes."""
    torch.manual_seed(3)
    config = T5Config(
        vocab_size=32,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=2,
        initializer_factor=1.0,
    )
    return saved(directory, T5ForConditionalGeneration(config))


def sentences(directory: Path) -> Path:
    """A MPNet without a head, whose first positions are for padding."""
    torch.manual_seed(4)
    sizes = {name: value for name, value in SMALL.items() if "label" not in name}
    return saved(directory, MPNetModel(MPNetConfig(**sizes, max_position_embeddings=18)))


def saved(directory: Path, network: Any) -> Path:
    """The network with a tokenizer of a few words."""
    network.save_pretrained(directory)
    return save_words(directory)


def save_words(directory: Path) -> Path:
    """A tokenizer of a few words."""
    vocabulary = {word: n for n, word in enumerate([*SPECIAL, *WORDS.split()])}
    words = Tokenizer(models.WordLevel(vocabulary, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 1))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
    }
    words.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return directory


def configure(directory: Path, **values: Any) -> Path:
    """Other values in its config.json."""
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    return directory
