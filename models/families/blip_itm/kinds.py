"""The two kinds of networks of transformers that match images and texts."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import Blip2ForImageTextRetrieval, BlipForImageTextRetrieval

from models.checkpoints.files import model_type, safetensors_files


@dataclass(frozen=True, slots=True)
class Kind:
    """
    A kind of network.

    Attributes:
        network: class of transformers.
        first: the id of the token that LAVIS writes in place of [CLS], from tokenizer and configuration; None
            for none.
        logits: of no match and of a match (N, 2), from the network, features of images (N, patches, width),
            and token ids with their mask (N, T).
    """

    network: Any
    first: Callable[[Tokenizer, Any], int | None]
    logits: Callable[[Any, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def blip(network: Any, seen: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Compute BLIP's logits from the first token of the text, which attends to the image."""
    read = network.text_encoder(
        input_ids=ids,
        attention_mask=mask,
        encoder_hidden_states=seen,
        encoder_attention_mask=mask.new_ones(seen.shape[:2]),
    )
    logits: torch.Tensor = network.itm_head(read.last_hidden_state[:, 0])
    return logits


def blip_2(network: Any, seen: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Compute BLIP-2's logits: the mean over its queries, which attend to text and image."""
    queries = network.query_tokens.expand(len(ids), -1, -1)
    count = queries.shape[1]
    read = network.qformer(
        query_embeds=network.embeddings(input_ids=ids, query_embeds=queries),
        query_length=count,
        attention_mask=torch.cat([mask.new_ones(len(ids), count), mask], 1),
        encoder_hidden_states=seen,
        encoder_attention_mask=mask.new_ones(seen.shape[:2]),
    )
    logits: torch.Tensor = network.itm_head(read.last_hidden_state[:, :count]).mean(1)
    return logits


def enc(tokenizer: Tokenizer, config: Any) -> int | None:
    """
    Return the id of [ENC], with which a BLIP was trained to match; None if its vocabulary has none.

    BLIP adds two words to BERT's, [DEC] and then [ENC].  Published tokenizers of transformers have neither:
    their configurations have [DEC] as `bos_token_id`, and embeddings of both.
    """
    words, text = tokenizer.get_vocab_size(), config.text_config
    if text.bos_token_id == words == text.vocab_size - 2:
        return words + 1
    named: int | None = tokenizer.token_to_id("[ENC]")
    return named


KINDS = {
    "blip": Kind(BlipForImageTextRetrieval, enc, blip),
    "blip-2": Kind(Blip2ForImageTextRetrieval, lambda *_: None, blip_2),
}


def kind_of(directory: Path) -> Kind:
    """Return the kind of a checkpoint.  Raises `CheckpointError` for another one."""
    return KINDS[model_type(directory, *KINDS)]


def weights(directory: Path) -> list[Path]:
    """Return the weight files of a checkpoint of these kinds.  Raises `CheckpointError`."""
    return safetensors_files(directory, *KINDS)
