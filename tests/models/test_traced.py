"""Blocks as TorchScript: the same numbers, without Python."""

import pytest
import torch
from torch.nn import functional as F

from models.clip_flant5.traced import Traced
from tests.models.test_forward import ASKED, SHORT, fast, log_probs, network


class Block:
    """A block that says how often Python has run it."""

    runs = 0

    def __call__(self, states: torch.Tensor, other: torch.Tensor, halved: bool) -> torch.Tensor:
        self.runs += 1
        rows, length, _ = states.shape
        heads = F.gelu(states).view(rows, length, 2, -1) @ other
        return (heads / 2 if halved else heads).reshape(rows * length, -1)


SIZES = [(1, 3), (4, 7), (2, 1), (5, 3)]


@torch.inference_mode()
def test_python_runs_a_block_once_whatever_the_sizes_of_its_tensors_are():
    block, run = Block(), Traced(Block.__call__)
    generator = torch.Generator().manual_seed(0)

    for rows, length in SIZES:
        states = torch.randn(rows, length, 8, generator=generator)
        other = torch.randn(4, length, generator=generator)
        assert torch.equal(run(block, states, other, False), Block()(states, other, False))
    assert block.runs == 1


@torch.inference_mode()
def test_each_choice_and_each_block_has_a_trace_of_its_own():
    run, blocks = Traced(Block.__call__), [Block(), Block()]
    states, other = torch.ones(2, 3, 8), torch.ones(4, 5)

    for block in blocks:
        whole = run(block, states, other, False)
        assert torch.equal(run(block, states, other, True), whole / 2)
        assert torch.equal(run(block, states, other, False), whole)
    assert [block.runs for block in blocks] == [2, 2]


@pytest.mark.parametrize(
    ("first", "then"), [(ASKED, SHORT), (SHORT, ASKED), (ASKED[:1], ASKED), (ASKED, ASKED[2:])]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_was_traced_for_one_batch_is_right_for_another(first, then, dtype):
    """Equal to the bit to a pass that is traced for that one."""
    made = network().to(dtype)
    used = fast(made, dtype)
    log_probs(used, first)

    assert torch.equal(log_probs(used, then), log_probs(fast(made, dtype), then))
