"""CLIP-FlanT5 of transformers' modules, for training and for loading."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import CLIPVisionConfig, CLIPVisionModel, T5Config, T5ForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

from models.checkpoints.files import CONFIG
from models.checkpoints.weights import mismatch, read_weights
from models.core.contract import CheckpointError
from models.core.messages import in_short
from models.families.clip_flant5.layout import EMBEDDING, IGNORE, PAD, Layout, SplitText, renamed

# Aliases of `shared.weight`, and the tensors with a row for each token.
ALIASES = ("t5.encoder.embed_tokens.weight", "t5.decoder.embed_tokens.weight")
TENSORS_BY_TOKEN = (EMBEDDING, "lm_head.weight")


class ClipFlanT5Network(nn.Module):
    """
    The three parts, of transformers' modules.

    Used for training, and as the reference of `Forward`, which the service runs.
    """

    def __init__(self, config: dict[str, Any], vision: dict[str, Any]) -> None:
        super().__init__()
        width = config["d_model"]
        # tie_word_embeddings is false for every FlanT5: lm_head has its own weights, and the decoder's output
        # is not scaled by d_model ** -0.5.
        t5 = {**config, "model_type": "t5", "tie_word_embeddings": False}
        self.t5 = T5ForConditionalGeneration(T5Config(**t5))
        self.vision_tower = CLIPVisionModel(CLIPVisionConfig(**vision))
        self.mm_projector = nn.Sequential(
            nn.Linear(vision["hidden_size"], width), nn.GELU(), nn.Linear(width, width)
        )
        self.layer = config.get("mm_vision_select_layer", -2)

    def features(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute projected patch features (n, patches, d_model) of pixels (n, 3, size, size)."""
        seen = self.vision_tower(pixels, output_hidden_states=True)
        projected: torch.Tensor = self.mm_projector(seen.hidden_states[self.layer][:, 1:])
        return projected

    def splice(self, features: torch.Tensor, texts: Sequence[SplitText]) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Insert each row of *features* between the two halves of its text.

        Args:
            features: (n, patches, d_model).
            texts: n pairs of token ids, before and after the image.

        Returns:
            Embeddings (n, longest, d_model), padded on the right, and their mask (n, longest).
        """
        patches = features.shape[1]
        longest = max(len(before) + patches + len(after) for before, after in texts)
        ids = torch.full((len(texts), longest), PAD)
        mask = torch.zeros(len(texts), longest, dtype=torch.long)
        slot = torch.zeros(len(texts), longest, dtype=torch.bool)
        for row, (before, after) in enumerate(texts):
            start, end = len(before), len(before) + patches
            ids[row, :start] = torch.tensor(before)
            ids[row, end : end + len(after)] = torch.tensor(after)
            mask[row, : end + len(after)] = 1
            slot[row, start:end] = True
        device = features.device
        embedded = self.t5.shared(ids.to(device))
        spliced = embedded.masked_scatter(slot.to(device)[..., None], features.to(embedded.dtype))
        return spliced, mask.to(device)

    def encode(self, embedded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return encoder states (n, longest, d_model)."""
        states: torch.Tensor = self.t5.encoder(inputs_embeds=embedded, attention_mask=mask).last_hidden_state
        return states

    def decode(self, states: torch.Tensor, mask: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return logits (n, answer, vocabulary) of teacher-forced *labels* (n, answer; IGNORE pads)."""
        logits: torch.Tensor = self.t5(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=shift_right(labels),
            decoder_attention_mask=(labels != IGNORE).long(),
            use_cache=False,
        ).logits
        return logits

    def log_probs(self, pixels: torch.Tensor, text: SplitText, answer: Sequence[int]) -> torch.Tensor:
        """
        Score one pair like the reference: without a batch.

        Returns:
            Log-probabilities (tokens of *answer*, vocabulary), float32.
        """
        labels = torch.tensor([answer], device=pixels.device)
        embedded, mask = self.splice(self.features(pixels[None]), [text])
        return self.decode(self.encode(embedded, mask), mask, labels)[0].float().log_softmax(-1)


def shift_right(labels: torch.Tensor) -> torch.Tensor:
    """Return the decoder input: the start token (pad), then every label but the last."""
    shifted = labels.roll(1, dims=1)
    shifted[:, 0] = PAD
    return shifted.masked_fill(shifted == IGNORE, PAD)


def load_network(directory: Path, layout: Layout) -> ClipFlanT5Network:
    """
    Build the network with the checkpoint's own tensors, every name and shape checked.

    The reference cuts the embeddings to the tokenizer's length (32128 to 32100 rows), so its softmax runs
    over that many; so does this one.

    Raises:
        CheckpointError: the configuration describes no network, or the weights don't fit it.
    """
    vocabulary = layout.tokenizer.size
    try:
        with torch.device("meta"):  # no memory and no random numbers for weights that are replaced
            network = ClipFlanT5Network({**layout.config, "vocab_size": vocabulary}, layout.vision)
    except Exception as exc:  # transformers raises many kinds
        raise CheckpointError(f"{directory}: the network cannot be built: {in_short(exc)}") from exc
    weights = renamed(read_weights(directory))
    empty = network.state_dict()
    names = {name.removeprefix("t5."): name for name in empty if name not in ALIASES}
    expected = {theirs: empty[ours] for theirs, ours in names.items()}
    for name in TENSORS_BY_TOKEN:
        expected[name] = expected[name].new_empty(layout.config["vocab_size"], *expected[name].shape[1:])
    if wrong := mismatch(weights, expected):
        raise CheckpointError(f"{directory}: the weights don't fit {CONFIG}: {wrong}")
    for name in TENSORS_BY_TOKEN:
        weights[name] = weights[name][:vocabulary]
    found = {ours: weights[theirs] for theirs, ours in names.items()}
    network.load_state_dict(found, strict=False, assign=True)  # the next line sets the aliases
    network.t5.set_input_embeddings(network.t5.shared)
    embeddings = network.vision_tower.embeddings
    embeddings.position_ids = torch.arange(embeddings.num_positions)[None]  # a buffer, never saved
    return network
