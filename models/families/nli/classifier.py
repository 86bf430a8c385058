"""Sequence classification: a premise and a hypothesis as one pair, and a probability for each label."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification

from models.checkpoints.files import CONFIG
from models.checkpoints.pretrained import load_fast_tokenizer, load_pretrained
from models.core.contract import CheckpointError
from models.families.nli.text import LENGTH, Text
from models.families.padding import padded, positions

ENTAILMENT = "entailment"


class Classifier:
    """
    A network of transformers that classifies pairs and has a label "entailment".  Raises `CheckpointError`.
    """

    def __init__(self, directory: Path, dtype: torch.dtype, device: str) -> None:
        self._network = load_pretrained(AutoModelForSequenceClassification, directory, dtype)
        self._network.to(device).eval()
        rows = self._network.get_input_embeddings().num_embeddings
        self._tokenizer, longest, self._unknown = load_fast_tokenizer(directory, rows)
        self._label = entailment(directory / CONFIG, self._network.config.id2label)
        self._device, self._pad = device, self._network.config.pad_token_id or 0
        # Set once and read by all threads from then on.
        self._tokenizer.enable_truncation(
            min(LENGTH, longest, positions(self._network, LENGTH)), strategy="longest_first"
        )

    def encode(self, premise: str, hypothesis: str) -> Text:
        """Tokenise the pair; the longer text is truncated first."""
        encoded = self._tokenizer.encode(premise, hypothesis)
        ids, unknown = tuple(encoded.ids), self._unknown.share(encoded.ids)
        return Text(ids, tuple(encoded.type_ids), bool(encoded.overflowing), unknown)

    def probabilities(self, texts: Sequence[Text]) -> list[float]:
        """Return the probability of the label "entailment" for each text."""
        ids, mask = padded([text.ids for text in texts], self._device, self._pad)
        inputs = {"input_ids": ids, "attention_mask": mask}
        if getattr(self._network.config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"], _ = padded([text.parts for text in texts], self._device)
        found: list[float] = self._network(**inputs).logits.float().softmax(-1)[:, self._label].tolist()
        return found


def entailment(path: Path, labels: Any) -> int:
    """Return the index of the label "entailment".  Raises `CheckpointError` if there is not exactly one."""
    found = [number for number, label in dict(labels).items() if str(label).casefold() == ENTAILMENT]
    if len(found) != 1:
        named = ", ".join(map(str, dict(labels).values()))
        raise CheckpointError(f'{path}: id2label must name "{ENTAILMENT}" once, and names {named}')
    return int(found[0])
