"""The demo CLIP-FlanT5 with the heads that exist in training only."""

import torch
from torch import nn
from torch.nn import functional as F

from demo.training.vqa_checkpoint import WIDTH
from demo.training.vqa_samples import AFTER, GRID, Batch, Patches
from demo.training.world import COLOURS, MAX_THINGS, RELATIONS, SHAPES
from models.families.clip_flant5.layout import IGNORE, PAD, Tokenizer
from models.families.clip_flant5.network import Network

MIDDLE = 3  # encoder layer whose output the mention heads read


class Student(nn.Module):
    """The network with its side heads; `forward` returns the loss and its parts."""

    before: torch.Tensor  # ids of the fixed text ahead of the image

    def __init__(self, network: Network, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.network = network
        self.patch_heads = nn.Linear(WIDTH, len(SHAPES) + 1 + len(COLOURS) + 1 + 1 + 3)
        self.belongs = nn.Linear(WIDTH, 2)
        self.mention = nn.Sequential(
            nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 1 + MAX_THINGS + 1 + 2)
        )
        self.relation = nn.Linear(WIDTH, len(RELATIONS))
        before, _ = tokenizer.around_image("")
        self.register_buffer("before", torch.tensor(before), persistent=False)

    def train_eyes(self, learn: bool) -> None:
        """Enable or disable training of the vision tower and its projector."""
        for part in (self.network.vision_tower, self.network.mm_projector, self.patch_heads):
            part.requires_grad_(learn)

    def see(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return T5's input for each patch (n, patches, width), without the unused last vision layer."""
        tower = self.network.vision_tower
        states: torch.Tensor = tower.pre_layrnorm(tower.embeddings(pixels))
        for layer in tower.encoder.layers[:-1]:
            states = layer(states, attention_mask=None)
        projected: torch.Tensor = self.network.mm_projector(states[:, 1:])
        return projected

    def read(self, seen: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return encoder states after every layer, and the mask, of *ids* (m, text) about *seen*."""
        rows, embed = len(ids), self.network.t5.shared
        ahead = embed(self.before).expand(rows, -1, -1)
        features = seen.repeat_interleave(rows // len(seen), 0)
        embedded = torch.cat([ahead, features.to(ahead.dtype), embed(ids)], 1)
        mask = F.pad((ids != PAD).long(), (embedded.shape[1] - ids.shape[1], 0), value=1)
        states = self.network.t5.encoder(
            inputs_embeds=embedded, attention_mask=mask, output_hidden_states=True
        )
        return (*states.hidden_states[1:-1], states.last_hidden_state, mask)

    def patch_loss(self, seen: torch.Tensor, batch: Batch | Patches) -> dict[str, torch.Tensor]:
        sizes = (len(SHAPES) + 1, len(COLOURS) + 1, 1, 3)
        shape, colour, centre, place = self.patch_heads(seen).float().split(sizes, -1)
        known = ~batch.places.isnan()
        return {
            "shape": F.cross_entropy(shape.flatten(0, 1), batch.shapes.flatten()),
            "colour": F.cross_entropy(colour.flatten(0, 1), batch.colours.flatten()),
            "centre": 3 * F.binary_cross_entropy_with_logits(centre[..., 0], batch.centres),
            "place": 3 * F.smooth_l1_loss(place[known], batch.places[known]),
        }

    def mention_loss(self, states: torch.Tensor, batch: Batch) -> dict[str, torch.Tensor]:
        start = states.shape[1] - AFTER
        image = self.belongs(states[:, start - GRID * GRID : start]).float().transpose(1, 2)
        known = ~batch.belongs.isnan()
        there = batch.mentions >= 0
        rows = there.nonzero()[:, 0]
        places = batch.mentions[there] + start
        said = self.mention(states[rows, places]).float()
        present, count, spot = said.split((1, MAX_THINGS + 1, 2), -1)
        spots = batch.spots[there]
        sure = ~spots.isnan()
        return {
            "belongs": 3 * F.binary_cross_entropy_with_logits(image[known], batch.belongs[known]),
            "present": F.binary_cross_entropy_with_logits(present[:, 0], batch.present[there].float()),
            "count": F.cross_entropy(count, batch.counts[there]),
            "spot": 2 * F.smooth_l1_loss(spot[sure], spots[sure]),
        }

    def relation_loss(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        rows = (batch.relation_at >= 0).nonzero()[:, 0]
        places = batch.relation_at[rows] + states.shape[1] - AFTER
        return F.cross_entropy(self.relation(states[rows, places]).float(), batch.relations[rows])

    def caption_loss(self, pixels: torch.Tensor, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of predicting the second half of each caption from picture and first half."""
        *_, last, mask = self.read(self.see(pixels), ids)
        return label_loss(self.network.decode(last, mask, labels), labels)

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return losses by name, whose sum is minimised; `right` marks correct first tokens."""
        seen = self.see(batch.pixels)
        *layers, last, mask = self.read(seen, batch.ids)
        logits = self.network.decode(last, mask, batch.answers)
        with torch.no_grad():
            self.right = logits[:, 0].argmax(1) == batch.answers[:, 0]
        return {
            "answer": 2 * label_loss(logits, batch.answers),
            **(self.patch_loss(seen, batch) if seen.requires_grad else {}),
            **self.mention_loss(layers[MIDDLE - 1], batch),
            "relation": self.relation_loss(layers[MIDDLE], batch),
        }


def label_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the mean cross entropy over the tokens of *labels*."""
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORE)
