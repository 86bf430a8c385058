"""
`python -m loadtest.loop THREADS`: the loop that people write, for the shipped VQA model.

For each line on stdin it asks eight questions about a picture, one call after the other, and prints the
seconds.  The picture is decoded anew for each call, as a loop over a scoring function does.
"""

import io
import sys
from time import perf_counter

import PIL.Image
import torch

from loadtest.corpus import pictures
from loadtest.work import ASKED
from models.base import Image, LikelihoodCall
from models.clip_flant5 import ClipFlanT5
from models.locate import locate


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
        image = Image(PIL.Image.open(io.BytesIO(file)).convert("RGB"), "")
        [outcome] = model.score([model.prepare(LikelihoodCall(image, question))])
        if isinstance(outcome, Exception):
            raise outcome


if __name__ == "__main__":
    main()
