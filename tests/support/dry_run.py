"""
Dry runs: a model is built and run on a device that need not exist.

PyTorch's FakeTensorMode propagates shapes, dtypes and devices through every operation and computes no number,
so a model of any size runs in seconds and without its weights.  A tensor on a wrong device raises, as on a
GPU.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from transformers import AutoConfig, PreTrainedModel
from transformers.models.auto.auto_factory import _BaseAutoModelClass

from models.families import inputs as upload
from models.families.clip import transformers_layout
from models.families.clip_flant5 import model as clip_flant5
from models.families.clip_flant5.network import ClipFlanT5Network

# Functions that read numbers from a tensor, and their replacements.
NUMBERS: dict[Any, Any] = {
    torch.Tensor.item: 0,
    torch.Tensor.__int__: 0,
    torch.Tensor.__float__: 0.0,
    torch.Tensor.__bool__: False,
    torch.equal: True,
}


KINDS_OF_KEYS = ("missing_keys", "unexpected_keys", "mismatched_keys")


@contextmanager
def dry_run() -> Iterator[None]:
    """
    Make tensors without content inside the context; tensors from outside can be read.

    What reads a network's weights builds it without any.
    """
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # libraries say that the weights of a network are random
    try:
        with pytest.MonkeyPatch.context() as patch, Fakes(allow_non_fake_inputs=True), Numbers():
            without_weights(patch)
            without_streams(patch)
            yield
    finally:
        logging.disable(before)


def without_weights(patch: pytest.MonkeyPatch) -> None:
    """Replace what reads weights, or what it returns."""

    def from_config(cls: Any, directory: Any, *, dtype: torch.dtype, **_: Any) -> Any:
        config = _.get("config") or AutoConfig.from_pretrained(
            directory, local_files_only=True, trust_remote_code=False
        )
        make = cls._from_config if hasattr(cls, "_from_config") else cls.from_config  # one class, or an Auto
        return make(config, dtype=dtype), {kind: () for kind in KINDS_OF_KEYS}

    def created(name: str, *_: Any, weights_only: bool, return_transform: bool, **options: Any) -> Any:
        made = open_clip.create_model_and_transforms(
            name, load_weights=False, pretrained_text=False, **options
        )
        return made[0]

    def flant5(directory: Any, layout: Any) -> ClipFlanT5Network:
        with torch.device("meta"):
            return ClipFlanT5Network({**layout.config, "vocab_size": layout.tokenizer.size}, layout.vision)

    for kind in (PreTrainedModel, _BaseAutoModelClass):
        patch.setattr(kind, "from_pretrained", classmethod(from_config))
    patch.setattr(open_clip, "create_model_from_pretrained", created)
    patch.setattr(transformers_layout, "converted", lambda directory, tensors: tensors)
    patch.setattr(clip_flant5, "NetworkTensors", flant5)  # the forward pass takes a network, too
    patch.setattr(torch, "_check_tensor_all_with", lambda *_: None)  # it reads a number


def without_streams(patch: pytest.MonkeyPatch) -> None:
    """Replace the streams of a GPU."""
    stream = SimpleNamespace(wait_stream=lambda other: None)
    patch.setattr(upload, "copying", lambda device: stream)
    patch.setattr(torch.cuda, "current_stream", lambda device: stream)
    patch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    patch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: None)


class Fakes(FakeTensorMode):  # type: ignore[no-untyped-call]
    """PyTorch's mode without its memo, whose weak references prevent modules from being moved."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.fake_tensor_converter.set_tensor_memo = lambda *_: None  # type: ignore[method-assign]

    def may_turn_const(self, t: torch.Tensor) -> bool:
        """Return False, or operations on a single number would run on the device."""
        return False


class Numbers(TorchFunctionMode):
    """Replaces numbers that are read from a tensor without content by 0, and attention by its result."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the replacement, or the result of *func*."""
        kwargs = kwargs or {}
        if func in NUMBERS:
            return NUMBERS[func]
        if func is torch.nn.functional.scaled_dot_product_attention:
            return attention(*args, **kwargs)
        if func is torch.Tensor.numpy:
            return np.zeros(args[0].shape, str(args[0].dtype).removeprefix("torch."))
        return func(*args, **kwargs)


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    **_: Any,
) -> torch.Tensor:
    """
    Return what a GPU's fused kernel would, since PyTorch takes another one without a GPU.

    Raises:
        RuntimeError: the tensors are on several devices.
    """
    places = {str(tensor.device) for tensor in (query, key, value, attn_mask) if tensor is not None}
    if len(places) > 1:
        raise RuntimeError(f"attention over tensors on several devices: {', '.join(sorted(places))}")
    rows, heads, length = query.shape[:3]
    return query.new_empty(rows, length, heads, value.shape[-1]).transpose(1, 2)
