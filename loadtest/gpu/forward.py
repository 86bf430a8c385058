"""
The forward pass of CLIP-FlanT5 in each way that it can run, as a share of the measured peak.

Weights are random and made on the device.  A batch has at most `AT_ONCE` questions, as in a profile; more
run in several batches.  The reference's way is one pair at a time, so that its rate does not depend on their
number.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch

from loadtest.forward import ANSWER, Batch, fast_pass, make_batch, plain_loop, random_network, total_work
from loadtest.gpu.bench import NEEDS_CUDA, Bench, drop
from loadtest.gpu.results import Row, left_out
from loadtest.gpu.steps import Step
from models.families.clip_flant5.forward import Forward
from models.families.clip_flant5.network import ClipFlanT5Network

AT_ONCE = 64
MANY = 16  # pictures, from which on the targets of the peak count
SHARE = {"XL": 0.5, "XXL": 0.55}
GAIN = 3.0  # rate over that of the reference's way, for eight questions
EIGHT = 8

Run = Callable[[Batch], object]


@dataclass(frozen=True, slots=True)
class Way:
    """
    A way to compute a batch.

    Attributes:
        make: returns the function that computes one, from a network that it may take apart.
        single: only one picture at a time.
    """

    make: Callable[[Bench, ClipFlanT5Network], Run]
    needs_cuda: bool = False
    single: bool = False


def ours(bench: Bench, network: ClipFlanT5Network, **switches: Any) -> Run:
    """Return the pass that the service runs."""
    forward = Forward(network, device=bench.device, dtype=bench.torch_dtype, **switches)
    return partial(fast_pass, forward)


@torch.inference_mode()
def transformers_batch(network: ClipFlanT5Network, batch: Batch) -> list[float]:
    """Compute the batch with transformers' modules, each picture's features once."""
    features = network.features(batch.pixels.to(network.t5.dtype))[[image for image, _ in batch.pairs]]
    embedded, mask = network.splice(features, [text for _, text in batch.pairs])
    labels = torch.tensor([ANSWER] * len(batch.pairs), device=features.device)
    log_probs = network.decode(network.encode(embedded, mask), mask, labels).float().log_softmax(-1)
    means: list[float] = log_probs.gather(2, labels[..., None])[..., 0].mean(1).tolist()
    return means


REFERENCE = "the reference's way"
OURS: Mapping[str, Way] = {
    "eager": Way(ours),
    "compiled": Way(partial(ours, compile=True), needs_cuda=True),
    "CUDA graphs": Way(partial(ours, graph_rows=AT_ONCE), needs_cuda=True),
}
WAYS: Mapping[str, Way] = {
    REFERENCE: Way(lambda bench, network: partial(plain_loop, network), single=True),
    "transformers, batched": Way(lambda bench, network: partial(transformers_batch, network)),
    **OURS,
}


def steps(bench: Bench, ways: Mapping[str, Way] = WAYS) -> Iterator[Step]:
    """Yield each of the *ways* of each size with each batch, then the best figures of a size."""
    for size in bench.geometry.flant5:
        for name, way in ways.items():
            if way.needs_cuda and not bench.cuda:
                row = left_out(f"{size}, {name}", NEEDS_CUDA)
                yield Step(row.what, partial(list, [row]))
                continue
            made = cache(partial(build, bench, size, way))
            for images in (1,) if way.single else bench.geometry.pairs:
                for questions in bench.geometry.questions:
                    what = named(size, images, questions, name)
                    yield Step(what, partial(measure, bench, what, made, images, questions))
            drop(made)
        yield Step(f"{size}, best", partial(best, bench, size), again=True)


def named(size: str, images: int, questions: int, way: str) -> str:
    """Return the name of a row."""
    return f"{size}, {images} × {questions}, {way}"


def build(bench: Bench, size: str, way: Way) -> tuple[ClipFlanT5Network, Run]:
    """Return a network, of which only its configuration may be left, and the function around it."""
    network = random_network(*bench.geometry.flant5[size], bench.device, bench.torch_dtype)
    return network, way.make(bench, network)


def measure(
    bench: Bench, what: str, made: Callable[[], tuple[ClipFlanT5Network, Run]], images: int, questions: int
) -> Iterator[Row]:
    """Measure one batch in pairs of picture and question a second."""
    network, run = made()
    each = max(1, min(images, AT_ONCE // questions))
    batches = [make_batch(network, each, questions, bench.device) for _ in range(images // each)]
    first_s = bench.run_s(lambda: run(batches[0]))
    batch_s = bench.pace_s(lambda: [run(batch) for batch in batches])
    operations = sum(total_work(network, batch) for batch in batches) / batch_s
    note = f"{operations / 1e12:.4g} TFLOP/s, first run {first_s:.1f} s"
    yield Row(what, images * questions / batch_s, "pairs/s", share=operations / bench.peak, note=note)
    if images * questions == 1:
        yield Row(f"{what}: latency", 1000 * batch_s, "ms")


def best(bench: Bench, size: str) -> Iterable[Row]:
    """Return the figures with a target: of the best of our ways."""
    rows = {row.what: row for row in bench.results.of("forward") if row.share is not None}
    pairs, questions = bench.geometry.pairs, bench.geometry.questions
    of_many = [
        rows[name]
        for way in OURS
        for images in pairs
        for asked in questions
        if images >= MANY and (name := named(size, images, asked, way)) in rows
    ]
    if of_many:
        top = max(of_many, key=lambda row: row.share or 0)
        what = f"{size}, best for {MANY} pictures or more"
        yield Row(what, top.value, top.unit, share=top.share, least=SHARE[size], note=top.what)
    loop = rows.get(named(size, 1, EIGHT, REFERENCE))
    eight = [rows[name] for way in OURS if (name := named(size, max(pairs), EIGHT, way)) in rows]
    if loop and loop.value and eight:
        top = max(eight, key=lambda row: row.value or 0)
        what = f"{size}, {EIGHT} questions, best over {REFERENCE}"
        yield Row(what, (top.value or 0) / loop.value, "×", least=GAIN, note=top.what)
