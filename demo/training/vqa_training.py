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

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn

from demo.training.batches import ahead
from demo.training.loop import Loop, Stage
from demo.training.tokenizer import train_tokenizer
from demo.training.vqa_checkpoint import VISION, VISION_WIDTH, WIDTH, configuration, write
from demo.training.vqa_questions import COUNTED, MIX, REPORTED
from demo.training.vqa_samples import (
    GRID,
    SIZE,
    Batch,
    Nouns,
    Patches,
    make_batch,
    make_captions,
    make_patches,
)
from demo.training.vqa_student import Student
from models.families.clip_flant5.layout import Tokenizer
from models.families.clip_flant5.network import Network
from models.images.pixels import Pixels

SEED = 3
SCENES = 36  # a step of questions or captions
PICTURES = 72  # a step of patches, each also mirrored


PATCHES, CAPTIONS, QUESTIONS = Stage(1200, 1.5e-3, 1), Stage(400, 1.5e-3, 1), Stage(1720, 1.5e-3, 1)
# Only a falling rate makes the tower recognise shapes well; before, it recognised half of them.
PATCHES_AGAIN, SMALL_PATCHES = Stage(1000, 1e-3, 900), Stage(1500, 1e-3, 1400)
QUESTIONS_AGAIN, ALL = Stage(5000, 1e-3, 4000), Stage(1200, 4e-4, 1200)
COUNTING, COUNTING_AGAIN = Stage(1500, 4e-4, 1500), Stage(2000, 4e-4, 2000)


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
    tokenizer = Tokenizer(directory / "spiece.model")
    network = Network(configuration(tokenizer.size), VISION)
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
        return make_patches(PICTURES, f"{seed}-{step}", pixels, small)

    batches = ahead(make, loop.step)
    for _ in loop.steps():
        batch = next(batches)
        with torch.autocast("cpu", torch.bfloat16):
            losses = student.patch_loss(student.see(batch.pixels), batch)
        loop.minimise(losses)


def learn_captions(student: Student, loop: Loop, tokenizer: Tokenizer) -> None:
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
    tokenizer: Tokenizer,
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
