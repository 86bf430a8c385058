"""How much arithmetic a batch of CLIP-FlanT5 takes, and how much a device can do."""

import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import CLIPVisionConfig, T5Config

MATRIX = {"cpu": 2048, "cuda": 8192}  # large enough to reach the peak, small enough for a few seconds
TRIES = 10


def vision_work(config: CLIPVisionConfig, width: int, layer: int) -> int:
    """
    Operations for one image, up to the features spliced into the text.

    A matrix product (m, k) @ (k, n) counts as 2mkn here and below; norms, activations, softmax and
    residuals as nothing.  Of *tokens* t, *hidden* h and *inner* i, a layer takes 2t(4hh + 2hi) for its
    projections and 4tth for attention.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    patches = (config.image_size // config.patch_size) ** 2
    tokens = patches + 1
    block = 2 * tokens * (4 * hidden**2 + 2 * hidden * inner) + 4 * tokens**2 * hidden
    layers = layer % (config.num_hidden_layers + 1)
    splice = 2 * patches * (hidden * width + width**2)
    patch = 2 * patches * hidden * config.num_channels * config.patch_size**2
    return int(patch + layers * block + splice)


def text_work(config: T5Config, length: int, tokens: int) -> int:
    """
    Operations for one pair: a question of *length* (image included, padding not), an answer of *tokens*.

    Of width d, feed-forward f and all heads together a, the encoder's layer takes 2n(4da + 3df) for
    projections and 4nna for attention.  The decoder's takes 2t(6da + 3df) and 4tta, and to read the
    encoder's states 4tda + 4tnhd (h heads) without keys and values, or 4nda + 4tna with them.
    """
    d, f, heads = config.d_model, config.d_ff, config.num_heads
    a, n, t = heads * config.d_kv, length, tokens
    encoder = 2 * n * (4 * d * a + 3 * d * f) + 4 * n * n * a
    read = 4 * t * d * a + 4 * t * n * heads * d if t < config.d_kv else 4 * n * d * a + 4 * t * n * a
    decoder = 2 * t * (6 * d * a + 3 * d * f) + 4 * t * t * a + read
    head = 2 * t * d * config.vocab_size
    return int(config.num_layers * encoder + config.num_decoder_layers * decoder + head)


def peak(device: torch.device, dtype: torch.dtype, size: int = 0) -> float:
    """
    Measure the most operations a second of a matrix product, with torch's threads as set.

    Args:
        size: of the matrices; by default a large one.
    """
    size = size or MATRIX[device.type]
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    return 2 * size**3 / min(seconds(lambda: a @ b, device) for _ in range(TRIES))


def seconds(do: Callable[[], object], device: torch.device) -> float:
    """How long *do* takes, the device's queue included."""
    wait(device)
    began = time.perf_counter()
    do()
    wait(device)
    return time.perf_counter() - began


def wait(device: torch.device) -> None:
    """Until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def free_bytes(device: torch.device) -> int:
    """Memory that is free on *device*; of the main memory, as Linux reports it."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return 1024 * int(lines["MemAvailable"].split()[0])
