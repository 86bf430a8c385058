"""
Train the demo CLIP-FlanT5: split captions first, then yes/no questions (VQAScore, appendix D).

Yes/no answers alone teach a small model next to nothing for hours.  So every depth is also taught
what the renderer knows, by small heads that exist in training only:

1. vision tower and projector: shape, colour, size under each patch, and where it is in the picture
   (T5 has no other way to tell left from right: its position bias knows the order of patches only);
2. encoder, middle layer: which patches each mention means, how many there are, and where;
3. one layer later, at the relation word: which relation really holds.
"""

import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset

from models.clip_flant5 import Network
from models.demo.language import KINDS
from models.demo.loop import Loop
from models.demo.tokenizer import train_tokenizer
from models.demo.vqa_samples import (
    AFTER,
    GRID,
    PATCH,
    SIZE,
    Batch,
    Nouns,
    Patches,
    make_batch,
    make_captions,
    make_patches,
)
from models.demo.world import COLOURS, MOST_THINGS, RELATIONS, SHAPES
from models.flant5_tokenizer import EOS, IGNORE, PAD, Tokenizer
from models.pixels import CLIP_MEAN, CLIP_STD, Pixels

SEED = 3
SCENES = 48  # a step
RATE = 1.5e-3
PATCH_STEPS, CAPTION_STEPS = 1200, 400
STEPS, DECAY, WHOLE = 3400, 1800, 300
WIDTH, VISION_WIDTH = 96, 128
MIDDLE = 3  # encoder layer whose output the mention heads read

VISION = {
    "model_type": "clip_vision_model",
    "architectures": ["CLIPVisionModel"],
    "hidden_size": VISION_WIDTH,
    "intermediate_size": 3 * VISION_WIDTH,
    "num_hidden_layers": 5,  # the last one is there, as in the published tower, and not used
    "num_attention_heads": 4,
    "num_channels": 3,
    "image_size": SIZE,
    "patch_size": PATCH,
    "projection_dim": VISION_WIDTH,
    "hidden_act": "quick_gelu",
}
PREPROCESSOR = {
    "image_processor_type": "CLIPImageProcessor",
    "crop_size": {"height": SIZE, "width": SIZE},
    "size": {"shortest_edge": SIZE},
    "resample": 3,
    "rescale_factor": 1 / 255,
    "do_center_crop": True,
    "do_convert_rgb": True,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": list(CLIP_MEAN),
    "image_std": list(CLIP_STD),
}


def configuration(vocabulary: int) -> dict[str, object]:
    """`config.json` with the keys of the published checkpoints."""
    return {
        "model_type": "clip_t5",
        "architectures": ["CLIPT5ForConditionalGeneration"],
        "vocab_size": vocabulary,
        "d_model": WIDTH,
        "d_kv": 24,
        "d_ff": 256,
        "num_layers": 5,
        "num_decoder_layers": 2,
        "num_heads": 4,
        "relative_attention_num_buckets": 32,
        "relative_attention_max_distance": 128,
        "dropout_rate": 0.0,
        "layer_norm_epsilon": 1e-6,
        "feed_forward_proj": "gated-gelu",
        "dense_act_fn": "gelu_new",
        "is_gated_act": True,
        "is_encoder_decoder": True,
        "tie_word_embeddings": False,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "decoder_start_token_id": PAD,
        "use_cache": True,
        "mm_vision_tower": "demo",
        "mm_hidden_size": VISION_WIDTH,
        "mm_projector_type": "mlp2x_gelu",
        "mm_vision_select_layer": -2,
        "mm_vision_select_feature": "patch",
        "mm_use_im_start_end": False,
        "mm_use_im_patch_token": False,
        "use_mm_proj": True,
        "image_aspect_ratio": "pad",
    }


