"""
Limits: matrix products and copies, the most that the device can do.

The other parts give their figures as shares of these.
"""

from collections.abc import Iterator
from functools import partial

import torch

from loadtest.gpu.bench import NEEDS_CUDA, Bench, product
from loadtest.gpu.results import Row, left_out
from loadtest.gpu.steps import Step
from loadtest.work import TRIES, peak, seconds

FP8 = (8, 9)  # the first compute capability with matrix products of FP8
HOST_TO_DEVICE, ON_DEVICE = "copy from pinned memory to the device", "copy on the device"


def steps(bench: Bench) -> Iterator[Step]:
    """Yield products and copies."""
    yield Step("matrix products", partial(products, bench))
    yield Step("copies", partial(copies, bench))


def products(bench: Bench) -> Iterator[Row]:
    """Measure each precision."""
    for name, dtype in (("bfloat16", torch.bfloat16), ("float32", torch.float32)):
        yield speed(name, peak(bench.device, dtype, bench.geometry.matrix))
    if not bench.cuda:
        yield from (left_out(product(name), NEEDS_CUDA) for name in ("TF32", "FP8"))
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield speed("TF32", peak(bench.device, torch.float32, bench.geometry.matrix))
    finally:
        torch.set_float32_matmul_precision(before)
    if torch.cuda.get_device_capability(bench.device) < FP8:
        yield left_out(product("FP8"), "the card has none")
    else:
        yield speed("FP8", fp8_peak(bench.device, bench.geometry.matrix))


def speed(name: str, operations: float) -> Row:
    """Return the row of a precision."""
    return Row(product(name), operations / 1e12, "TFLOP/s")


def fp8_peak(device: torch.device, size: int) -> float:
    """Measure the most operations a second of a matrix product in FP8 (e4m3), with one scale each."""
    a, b = (torch.randn(size, size, device=device).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device=device)
    multiply = partial(torch._scaled_mm, a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    return 2 * size**3 / min(seconds(multiply, device) for _ in range(TRIES))


def copies(bench: Bench) -> Iterator[Row]:
    """Measure the bandwidth of the way to the device, and of its memory, which a copy reads and writes."""
    size = bench.geometry.copy_mb * 2**20
    here, there = (torch.zeros(size, dtype=torch.uint8, device=bench.device) for _ in range(2))
    if bench.cuda:
        host = torch.zeros(size, dtype=torch.uint8, pin_memory=True)
        yield bandwidth(bench, HOST_TO_DEVICE, here, host, moved=1)
    else:
        yield left_out(HOST_TO_DEVICE, NEEDS_CUDA)
    yield bandwidth(bench, ON_DEVICE, here, there, moved=2)


def bandwidth(bench: Bench, name: str, to: torch.Tensor, source: torch.Tensor, moved: int) -> Row:
    """Return the best of several copies; each byte of it is *moved* once or twice."""
    best = min(seconds(lambda: to.copy_(source, non_blocking=True), bench.device) for _ in range(TRIES))
    return Row(name, moved * to.nbytes / best / 1e9, "GB/s")
