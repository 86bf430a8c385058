"""
`python -m loadtest.forward`: CLIP-FlanT5's forward pass against a plain loop, with random weights.

The plain loop does what the reference implementation does: one pair at a time, the image encoded again
for each question, transformers' modules.  Both get the same weights, pixels and token ids.  Their rounds
alternate, figures are medians, and on a CPU each uses its best number of threads.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from loadtest.work import free_bytes, peak, seconds, text_work, vision_work
from models.checkpoints.files import read_json
from models.checkpoints.weights import DTYPES
from models.families.clip_flant5 import XL, XXL
from models.families.clip_flant5.forward import Forward
from models.families.clip_flant5.layout import VIT_L_14_336
from models.families.clip_flant5.network import ClipFlanT5Network
from models.families.clip_flant5.tokens import SplitText

DEMO = Path(__file__).parents[1] / "models" / "demo" / "weights" / "clip_flant5"
GEOMETRIES = {"xl": XL, "xxl": XXL}
BEFORE = 33  # tokens of the fixed text ahead of the image
AFTER = range(16, 32, 2)  # tokens of the questions behind it, in turn
ANSWER = (209, 1)  # two tokens like "Yes" and "</s>"; which ones does not matter


@dataclass(frozen=True, slots=True)
class Batch:
    """Pixels (images, channels, size, size), and each pair's image and text."""

    pixels: torch.Tensor
    pairs: list[tuple[int, SplitText]]


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians of one number of threads: seconds of a batch either way, operations a second of a product."""

    plain: float
    fast: float
    peak: float


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where the demo geometry on a CPU gains less than it must."""
    options = parse(argv)
    device, dtype = torch.device(options.device), DTYPES[options.dtype]
    network = build(options.geometry, options.layers, device, dtype)
    fast = Forward(twin(network), device=device, dtype=dtype, compile=options.compile)
    batch = make_batch(network, options.images, options.questions, device)
    print(f"{options.geometry}, {options.dtype}, {options.images} x {options.questions} pairs per batch")

    figures = []
    for threads in options.threads if device.type == "cpu" else [torch.get_num_threads()]:
        torch.set_num_threads(threads)
        found = measure(network, fast, batch, options.rounds, options.matrix)
        pace = [f"{len(batch.pairs) / batch_s:.4g}" for batch_s in (found.plain, found.fast)]
        print(f"{threads} threads: plain loop {pace[0]} pairs/s, fast pass {pace[1]} pairs/s", flush=True)
        figures.append(found)

    work = total_work(network, batch)
    plain_s, fast_s = (min(getattr(found, name) for found in figures) for name in ("plain", "fast"))
    achieved, most = work / fast_s / 1e12, max(found.peak for found in figures) / 1e12
    print(f"a pair takes {work / len(batch.pairs) / 1e12:.4g} TFLOP")
    print(f"fast pass {achieved:.4g} TFLOP/s, matrix product {most:.4g} TFLOP/s: {achieved / most:.2f} of it")
    print(f"log-probabilities at most {apart(network, fast, batch):.1e} apart")
    print(f"speed-up over the plain loop, each with its best number of threads: {plain_s / fast_s:.2f}")
    gated = options.geometry == "demo" and device.type == "cpu"
    return int(gated and plain_s / fast_s < options.least)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.forward", description=__doc__)
    parser.add_argument("--geometry", choices=("demo", *GEOMETRIES), default="demo")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="float32")
    parser.add_argument("--layers", type=int, help="keep only this many layers of each stack, at least two")
    parser.add_argument("--images", type=int, default=1, help="images in a batch")
    parser.add_argument("--questions", type=int, default=8, help="questions about each image")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=sorted({1, os.cpu_count() or 1}),
        help="numbers of threads to try, on a CPU",
    )
    parser.add_argument("--compile", action="store_true", help="use torch.compile for the fast pass")
    parser.add_argument(
        "--matrix", type=int, default=0, help="side of the matrices of the peak; 0: a large one"
    )
    parser.add_argument(
        "--least",
        type=float,
        default=3.0,
        help="speed-up over the plain loop, below which the demo geometry on a CPU exits with status 1",
    )
    return parser.parse_args(argv)


# --- the network --------------------------------------------------------------------------------


def build(
    geometry: str,
    layers: int | None,
    device: torch.device,
    dtype: torch.dtype,
    free_on: Callable[[torch.device], int] = free_bytes,
) -> ClipFlanT5Network:
    """Build a network of random weights on *device*; exit if its memory is too small."""
    config, tower = configuration(geometry, layers)
    with torch.device("meta"):
        parameters = sum(tensor.numel() for tensor in ClipFlanT5Network(config, tower).parameters())
    needed = 2.2 * parameters * dtype.itemsize  # what the fast pass joins is a copy of its own
    if needed > (free := free_on(device)):
        raise SystemExit(
            f"{geometry}: {parameters / 1e9:.1f} G parameters of {dtype.itemsize} bytes take"
            f" {needed / 1e9:.0f} GB, and {free / 1e9:.0f} GB are free on {device}; try --layers 2"
        )
    return random_network(config, tower, device, dtype)


