"""InstructBLIP's forward pass for serving: each image, question and answer once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import Blip2ForConditionalGeneration, InstructBlipForConditionalGeneration

from models.checkpoints.configuration import check_model_type, read_json
from models.checkpoints.files import CONFIG, safetensors_files
from models.checkpoints.pretrained import load_pretrained
from models.core.contract import CheckpointError
from models.families.clip_flant5.tokenizer import PAD
from models.families.padding import padded

INSTRUCTED = "instructblip"  # its Q-Former reads the question
KINDS = {INSTRUCTED: InstructBlipForConditionalGeneration, "blip-2": Blip2ForConditionalGeneration}


class Network:
    """
    The network of a directory.

    Attributes:
        instructed: the Q-Former reads the question, so that features depend on it.

    Raises:
        CheckpointError: it cannot be loaded, or its language model is no T5.
    """

    def __init__(self, directory: Path, dtype: torch.dtype, device: torch.device) -> None:
        path = directory / CONFIG
        given = read_json(path)
        kind = check_model_type(path, given, *KINDS)
        language = given.get("text_config") or {}
        if not isinstance(language, dict) or language.get("model_type") != "t5":
            raise CheckpointError(f"{path}: the language model must be a T5")
        self.whole = load_pretrained(KINDS[kind], directory, dtype).to(device).eval()
        self.instructed, self._device = kind == INSTRUCTED, device

    @property
    def config(self) -> Any:
        """The configuration of transformers."""
        return self.whole.config

    def see(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute features (N, patches, width) of pixels (N, 3, side, side)."""
        seen: torch.Tensor = self.whole.vision_model(pixel_values=pixels).last_hidden_state
        return seen

    def query(self, seen: torch.Tensor, texts: Sequence[Sequence[int]]) -> torch.Tensor:
        """Compute what the queries find (N, queries, width of the language model), for each of *texts*."""
        queries = self.whole.query_tokens.expand(len(seen), -1, -1)
        count, text = queries.shape[1], {}
        if self.instructed:
            ids, mask = padded(texts, self._device)
            text = {"input_ids": ids, "attention_mask": torch.cat([mask.new_ones(len(ids), count), mask], 1)}
        found = self.whole.qformer(
            query_embeds=queries,
            encoder_hidden_states=seen,
            encoder_attention_mask=torch.ones(seen.shape[:2], dtype=torch.long, device=self._device),
            **text,
        ).last_hidden_state[:, :count]
        projection = self.whole.language_projection
        projected: torch.Tensor = projection(found.to(projection.weight.dtype))
        return projected

    def encode(
        self, found: torch.Tensor, texts: Sequence[Sequence[int]]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Encode what the queries found with the text behind it; return states and mask (N, length)."""
        language = self.whole.language_model
        ids, mask = padded(texts, self._device)
        embedded = torch.cat([found, language.get_input_embeddings()(ids).to(found.dtype)], 1)
        mask = torch.cat([mask.new_ones(found.shape[:2]), mask], 1)
        states: torch.Tensor = language.encoder(inputs_embeds=embedded, attention_mask=mask).last_hidden_state
        return states, mask

    def logits(
        self, states: torch.Tensor, mask: torch.Tensor, rows: Sequence[int], answers: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        """
        Decode answers, each from the states of its row.

        Returns:
            Logits (tokens of all answers one after the other, vocabulary), float32.
        """
        language = self.whole.language_model
        inputs = [torch.tensor([PAD, *answer[:-1]]) for answer in answers]  # decoding begins with padding
        places = torch.tensor(rows, device=self._device)
        decoded = language.decoder(
            input_ids=pad_sequence(inputs, batch_first=True).to(self._device),
            encoder_hidden_states=states[places],
            encoder_attention_mask=mask[places],
            use_cache=False,
        ).last_hidden_state
        longest = decoded.shape[1]
        real = [row * longest + place for row, answer in enumerate(answers) for place in range(len(answer))]
        tokens = decoded.flatten(0, 1)[torch.tensor(real, device=self._device)]
        if language.config.scale_decoder_outputs:
            tokens = tokens * language.model_dim**-0.5
        logits: torch.Tensor = language.lm_head(tokens).float()
        return logits


def weights(directory: Path) -> list[Path]:
    """Return the weight files of a checkpoint of these kinds.  Raises `CheckpointError`."""
    return safetensors_files(directory, *KINDS)
