"""What a type checker says of calls of the client."""

import subprocess
import sys

import pytest

GOOD = """
import io
from pathlib import Path
import numpy as np
import PIL.Image
import scoregate

pairs = [(path, "a cat") for path in ["a.png"]]
image = PIL.Image.new("RGB", (2, 2))


def use(client: scoregate.Client) -> None:
    for picture in ("a.png", b"BM", bytearray(2)):
        client.score(picture, "x")
    client.score(Path("a.png"), "x")
    client.score(io.BytesIO(), "x")
    client.score(np.zeros((2, 2, 3), np.uint8), "x")
    client.score(image, "x")
    client.score(scoregate.Frames([image, image]), "x")
    item = scoregate.Item(prompt="x", image=b"BM", references=["a.png"], source=Path("b.png"))
    client.score_items([*pairs, item])
    list(client.score_many(iter(pairs)))
    client.rank("x", ["a.png"])
"""
BAD = """
import scoregate


def use(client: scoregate.Client) -> None:
    client.score(5, "x")
    client.score(None, "x")
    client.score(open("a.png"), "x")
    client.score(["a.png"], "x")
    client.score_items([(5, "x")])
    list(client.score_many([(5, "x")]))
    client.rank("x", [5])
    scoregate.Item(prompt="x", image=5)
"""


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """The numbers of the lines of each text that mypy rejects."""
    folder = tmp_path_factory.mktemp("types")
    for name, text in {"good": GOOD, "bad": BAD}.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "good.py", "bad.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = [line.split(":") for line in done.stdout.splitlines() if ": error: " in line]
    return {name: {int(line[1]) for line in found if line[0] == name} for name in ("good.py", "bad.py")}


def test_mypy_accepts_every_form_of_a_picture(checked):
    """The libraries of pictures are no dependencies of the client."""
    assert set() == checked["good.py"]


def test_mypy_rejects_what_is_no_picture(checked):
    """A number, nothing, a list, and a file that is open as text."""
    assert set(range(6, 14)) == checked["bad.py"]
