"""
`python -m loadtest.launch`: how much of Python's lock (the GIL) it takes to launch a batch.

Networks of full depth and of width 8, so that computing costs nothing, run on one to eight threads at once,
as on so many GPUs.  They run eagerly, as there: for each operation torch releases the lock and takes it
again.  If more threads do not launch more batches a second, the time of a batch is the lock's.
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import open_clip
import torch

from models.core.contract import Prepared
from models.families.batches import FeatureCache
from models.families.clip_flant5 import XL
from models.families.clip_flant5.forward import Forward
from models.families.clip_flant5.layout import VIT_L_14_336
from models.families.clip_flant5.model import ImageQuestion, Scorer
from models.families.clip_flant5.network import ClipFlanT5Network
from models.families.clip_flant5.tokens import EOS, AnswerQuery, choices
from models.images.pixels import Pixels

WIDTH = 8
TEXT = 77  # tokens
QUESTION = (EOS,) * 33, (EOS,) * 30  # lengths of the fixed text and of an ordinary question
EOS_ANSWER = (EOS, EOS)  # two tokens, as "Yes" and `</s>` are
T5 = XL.config | {"d_model": WIDTH, "d_ff": WIDTH, "num_heads": 1, "d_kv": WIDTH, "vocab_size": 100}
SIDE = 28
FEW_PATCHES = {"image_size": SIDE, "patch_size": 14}
TOWER = VIT_L_14_336 | FEW_PATCHES
TOWER |= {"hidden_size": WIDTH, "intermediate_size": WIDTH, "num_attention_heads": 1}
CLIP_IMAGE = FEW_PATCHES | {"layers": 24, "width": WIDTH, "head_width": WIDTH}
CLIP_TEXT = {"context_length": TEXT, "vocab_size": 100, "layers": 12, "width": WIDTH, "heads": 1}

Launch = Callable[[], object]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure each network and print a table in Markdown."""
    options = parse(argv)
    torch.set_num_threads(1)
    print(f"| ms of a batch, by threads | {' | '.join(map(str, options.threads))} |")
    print("|---" * (1 + len(options.threads)) + "|")
    for name, build in (("CLIP-FlanT5-XL, XXL", flant5), ("CLIP ViT-L/14", clip)):
        launches = [build() for _ in range(max(options.threads))]
        rounds = [
            [batch_s(launches[:count], options.seconds) for count in options.threads]
            for _ in range(options.rounds)
        ]
        medians = (f"{1000 * median(found):.1f}" for found in zip(*rounds, strict=True))
        print(f"| {name} | {' | '.join(medians)} |", flush=True)
    return 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.launch", description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8], help="numbers to try")
    parser.add_argument("--rounds", type=int, default=5, help="of each number; their median is printed")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a round")
    return parser.parse_args(argv)


def flant5() -> Launch:
    """Return a batch of CLIP-FlanT5: XL and XXL have equal depths, and so the same operations."""
    cpu, network = torch.device("cpu"), ClipFlanT5Network(T5, TOWER)
    forward = Forward(network, device=cpu, dtype=torch.bfloat16, trace=False)
    model = Scorer(forward, FeatureCache(0), Pixels(SIDE))
    query = AnswerQuery(
        (EOS_ANSWER,), tuple(enumerate(EOS_ANSWER)), partial(choices, False, 0.0, [len(EOS_ANSWER)])
    )
    pixels = torch.empty(3, SIDE, SIDE, dtype=torch.uint8)
    batch = [Prepared(1, ImageQuestion("", pixels, QUESTION, query))]
    return lambda: model.score(batch)


def clip() -> Launch:
    """Return a batch of a CLIP: an image and a text."""
    network = open_clip.CLIP(WIDTH, CLIP_IMAGE, CLIP_TEXT, quick_gelu=True).eval()
    image, text = torch.zeros(1, 3, SIDE, SIDE), torch.ones(1, TEXT, dtype=torch.long)

    @torch.inference_mode()
    def run() -> None:
        network.encode_image(image)
        network.encode_text(text)

    return run


def batch_s(launches: Sequence[Launch], seconds: float) -> float:
    """Repeat each on a thread of its own for *seconds*; return them divided by the batches of all."""
    counts, stop, ready = [0] * len(launches), threading.Event(), threading.Barrier(len(launches) + 1)

    def repeat(number: int) -> None:
        launches[number]()
        ready.wait()
        while not stop.is_set():
            launches[number]()
            counts[number] += 1

    threads = [threading.Thread(target=repeat, args=(number,)) for number in range(len(launches))]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.perf_counter()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - began) / sum(counts)


if __name__ == "__main__":
    sys.exit(main())
