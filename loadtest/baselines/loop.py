"""
`python -m loadtest.baselines.loop THREADS QUESTIONS`: a plain loop over the shipped VQA model.

For each line on stdin, answers that many questions about a picture, one call after the other, and prints
the seconds.  The picture is decoded for each call, as in a loop over a scoring function.
"""

import sys
from collections.abc import Callable
from time import perf_counter

import torch

from loadtest.corpus import QUESTIONS, pictures
from models.checkpoints.locate import locate
from models.core.calls import LikelihoodCall
from models.families.clip_flant5.model import ClipFlanT5
from models.images.image import Image


def main() -> None:
    """Run the loop until stdin ends."""
    torch.set_num_threads(int(sys.argv[1]))
    model = ClipFlanT5(locate("demo:clip_flant5", "").directory, dtype="float32", device="cpu")
    questions = QUESTIONS[: int(sys.argv[2])]

    def ask(file: bytes) -> None:
        for question in questions:
            [outcome] = model.score([model.prepare(LikelihoodCall(Image(file), question))])
            if isinstance(outcome, Exception):
                raise outcome

    answer_lines(ask)


def answer_lines(ask: Callable[[bytes], None]) -> None:
    """Print "ready"; then for each line on stdin call *ask* with a picture, and print the seconds."""
    files = pictures("rl")
    ask(files[0])
    print("ready", flush=True)
    for number, _ in enumerate(sys.stdin):
        began = perf_counter()
        ask(files[number % len(files)])
        print(perf_counter() - began, flush=True)


if __name__ == "__main__":
    main()
