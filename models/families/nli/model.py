"""
An NLI model: how likely a hypothesis is to follow from a premise.

Two kinds of checkpoints of transformers are supported: a classifier of pairs with a label "entailment", and a
T5 of TRUE's kind.  Padding is masked, so a pair's probability does not depend on its batch beyond rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, T5ForConditionalGeneration

from models.checkpoints.files import CONFIG, TOKENIZER_FILES, read_json
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import load_fast_tokenizer, load_pretrained
from models.checkpoints.weights import DTYPES
from models.core.calls import EntailmentCall
from models.core.contract import CheckpointError, Prepared
from models.core.outcomes import Entailment
from models.core.settings import LocalSettings
from models.families.inputs import padded, positions
from models.families.nli import FAMILY

MAX_TOKENS = 512  # NLI models are trained on pairs of so many


@dataclass(frozen=True, slots=True)
class TextPair:
    """
    One pair.

    Attributes:
        ids: tokens of both texts.
        parts: token type ids: 0 for the premise, 1 for the hypothesis; empty if the network has none.
        truncated: the pair was cut at the model's length.
        unknown: the share of unknown tokens.
    """

    ids: tuple[int, ...]
    parts: tuple[int, ...] = ()
    truncated: bool = False
    unknown: float = 0.0


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
            min(MAX_TOKENS, longest, positions(self._network, MAX_TOKENS)), strategy="longest_first"
        )

    def encode(self, premise: str, hypothesis: str) -> TextPair:
        """Tokenise the pair; the longer text is truncated first."""
        encoded = self._tokenizer.encode(premise, hypothesis)
        ids, unknown = tuple(encoded.ids), self._unknown.share(encoded.ids)
        return TextPair(ids, tuple(encoded.type_ids), bool(encoded.overflowing), unknown)

    def probabilities(self, texts: Sequence[TextPair]) -> list[float]:
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


ENTAILED_TEXT = "1"


class TrueNli:
    """A T5 of TRUE's kind.  Raises `CheckpointError`."""

    def __init__(self, directory: Path, dtype: torch.dtype, device: str) -> None:
        self._network = load_pretrained(T5ForConditionalGeneration, directory, dtype).to(device).eval()
        self._device, config = device, self._network.config
        self._tokenizer, _, self._unknown = load_fast_tokenizer(directory, config.vocab_size)
        self._pad, self._start, self._end = (
            config.pad_token_id,
            config.decoder_start_token_id,
            config.eos_token_id,
        )
        answer = self._tokens(ENTAILED_TEXT)
        if len(answer) != 1 or not (self._tokenizer.id_to_token(answer[0]) or "").endswith(ENTAILED_TEXT):
            raise CheckpointError(f'{directory}: its tokenizer has no single token for "{ENTAILED_TEXT}"')
        [self._follows] = answer

    def encode(self, premise: str, hypothesis: str) -> TextPair:
        """Tokenise `premise: … hypothesis: …`; the premise is truncated."""
        before, after = self._tokens(f"premise: {premise}"), self._tokens(f"hypothesis: {hypothesis}")
        kept = before[: max(0, MAX_TOKENS - 1 - len(after))] + after[: MAX_TOKENS - 1]
        truncated = len(kept) < len(before) + len(after)
        return TextPair((*kept, self._end), truncated=truncated, unknown=self._unknown.share(kept))

    def probabilities(self, texts: Sequence[TextPair]) -> list[float]:
        """Return the probability of "1" as the first token for each text."""
        ids, mask = padded([text.ids for text in texts], self._device, self._pad)
        logits = self._network(
            input_ids=ids,
            attention_mask=mask,
            decoder_input_ids=torch.full((len(texts), 1), self._start, device=self._device),
            use_cache=False,
        ).logits
        found: list[float] = logits[:, 0].float().softmax(-1)[:, self._follows].tolist()
        return found

    def _tokens(self, text: str) -> list[int]:
        """Return ids without the `</s>` at the end of every text."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


FILES = (CONFIG, *TOKENIZER_FILES)


class Nli:
    """A loaded NLI model.  Args as in `ModelArguments`; raises `CheckpointError`."""

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        writes = "T5ForConditionalGeneration" in (read_json(directory / CONFIG).get("architectures") or [])
        self._network = (TrueNli if writes else Classifier)(directory, DTYPES[dtype], device)
        self.info = info_of(FAMILY, directory, FILES, dtype, device, id, revision)

    def prepare(self, call: EntailmentCall) -> Prepared:
        """Tokenise the pair; the cost is its number of tokens."""
        text = self._network.encode(call.premise, call.hypothesis)
        return Prepared(len(text.ids), text)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Entailment]:
        """Run all pairs in one pass."""
        texts: list[TextPair] = [prepared.data for prepared in batch]
        return [
            Entailment(probability, truncated=text.truncated, unknown=text.unknown)
            for text, probability in zip(texts, self._network.probabilities(texts), strict=True)
        ]

    def example(self) -> EntailmentCall:
        return EntailmentCall("a red circle left of a blue square", "What color is the circle? red")


def from_settings(settings: LocalSettings) -> Nli:
    """Load the NLI model of a table.  Raises `CheckpointError`."""
    return Nli(**model_arguments(settings))
