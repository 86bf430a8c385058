"""
The memory of the tensors on a device, and the operations of its matrix products.

Counts all tensors that exist simultaneously.  Not included: CUDA's context, workspace of kernels and cuBLAS,
and fragmentation of the allocator.
"""

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

ALIGNMENT = 16  # numbers


class Meter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """
    Counts the bytes of all tensors on *device*.

    Attributes:
        held: bytes of the present tensors.
        peak: highest value of *held*.
        operations: multiplications and additions in matrix products.
    """

    def __init__(self, device: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.held = self.peak = self.operations = 0
        self._device = torch.empty(0, device=device).device  # "cuda" gets its index
        self._seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the result of *func*, and count its tensors."""
        kwargs = kwargs or {}
        if func is torch.ops.aten.scaled_dot_product_attention.default:
            self.operations += 4 * args[0].numel() * args[1].shape[2]
            with self:
                return attention(*args, **kwargs)
        if func is not torch.ops.prim.device.default:
            with self:  # a composite operation: its parts are counted
                outcome = func.decompose(*args, **kwargs)
            if outcome is not NotImplemented:
                return outcome
        outcome = func(*args, **kwargs)
        if count := flop_registry.get(func.overloadpacket):
            self.operations += count(*args, **kwargs, out_val=outcome)
        for leaf in tree_leaves(outcome):
            if isinstance(leaf, torch.Tensor) and leaf.device == self._device:
                self._count(leaf.untyped_storage())
        if func is torch.ops.aten.logsumexp.default:  # its kernel keeps all exponentials
            self.peak = max(self.peak, self.held + args[0].nbytes)
        return outcome

    def _count(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata in self._seen:
            return
        self._seen.add(storage._cdata)
        self.held += storage.nbytes()
        self.peak = max(self.peak, self.held)
        weakref.finalize(storage, self._free, storage._cdata, storage.nbytes())

    def _free(self, storage: int, size: int) -> None:
        self._seen.remove(storage)
        self.held -= size


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *more: Any, **options: Any
) -> torch.Tensor:
    """
    Allocate what a fused kernel would: its result, and a copy of a mask that it cannot read in place.

    There are no scores in memory.  Without a GPU PyTorch chooses another kernel.

    Raises:
        RuntimeError: the tensors are on several devices.
    """
    mask = more[0] if more else options.get("attn_mask")
    places = {str(tensor.device) for tensor in (query, key, value, mask) if tensor is not None}
    if len(places) > 1:
        raise RuntimeError(f"attention over tensors on several devices: {', '.join(sorted(places))}")
    rows, heads, length, _ = query.shape
    if mask is not None and not is_aligned(mask):
        _copy = mask.new_empty(rows, heads, length, key.shape[2] + -key.shape[2] % ALIGNMENT)
    return query.new_empty(rows, length, heads, value.shape[-1]).transpose(1, 2)


def is_aligned(mask: torch.Tensor) -> bool:
    """Return True if fused kernels can read *mask* in place: contiguous rows at multiples of 16."""
    *outer, inner = mask.stride()
    return inner == 1 and mask.shape[-1] % ALIGNMENT == 0 and not any(stride % ALIGNMENT for stride in outer)