def random_network(
    config: dict[str, Any], tower: dict[str, Any], device: torch.device, dtype: torch.dtype
) -> ClipFlanT5Network:
    """Build a network of random weights on *device*, always the same there."""
    torch.manual_seed(0)
    with torch.device(device), default_dtype(dtype):
        network = ClipFlanT5Network(config, tower).eval()
    head = torch.empty_like(
        network.t5.lm_head.weight
    )  # transformers 5 makes it the embeddings, which it is not
    nn.init.normal_(head, std=config["d_model"] ** -0.5)
    network.t5.lm_head.weight = nn.Parameter(head)
    return network


def configuration(geometry: str, layers: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """T5's and the tower's configuration."""
    if geometry == "demo":
        config, tower = read_json(DEMO / "config.json"), read_json(DEMO / "vision_tower" / "config.json")
    else:
        config, tower = GEOMETRIES[geometry].config, VIT_L_14_336
    if layers:
        kept = max(2, layers)
        config = config | {"num_layers": kept, "num_decoder_layers": kept}
        tower = tower | {"num_hidden_layers": kept}
    return config, tower


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Return new parameters in *dtype*."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def twin(network: ClipFlanT5Network) -> ClipFlanT5Network:
    """Another network around the same tensors, for `Forward` to take them from."""
    with torch.device("meta"):
        other = ClipFlanT5Network(network.t5.config.to_dict(), network.vision_tower.config.to_dict())
    other.load_state_dict(network.state_dict(), assign=True)
    return other


def make_batch(network: ClipFlanT5Network, images: int, questions: int, device: torch.device) -> Batch:
    """Random pixels, and random questions of eight lengths about each image."""
    config, words = network.vision_tower.config, network.t5.config.vocab_size
    pixels = torch.randn(images, config.num_channels, config.image_size, config.image_size, device=device)
    before = torch.randint(3, words, (BEFORE,)).tolist()
    after = [torch.randint(3, words, (AFTER[i % len(AFTER)],)).tolist() for i in range(questions)]
    return Batch(pixels, [(image, (before, text)) for image in range(images) for text in after])


# --- the two ways -------------------------------------------------------------------------------


@torch.inference_mode()
def plain_loop(network: ClipFlanT5Network, batch: Batch) -> list[float]:
    """Mean log-probability of each answer, as the reference computes it: in bfloat16 under autocast."""
    dtype, means = network.t5.dtype, []
    answer = torch.tensor(ANSWER, device=batch.pixels.device)
    with torch.autocast(batch.pixels.device.type, torch.bfloat16, enabled=dtype == torch.bfloat16):
        for image, text in batch.pairs:
            log_probs = network.log_probs(batch.pixels[image].to(dtype), text, ANSWER)
            means.append(log_probs.gather(1, answer[:, None]).mean().item())
    return means


@torch.inference_mode()
def fast_pass(fast: Forward, batch: Batch) -> list[float]:
    """Compute the log-probabilities of the whole batch in one pass."""
    pairs = len(batch.pairs)
    features = fast.features(batch.pixels)[[image for image, _ in batch.pairs]]
    states, padding = fast.encode(features, [text for _, text in batch.pairs])
    log_probs = fast.logits(states, padding, [[ANSWER]] * pairs).log_softmax(-1)
    answers = torch.tensor(ANSWER * pairs, device=log_probs.device)
    means: list[float] = log_probs.gather(1, answers[:, None]).view(pairs, -1).mean(1).tolist()
    return means


def measure(network: ClipFlanT5Network, fast: Forward, batch: Batch, rounds: int, matrix: int) -> Figures:
    """Alternate both ways for *rounds*, after one round that warms up; then multiply matrices."""
    device = batch.pixels.device
    plain, quick = [], []
    for _ in range(rounds + 1):
        plain.append(seconds(lambda: plain_loop(network, batch), device))
        quick.append(seconds(lambda: fast_pass(fast, batch), device))
    return Figures(median(plain[1:]), median(quick[1:]), peak(device, network.t5.dtype, matrix))


def apart(network: ClipFlanT5Network, fast: Forward, batch: Batch) -> float:
    """Return the largest difference between the two ways' mean log-probabilities."""
    both = zip(plain_loop(network, batch), fast_pass(fast, batch), strict=True)
    return max(abs(one - other) for one, other in both)


def total_work(network: ClipFlanT5Network, batch: Batch) -> int:
    """Operations that the fast pass takes for *batch*, padding not counted."""
    t5, tower = network.t5.config, network.vision_tower.config
    patches = (tower.image_size // tower.patch_size) ** 2
    seen = len(batch.pixels) * vision_work(tower, t5.d_model, network.layer)
    lengths = [len(before) + patches + len(after) for _, (before, after) in batch.pairs]
    return seen + sum(text_work(t5, length, len(ANSWER)) for length in lengths)


if __name__ == "__main__":
    sys.exit(main())
