"""CLIP-FlanT5 of transformers' modules, for training and for loading."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import CLIPVisionConfig, CLIPVisionModel, T5Config, T5ForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

from models.families.clip_flant5.layout import Layout
from models.families.clip_flant5.tensors import read_tensors
from models.families.clip_flant5.tokens import IGNORE, PAD, SplitText

ALIASES = ("t5.encoder.embed_tokens.weight", "t5.decoder.embed_tokens.weight")  # names of `shared.weight`


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
    """Build the network with the checkpoint's own tensors.  Raises as `read_tensors`."""
    found = read_tensors(directory, layout)
    with torch.device("meta"):  # no memory and no random numbers for weights that are replaced
        network = ClipFlanT5Network({**layout.config, "vocab_size": layout.tokenizer.size}, layout.vision)
    network.load_state_dict(found, strict=False, assign=True)  # the next line sets the aliases
    network.t5.set_input_embeddings(network.t5.shared)
    embeddings = network.vision_tower.embeddings
    embeddings.position_ids = torch.arange(embeddings.num_positions)[None]  # a buffer, never saved
    return network
