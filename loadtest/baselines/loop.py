"""
`python -m loadtest.baselines.loop THREADS`: the loop that people write, for the shipped VQA model.

For each line on stdin it asks eight questions about a picture, one call after the other, and prints the
seconds.  The picture is decoded anew for each call, as a loop over a scoring function does.
"""

import sys
from time import perf_counter

import torch

from loadtest.workloads.corpus import pictures
from loadtest.workloads.questions import ASKED
from models.calls import LikelihoodCall
from models.checkpoints.locate import locate
from models.clip_flant5.model import ClipFlanT5
from models.image import Image


def main() -> None:
    """Answer lines until there are no more."""
    torch.set_num_threads(int(sys.argv[1]))
    model = ClipFlanT5(locate("demo:clip_flant5", "").directory, dtype="float32", device="cpu")
    files = pictures("rl")
    ask(model, files[0])
    print("ready", flush=True)
    for number, _ in enumerate(sys.stdin):
        began = perf_counter()
        ask(model, files[number % len(files)])
        print(perf_counter() - began, flush=True)


def ask(model: ClipFlanT5, file: bytes) -> None:
    """Eight single calls."""
    for question in ASKED:
        [outcome] = model.score([model.prepare(LikelihoodCall(Image(file), question))])
        if isinstance(outcome, Exception):
            raise outcome


if __name__ == "__main__":
    main()
