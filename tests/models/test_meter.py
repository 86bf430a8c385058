"""What the meter of a dry run counts."""

import pytest
import torch
from torch.utils.flop_counter import sdpa_flop_count

from models.sizing.dry_run import dry_run


@pytest.fixture
def meter():
    with dry_run() as meter:
        yield meter


def test_the_meter_counts_what_lives_at_once(meter):
    """Views and what is changed in place take nothing, and what is dropped no longer counts."""
    kept = torch.zeros(1000, device="cuda")
    other = kept + 1
    other.mul_(2)[10:].view(-1)
    del other
    torch.zeros(500, dtype=torch.bfloat16, device="cuda")
    torch.zeros(10**9)

    assert (4000, 8000) == (meter.held, meter.peak)


@torch.inference_mode()
def test_a_mask_that_lies_otherwise_is_copied(meter):
    """Across, or with rows of 1,001 numbers: once more its size."""
    attend = torch.nn.functional.scaled_dot_product_attention
    across = torch.zeros(1, 1, 1008, 1008, device="cuda").transpose(2, 3)
    odd = torch.zeros(1, 1, 1001, 1001, device="cuda")

    for mask in (across, odd):
        states = torch.zeros(1, 1, len(mask[0, 0]), 64, device="cuda")
        held = meter.peak = meter.held
        attend(states, states, states, attn_mask=mask)
        assert meter.peak - held == 4 * len(mask[0, 0]) * 1008 + states.nbytes


@torch.inference_mode()
def test_operations_are_those_that_torch_counts(meter):
    """Of a linear layer, a convolution and attention, whose own kernel a dry run replaces."""
    states, picture = torch.zeros(2, 4, 16, 8, device="cuda"), torch.zeros(2, 3, 28, 28, device="cuda")
    torch.nn.functional.linear(states, torch.zeros(5, 8, device="cuda"))
    torch.nn.functional.conv2d(picture, torch.zeros(6, 3, 14, 14, device="cuda"), stride=14)
    before = meter.operations
    torch.nn.functional.scaled_dot_product_attention(states, states, states)

    shape = tuple(states.shape)
    assert 2 * (2 * 4 * 16) * 8 * 5 + 2 * (2 * 6 * 2 * 2) * (3 * 14 * 14) == before
    assert sdpa_flop_count(shape, shape, shape) == meter.operations - before


@torch.inference_mode()
def test_fused_attention_holds_no_scores(meter):
    """1,000 x 1,000 scores of a head would be 4 MB; a mask on another device raises."""
    states = torch.zeros(1, 1, 1000, 64, device="cuda")
    attend = torch.nn.functional.scaled_dot_product_attention
    assert attend(states, states, states).nbytes == states.nbytes
    assert meter.peak == 2 * states.nbytes

    with pytest.raises(RuntimeError, match="several devices: cpu, cuda:0"):
        attend(states, states, states, attn_mask=torch.zeros(1, 1, 1000, 1000))
