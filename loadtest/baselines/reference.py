"""
`python -m loadtest.baselines.reference THREADS QUESTIONS`: t2v_metrics' way, for the shipped VQA model.

One pair at a time through transformers' modules; the picture is decoded and encoded for each question.
Preprocessing is our own code, which yields the same pixels in less time.  For each line on stdin,
answers that many questions about a picture, and prints the seconds.
"""

import sys

import torch

from loadtest.baselines.loop import answer_lines
from loadtest.corpus import QUESTIONS
from models.checkpoints.locate import locate
from models.families.clip_flant5.layout import read_layout
from models.families.clip_flant5.network import load_network
from models.images.image import Image


def main() -> None:
    """Run the loop until stdin ends."""
    torch.set_num_threads(int(sys.argv[1]))
    questions = QUESTIONS[: int(sys.argv[2])]
    directory = locate("demo:clip_flant5").directory
    layout = read_layout(directory)
    network = load_network(directory, layout).eval()
    answer = layout.tokenizer.encode("Yes")

    @torch.inference_mode()
    def ask(file: bytes) -> None:
        for question in questions:
            text = layout.tokenizer.around_image(question)
            network.log_probs(layout.pixels(Image(file).rgb), text, answer).tolist()

    answer_lines(ask)


if __name__ == "__main__":
    main()
