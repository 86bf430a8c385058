"""
Train the demo detector, a Mask2Former, from scratch (Cheng et al. 2022).

Queries that compete for things learn slowly.  So each starts at a place of a grid and is assigned the
things near it.  Later their masks decide, as published.
"""

from collections.abc import Callable
from pathlib import Path

import torch

from demo.training.batches import ahead
from demo.training.detector_checkpoint import new_network, write
from demo.training.detector_samples import make_batch
from demo.training.detector_student import Student
from demo.training.loop import Loop, Stage

SEED = 23
SCENES = 16  # a step, each also mirrored
PIXELS, THINGS, AGAIN = Stage(600, 2e-3, 1), Stage(3200, 1.5e-3, 2300), Stage(800, 5e-4, 800)
NEAR, STILL = 20.0, 1.0  # weight of places in the assignment of things to queries: at first, and in the end
FREE = 800  # steps in between


def train(directory: Path, work: Path, *, say: Callable[[str], None] = print) -> None:
    """Train from scratch (or resume from *work*) and write a checkpoint to *directory*."""
    torch.manual_seed(SEED)
    student = Student(new_network())
    student.network.to(memory_format=torch.channels_last)
    student.network.model.pixel_level_module.compile(dynamic=False)
    student.network.model.transformer_module.compile(dynamic=False)
    student.train()

    def loop(name: str, stage: Stage) -> Loop:
        return Loop(student, work / f"{name}.pt", stage, say=say)

    learn_pixels(student, loop("detector-pixels", PIXELS))
    learn_things(student, loop("detector", THINGS), f"{SEED}", close=0.2, near=NEAR)
    learn_things(student, loop("detector-again", AGAIN), f"{SEED}-again", close=0.5, near=STILL)
    write(student.network.eval(), directory)


def learn_pixels(student: Student, loop: Loop) -> None:
    """Train what covers each pixel, and its centre, which queries need to distinguish things."""
    batches = ahead(lambda step: make_batch(SCENES, f"{SEED}-pixels-{step}"), loop.step)
    for _ in loop.steps():
        _, losses = student.see(next(batches))
        loop.minimise(losses)


def learn_things(student: Student, loop: Loop, seed: str, close: float, near: float) -> None:
    """
    Train things with their masks.

    Args:
        close: share of the pictures in which things nearly touch.
        near: initial weight of places in the assignment.
    """
    batches = ahead(lambda step: make_batch(SCENES, f"{seed}-{step}", close), loop.step)
    for step in loop.steps():
        batch = next(batches)
        seen, losses = student.see(batch)
        loop.minimise(losses | student.find(seen, batch, max(STILL, near * (1 - step / FREE))))
        loop.note("RIGHT", student.right.float().mean().item())