def places() -> torch.Tensor:
    """
    Position embeddings (patches, VISION_WIDTH) to begin with: sines of row and column.

    Random ones take a thousand steps before the tower knows left from right.
    """
    waves = math.pi / (2 * GRID) * 2.0 ** torch.arange(VISION_WIDTH // 32)
    row, column = torch.meshgrid(torch.arange(GRID) + 0.5, torch.arange(GRID) + 0.5, indexing="ij")
    angles = torch.stack([row.flatten(), column.flatten()], 1)[..., None] * waves
    known = torch.cat([angles.sin(), angles.cos()], -1).flatten(1)
    spread, _ = torch.linalg.qr(torch.randn(VISION_WIDTH, known.shape[1]))
    start: torch.Tensor = 1.5 * known @ spread.T
    return start


class Student(nn.Module):
    """The network with its side heads; `forward` gives the loss and its parts."""

    before: torch.Tensor  # ids of the fixed text ahead of the image
    yes: torch.Tensor
    no: torch.Tensor

    def __init__(self, network: Network, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.network = network
        self.patch_heads = nn.Linear(WIDTH, len(SHAPES) + 1 + len(COLOURS) + 1 + 1 + 3)
        self.belongs = nn.Linear(WIDTH, 2)
        self.mention = nn.Sequential(
            nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 1 + MOST_THINGS + 1 + 2)
        )
        self.relation = nn.Linear(WIDTH, len(RELATIONS))
        before, _ = tokenizer.around_image("")
        self.register_buffer("before", torch.tensor(before), persistent=False)
        self.register_buffer("yes", torch.tensor(tokenizer.encode("Yes")), persistent=False)
        self.register_buffer("no", torch.tensor(tokenizer.encode("No")), persistent=False)

    def see(self, pixels: torch.Tensor) -> torch.Tensor:
        """What T5 sees of each patch (n, patches, width), the unused last vision layer left out."""
        tower = self.network.vision_tower
        states: torch.Tensor = tower.pre_layrnorm(tower.embeddings(pixels))
        for layer in tower.encoder.layers[:-1]:
            states = layer(states, attention_mask=None)
        projected: torch.Tensor = self.network.mm_projector(states[:, 1:])
        return projected

    def read(self, seen: torch.Tensor, ids: torch.Tensor, before: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Encoder states after every layer, and the mask, of *ids* (m, text) about *seen*."""
        rows, embed = len(ids), self.network.t5.shared
        ahead = embed(before).expand(rows, -1, -1)
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
        present, count, spot = said.split((1, MOST_THINGS + 1, 2), -1)
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
        """How badly the second half of each caption is foreseen from picture and first half."""
        *_, last, mask = self.read(self.see(pixels), ids, self.before[-1:])
        return label_loss(self.network.decode(last, mask, labels), labels)

    def forward(self, batch: Batch, whole: bool = True) -> dict[str, torch.Tensor]:
        """Losses by name; their sum is what is minimised.  *whole*: with the text before the image."""
        seen = self.see(batch.pixels)
        *layers, last, mask = self.read(seen, batch.ids, self.before if whole else self.before[-1:])
        labels = torch.where(batch.yes[:, None], self.yes, self.no)
        logits = self.network.decode(last, mask, labels)
        with torch.no_grad():
            self.right = (logits[:, 0, self.yes[0]] > logits[:, 0, self.no[0]]) == batch.yes
        return {
            "answer": 2 * label_loss(logits, labels),
            **self.patch_loss(seen, batch),
            **self.mention_loss(layers[MIDDLE - 1], batch),
            "relation": self.relation_loss(layers[MIDDLE], batch),
        }


def label_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy over the tokens of *labels*."""
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORE)


class Batches(IterableDataset[Any]):
    """Fresh scenes for every step, each step's from its own seed: resuming loses and repeats none."""

    def __init__(self, make: Callable[[int], Any], first: int) -> None:
        self._make, self._first = make, first

    def __iter__(self) -> Iterator[Any]:
        return (self._make(step) for step in itertools.count(self._first))


def ahead(make: Callable[[int], Any], first: int) -> Iterator[Any]:
    """Batches made by another process while the last one is learnt from."""
    return iter(DataLoader(Batches(make, first), batch_size=None, num_workers=1, prefetch_factor=4))


def train(directory: Path, work: Path, *, say: Callable[[str], None] = print) -> None:
    """Train from nothing (or from where *work* was left) and write a checkpoint to *directory*."""
    torch.manual_seed(SEED)
    if not (directory / "spiece.model").exists():
        train_tokenizer(directory)
    tokenizer = Tokenizer(directory / "spiece.model")
    network = Network(configuration(tokenizer.size), VISION)
    nn.init.normal_(network.t5.lm_head.weight, std=WIDTH**-0.5)
    with torch.no_grad():
        network.vision_tower.embeddings.position_embedding.weight[1:] = places()
    student = Student(network, tokenizer)
    if not (work / "vqa.pt").exists():
        learn_patches(student, work, say)
        learn_captions(student, tokenizer, work, say)
    learn_answers(student, tokenizer, work, say)
    write(network, directory, tokenizer)


def learn_patches(student: Student, work: Path, say: Callable[[str], None]) -> None:
    """Stage 1, the vision tower alone: what is under each patch.  Nothing else works before this."""
    loop = Loop(student, work / "patches.pt", steps=PATCH_STEPS, rate=RATE, decay=1, say=say)
    pixels, see = Pixels(SIZE), torch.compile(student.see)

    def make(step: int) -> Patches:
        return make_patches(2 * SCENES, f"{SEED}-patches-{step}", pixels)

    batches = ahead(make, loop.step)
    for _ in loop.steps():
        batch = next(batches)
        with torch.autocast("cpu", torch.bfloat16):
            losses = student.patch_loss(see(batch.pixels), batch)
        loop.minimise(losses)


def learn_captions(student: Student, tokenizer: Tokenizer, work: Path, say: Callable[[str], None]) -> None:
    """Stage 2: the second half of captions from the picture and the first half."""
    loop = Loop(student, work / "captions.pt", steps=CAPTION_STEPS, rate=RATE, decay=1, say=say)
    pixels = Pixels(SIZE)

    def make(step: int) -> tuple[torch.Tensor, ...]:
        return make_captions(SCENES, f"{SEED}-captions-{step}", tokenizer, pixels)

    batches = ahead(make, loop.step)
    for _ in loop.steps():
        captions = next(batches)
        with torch.autocast("cpu", torch.bfloat16):
            losses = {"caption": student.caption_loss(*captions)}
        loop.minimise(losses)


def learn_answers(student: Student, tokenizer: Tokenizer, work: Path, say: Callable[[str], None]) -> None:
    """
    Stage 3: yes/no questions with the side heads.

    The fixed text before the image is left out until the last steps: it is the same every time,
    carries nothing, and costs a third of each step.
    """
    loop = Loop(student, work / "vqa.pt", steps=STEPS, rate=RATE, decay=DECAY, say=say)
    pixels, nouns = Pixels(SIZE), Nouns(tokenizer)
    student.see = torch.compile(student.see)  # type: ignore[method-assign]
    student.read = torch.compile(student.read, dynamic=False)  # type: ignore[method-assign]

    def make(step: int) -> Batch:
        return make_batch(SCENES, f"{SEED}-{step}", tokenizer, nouns, pixels)

    batches = ahead(make, loop.step)
    for step in loop.steps():
        batch = next(batches)
        with torch.autocast("cpu", torch.bfloat16):
            losses = student(batch, whole=step >= STEPS - WHOLE)
        loop.minimise(losses)
        for number, kind in enumerate(KINDS):
            right = student.right[batch.kinds == number]
            loop.note(kind.upper(), right.float().mean().item() if len(right) else 0, len(right))


def write(network: Network, directory: Path, tokenizer: Tokenizer) -> None:
    """Save in the published layout (weights as safetensors)."""
    prefix = {"t5.": "", "vision_tower.": "vision_tower.vision_tower.vision_model."}
    tensors = {}
    for name, tensor in network.state_dict().items():
        if name.endswith("embed_tokens.weight"):
            continue
        for ours, published in prefix.items():
            if name.startswith(ours):
                name = published + name.removeprefix(ours)
                break
        tensors[name] = tensor.clone()  # transformers ties lm_head to shared when it builds a T5
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    tower = directory / "vision_tower"
    tower.mkdir(exist_ok=True)
    for path, content in (
        (directory / "config.json", configuration(tokenizer.size)),
        (tower / "config.json", VISION),
        (tower / "preprocessor_config.json", PREPROCESSOR),
    ):
        path.write_text(json.dumps(content, indent=2) + "\n")
