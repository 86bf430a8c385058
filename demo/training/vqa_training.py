"""
Train the demo CLIP-FlanT5: split captions first, then questions (VQAScore, appendix D).

Yes/no answers alone teach a small model next to nothing for hours.  So every depth also learns the
renderer's ground truth, with small heads that exist in training only:

1. vision tower and projector: shape, colour, size under each patch, and its place in the picture
   (T5's position bias only encodes the order of patches, so it cannot derive left and right itself);
2. encoder, middle layer: which patches each mention means, how many there are, and their place;
3. one layer later, at the relation word: the true relation.

The vision tower and the questions have two rounds.  In the second the tower learns at a rate that falls
to zero, also from small things, and is frozen while the questions continue.  At the end all of it
learns once more, slowly, and half of the scenes hold things that nearly touch, with questions of count.
"""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from demo.training.loop import Loop, Stage, ahead
from demo.training.tokenizer import train_tokenizer
from demo.training.vqa_questions import COUNTED, MIX, REPORTED
from demo.training.vqa_samples import (
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
from demo.training.world import COLOURS, MAX_THINGS, RELATIONS, SHAPES
from models.families.clip_flant5.network import ClipFlanT5Network
from models.families.clip_flant5.tokens import EOS, IGNORE, PAD, T5Tokenizer
from models.images.pixels import CLIP_MEAN, CLIP_STD, Pixels

WIDTH, VISION_WIDTH = 96, 128

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
MIDDLE = 3  # encoder layer whose output the mention heads read
SEED = 3
SCENES = 36  # a step of questions or captions
IMAGES = 72  # a step of patches, each also mirrored
PATCHES, CAPTIONS, QUESTIONS = Stage(1200, 1.5e-3, 1), Stage(400, 1.5e-3, 1), Stage(1720, 1.5e-3, 1)
# Only a falling rate makes the tower recognise shapes well; before, it recognised half of them.
PATCHES_AGAIN, SMALL_PATCHES = Stage(1000, 1e-3, 900), Stage(1500, 1e-3, 1400)
QUESTIONS_AGAIN, ALL = Stage(5000, 1e-3, 4000), Stage(1200, 4e-4, 1200)
COUNTING, COUNTING_AGAIN = Stage(1500, 4e-4, 1500), Stage(2000, 4e-4, 2000)


def configuration(vocabulary: int) -> dict[str, object]:
    """Return `config.json` with the keys of the published checkpoints."""
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


def write(network: ClipFlanT5Network, directory: Path, tokenizer: T5Tokenizer) -> None:
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


class Student(nn.Module):
    """The network with its side heads; `forward` returns the loss and its parts."""

    before: torch.Tensor  # ids of the fixed text ahead of the image

    def __init__(self, network: ClipFlanT5Network, tokenizer: T5Tokenizer) -> None:
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


def places() -> torch.Tensor:
    """
    Return initial position embeddings (patches, VISION_WIDTH): sines of row and column.

    With random ones the tower takes a thousand steps to distinguish left from right.
    """
    waves = math.pi / (2 * GRID) * 2.0 ** torch.arange(VISION_WIDTH // 32)
    row, column = torch.meshgrid(torch.arange(GRID) + 0.5, torch.arange(GRID) + 0.5, indexing="ij")
    angles = torch.stack([row.flatten(), column.flatten()], 1)[..., None] * waves
    known = torch.cat([angles.sin(), angles.cos()], -1).flatten(1)
    spread, _ = torch.linalg.qr(torch.randn(VISION_WIDTH, known.shape[1]))
    start: torch.Tensor = 1.5 * known @ spread.T
    return start


def train(directory: Path, work: Path, *, say: Callable[[str], None] = print) -> None:
    """Train from scratch (or resume from *work*) and write a checkpoint to *directory*."""
    torch.manual_seed(SEED)
    if not (directory / "spiece.model").exists():
        train_tokenizer(directory)
    tokenizer = T5Tokenizer(directory / "spiece.model")
    network = ClipFlanT5Network(configuration(tokenizer.size), VISION)
    nn.init.normal_(network.t5.lm_head.weight, std=WIDTH**-0.5)
    with torch.no_grad():
        network.vision_tower.embeddings.position_embedding.weight[1:] = places()
    student = Student(network, tokenizer)
    student.see = torch.compile(student.see, dynamic=False)  # type: ignore[method-assign]
    student.read = torch.compile(student.read, dynamic=False)  # type: ignore[method-assign]

    def loop(name: str, stage: Stage) -> Loop:
        return Loop(student, work / f"{name}.pt", stage, say=say)

    learn_patches(student, loop("patches", PATCHES), f"{SEED}-patches")
    learn_captions(student, loop("captions", CAPTIONS), tokenizer)
    learn_answers(student, loop("vqa", QUESTIONS), f"{SEED}", tokenizer)
    learn_patches(student, loop("patches-again", PATCHES_AGAIN), f"{SEED}-patches-again")
    learn_patches(student, loop("patches-small", SMALL_PATCHES), f"{SEED}-patches-small", small=True)
    student.train_eyes(False)
    learn_answers(student, loop("vqa-again", QUESTIONS_AGAIN), f"{SEED}-again", tokenizer)
    student.train_eyes(True)
    learn_answers(student, loop("vqa-all", ALL), f"{SEED}-all", tokenizer, close=True)
    for name, stage in (("counting", COUNTING), ("counting-again", COUNTING_AGAIN)):
        learn_answers(
            student, loop(f"vqa-{name}", stage), f"{SEED}-{name}", tokenizer, close=True, mix=COUNTED
        )
    write(network, directory, tokenizer)


def learn_patches(student: Student, loop: Loop, seed: str, small: bool = False) -> None:
    """Train the vision tower alone, on what is under each patch.  Nothing else works before this."""
    pixels = Pixels(SIZE)

    def make(step: int) -> Patches:
        return make_patches(IMAGES, f"{seed}-{step}", pixels, small)

    batches = ahead(make, loop.step)
    for _ in loop.steps():
        batch = next(batches)
        with torch.autocast("cpu", torch.bfloat16):
            losses = student.patch_loss(student.see(batch.pixels), batch)
        loop.minimise(losses)


def learn_captions(student: Student, loop: Loop, tokenizer: T5Tokenizer) -> None:
    """Train the second half of captions from the picture and the first half."""
    pixels = Pixels(SIZE)

    def make(step: int) -> tuple[torch.Tensor, ...]:
        return make_captions(SCENES, f"{SEED}-captions-{step}", tokenizer, pixels)

    batches = ahead(make, loop.step)
    for _ in loop.steps():
        captions = next(batches)
        with torch.autocast("cpu", torch.bfloat16):
            losses = {"caption": student.caption_loss(*captions)}
        loop.minimise(losses)


def learn_answers(
    student: Student,
    loop: Loop,
    seed: str,
    tokenizer: T5Tokenizer,
    close: bool = False,
    mix: Sequence[str] = MIX,
) -> None:
    """
    Train questions of every form, with the side heads; half of the scenes *close*, with questions of *mix*.
    """
    pixels, nouns = Pixels(SIZE), Nouns(tokenizer)

    def make(step: int) -> Batch:
        return make_batch(SCENES, f"{seed}-{step}", tokenizer, nouns, pixels, close, mix)

    batches = ahead(make, loop.step)
    for _ in loop.steps():
        batch = next(batches)
        with torch.autocast("cpu", torch.bfloat16):
            losses = student(batch)
        loop.minimise(losses)
        for number, name in enumerate(REPORTED):
            right = student.right[batch.kinds == number]
            loop.note(name.upper(), right.float().mean().item() if len(right) else 0, len(right))
