"""Checklists in the forms of releases, with questions of our own."""

import json
from pathlib import Path

import numpy as np

QUESTIONS = [f"Is the thing of number {number} there?" for number in range(30)]
MASKED_BY = {0: [22, 23, 24, 28, 29], 1: [25, 26], 2: [27]}  # counted from 0, as releases do
IMAGE = """
questions = "image.txt"
weights = "image.json"
alignment = true
gates = [[1, 23, 24, 25, 29, 30], [2, 26, 27], [3, 28]]
"""
VIDEO = 'questions = "video.txt"\nweights = "video.json"\nscore = "mean"\nprompt_slot = "[[prompt]]"\n'
FILM = [*(f"Does point {number} hold?" for number in range(28)), "Does it show [[prompt]]?"]


def numbers(count: int, seed: int = 7) -> list[float]:
    """Weights of both signs."""
    drawn: list[float] = np.random.default_rng(seed).normal(size=count).round(3).tolist()
    return drawn


def write_checklists(folder: Path, seed: int = 7) -> dict[str, list[str]]:
    """Write a checklist of images and one of videos; return the table of the settings."""
    folder.mkdir(exist_ok=True)
    (folder / "image.toml").write_text(IMAGE, "utf-8")
    (folder / "image.txt").write_text("\n".join(QUESTIONS) + "\n", "utf-8")
    table = {"coef": [2.354, *numbers(27, seed)], "intercept": [-0.7]}
    (folder / "image.json").write_text(json.dumps(table), "utf-8")
    (folder / "video.toml").write_text(VIDEO, "utf-8")
    (folder / "video.txt").write_text("\r\n".join(FILM), "utf-8", newline="")
    (folder / "video.json").write_text(json.dumps(numbers(29, seed)), "utf-8")
    return {"folders": [str(folder)]}


def by_masks(yes: list[bool], folder: Path, aligned: float) -> float:
    """The score of an image by the release's way: a vector of answers, masks set to 0, a dot product."""
    released = json.loads((folder / "image.json").read_text("utf-8"))
    answers = np.where(np.array(yes), 1.0, -1.0)
    for mask, masked in MASKED_BY.items():
        if not yes[mask]:
            answers[masked] = 0.0
    kept = np.delete(answers, [*MASKED_BY])
    return float(np.dot(released["coef"], [aligned, *kept]) + released["intercept"][0])


def by_mean(yes: list[bool], folder: Path) -> float:
    """The score of a video's frame: the mean of weight and answer."""
    weights = json.loads((folder / "video.json").read_text("utf-8"))
    return float(np.mean([weight if said else -weight for weight, said in zip(weights, yes, strict=True)]))
