"""Sequence classification: a premise and a hypothesis as one pair, and a probability for each label."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from models.checkpoints.files import CONFIG
from models.checkpoints.pretrained import load_words
from models.core.contract import CheckpointError
from models.families.nli.loading import load_network
from models.families.nli.text import LENGTH, Text

ENTAILMENT = "entailment"


class Classifier:
    """
    Any network of transformers that classifies pairs and has a label "entailment".

    Raises:
        CheckpointError: naming the file that is missing or cannot be used.
    """

    def __init__(self, directory: Path, dtype: torch.dtype, device: str) -> None:
        self._words, longest = load_words(directory)
        self._network = load_network(directory, "classifier", dtype).to(device).eval()
        self._label = entailment(directory / CONFIG, self._network.config.id2label)
        self._device, self._pad = device, self._network.config.pad_token_id or 0
        # Set once and read by all threads from then on.
        self._words.enable_truncation(
            min(LENGTH, longest, positions(self._network)), strategy="longest_first"
        )

    def encode(self, premise: str, hypothesis: str) -> Text:
        """The pair as the tokenizer joins it; the longer text is cut first where they do not fit."""
        encoded = self._words.encode(premise, hypothesis)
        return Text(tuple(encoded.ids), tuple(encoded.type_ids), bool(encoded.overflowing))

    def probabilities(self, texts: Sequence[Text]) -> list[float]:
        """Of the label "entailment" among all labels."""
        rows = [torch.tensor(text.ids) for text in texts]
        inputs = {
            "input_ids": pad_sequence(rows, batch_first=True, padding_value=self._pad),
            "attention_mask": pad_sequence([torch.ones_like(row) for row in rows], batch_first=True),
        }
        if getattr(self._network.config, "type_vocab_size", 0) > 1:
            parts = [torch.tensor(text.parts) for text in texts]
            inputs["token_type_ids"] = pad_sequence(parts, batch_first=True)
        inputs = {name: tensor.to(self._device) for name, tensor in inputs.items()}
        found: list[float] = self._network(**inputs).logits.float().softmax(-1)[:, self._label].tolist()
        return found


def entailment(path: Path, labels: Any) -> int:
    """The number of the label "entailment".  Raises `CheckpointError` where there is not exactly one."""
    found = [number for number, label in dict(labels).items() if str(label).casefold() == ENTAILMENT]
    if len(found) != 1:
        named = ", ".join(map(str, dict(labels).values()))
        raise CheckpointError(f'{path}: id2label must name "{ENTAILMENT}" once, and names {named}')
    return int(found[0])


def positions(network: Any) -> int:
    """The most tokens that have a position; RoBERTa's first few positions are for padding."""
    found = [
        module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
        for name, module in network.named_modules()
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
    ]
    return min(found, default=LENGTH)
