"""
Drift: how far scores are apart between devices, dtypes and batches, with equal weights.

A score is the mean log-probability of an answer, whose difference is the relative one of a VQAScore.  Each
setting is compared with float32 on the CPU, and with itself: pairs alone, in one batch, and in a batch of the
reverse order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from statistics import fmean
from typing import Any

import torch

from loadtest.forward import Batch, fast_pass, make_batch, random_network, twin
from loadtest.gpu.bench import NEEDS_CUDA, Bench
from loadtest.gpu.results import Row, left_out
from loadtest.gpu.steps import Step
from models.checkpoints.weights import DTYPES
from models.families.clip_flant5.forward import Forward
from models.families.clip_flant5.network import ClipFlanT5Network

IMAGES, QUESTIONS = 4, 2
BOUNDS = {"float32": 1e-5, "bfloat16": 5e-3}  # docs/performance.md states them; alone and in any batch
OVER_CPU = {"float32": 1e-5}  # no bound between devices is stated for another dtype


Three = tuple[list[float], list[float], list[float]]
"""Scores of pairs alone, in one batch, and in a batch of the reverse order."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A device and a dtype, with switches of `Forward`."""

    device: str
    dtype: str
    switches: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name in the table."""
        return ", ".join([self.dtype, self.device, *self.switches])


GPU = (
    Setting("cuda", "float32"),
    Setting("cuda", "bfloat16"),
    Setting("cuda", "bfloat16", {"compile": True}),
    Setting("cuda", "bfloat16", {"graph_rows": IMAGES * QUESTIONS}),
)
CPU = Setting("cpu", "float32")


class Scores:
    """The scores of the same pairs in any setting, by equal weights, which are kept in float32 on the CPU."""

    def __init__(self, bench: Bench) -> None:
        size = next(iter(bench.geometry.flant5.values()))
        self._network: ClipFlanT5Network = random_network(*size, bench.device, torch.float32).cpu()
        self._batch = make_batch(self._network, IMAGES, QUESTIONS, torch.device("cpu"))

    def of(self, setting: Setting) -> Three:
        """Return the scores in a setting."""
        device, dtype = torch.device(setting.device), DTYPES[setting.dtype]
        forward = Forward(twin(self._network), device=device, dtype=dtype, **setting.switches)
        pixels, pairs = self._batch.pixels.to(device), self._batch.pairs
        alone = [
            fast_pass(forward, Batch(pixels[image : image + 1], [(0, text)]))[0] for image, text in pairs
        ]
        together = fast_pass(forward, Batch(pixels, pairs))
        return alone, together, fast_pass(forward, Batch(pixels, pairs[::-1]))[::-1]


def steps(bench: Bench) -> Iterator[Step]:
    """Yield a step for each setting."""
    scores = cache(partial(Scores, bench))
    reference = cache(lambda: scores().of(CPU))
    yield Step(CPU.name, lambda: within(CPU, *reference()))
    for setting in GPU if bench.cuda else [Setting("cpu", "bfloat16")]:
        yield Step(setting.name, partial(compare, setting, scores, reference))
    for setting in () if bench.cuda else GPU:
        yield Step(setting.name, partial(list, [left_out(setting.name, NEEDS_CUDA)]))


def compare(setting: Setting, scores: Callable[[], Scores], reference: Callable[[], Three]) -> Iterator[Row]:
    """Compare a setting with float32 on the CPU, and with itself."""
    alone, together, reverse = scores().of(setting)
    bound = OVER_CPU.get(setting.dtype)
    yield difference(f"{setting.name}: from float32 on the CPU", alone, reference()[0], bound)
    yield from within(setting, alone, together, reverse)


def within(
    setting: Setting, alone: Sequence[float], together: Sequence[float], reverse: Sequence[float]
) -> Iterator[Row]:
    """Compare a setting with itself."""
    bound = BOUNDS[setting.dtype]
    yield difference(f"{setting.name}: in a batch from alone", together, alone, bound)
    yield difference(f"{setting.name}: in reverse order", reverse, together, bound)


def difference(what: str, scores: Sequence[float], others: Sequence[float], most: float | None) -> Row:
    """Return the largest difference of two lists of scores, with the mean one as a note."""
    apart = [abs(one - other) for one, other in zip(scores, others, strict=True)]
    return Row(what, max(apart), "of log P", most=most, note=f"mean {fmean(apart):.2g}")
