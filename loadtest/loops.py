"""
`python -m loadtest.loops calls|reference THREADS QUESTIONS`: a plain loop over the shipped VQA model.

For each line on stdin, answers that many questions about a picture, one after the other, and prints the
seconds.

**calls** makes a call of the service's model for each question, and decodes the picture for each call, as in
a loop over a scoring function.
**reference** is t2v_metrics' way: one pair at a time through transformers' modules; the picture is decoded
and encoded for each question.  Preprocessing is our own code, which yields the same pixels in less time.
"""

import sys
from collections.abc import Callable, Sequence
from time import perf_counter

import torch

from loadtest.corpus import QUESTIONS, image_files
from models.checkpoints.locate import locate
from models.core.calls import LikelihoodCall
from models.families.clip_flant5.layout import read_layout
from models.families.clip_flant5.model import ClipFlanT5
from models.families.clip_flant5.network import load_network
from models.images.image import Image

CHECKPOINT = "demo:clip_flant5"

Ask = Callable[[bytes], None]
"""Answer the questions about a picture's file."""


def main() -> None:
    """Print "ready"; then for each line on stdin answer questions about a picture, and print the seconds."""
    way, threads, questions = sys.argv[1:]
    torch.set_num_threads(int(threads))
    ask = {"calls": calls, "reference": reference}[way](QUESTIONS[: int(questions)])
    files = image_files("rl")
    ask(files[0])
    print("ready", flush=True)
    for number, _ in enumerate(sys.stdin):
        began = perf_counter()
        ask(files[number % len(files)])
        print(perf_counter() - began, flush=True)


def calls(questions: Sequence[str]) -> Ask:
    """Load the service's model for single calls."""
    model = ClipFlanT5(locate(CHECKPOINT).directory, dtype="float32", device="cpu")

    def ask(file: bytes) -> None:
        for question in questions:
            [outcome] = model.score([model.prepare(LikelihoodCall(Image(file), question))])
            if isinstance(outcome, Exception):
                raise outcome

    return ask


def reference(questions: Sequence[str]) -> Ask:
    """Load transformers' modules."""
    directory = locate(CHECKPOINT).directory
    layout = read_layout(directory)
    network = load_network(directory, layout).eval()
    answer = layout.tokenizer.encode("Yes")

    @torch.inference_mode()
    def ask(file: bytes) -> None:
        for question in questions:
            text = layout.tokenizer.around_image(question)
            network.log_probs(layout.pixels(Image(file).rgb), text, answer).tolist()

    return ask


if __name__ == "__main__":
    main()
