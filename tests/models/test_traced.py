"""Parts of networks as TorchScript: the same numbers, without Python."""

from typing import Any

import open_clip
import pytest
import torch
from torch.nn import functional as F

from models.families.clip.model import trace
from models.families.torchscript import Traced
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


@torch.inference_mode()
def test_a_trace_that_is_forgotten_is_made_again():
    """As of a model whose weights were away: its traces held them."""
    block, run = Block(), Traced(Block.__call__)
    states, other = torch.ones(2, 3, 8), torch.ones(4, 5)
    before = run(block, states, other, False)
    run.forget()

    assert torch.equal(before, run(block, states, other, False))
    assert 2 == block.runs


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


@pytest.mark.parametrize("name", ["RN50", "ViT-B-32", "coca_base"])
@torch.inference_mode()
def test_a_traced_clip_gives_the_embeddings_of_one_that_is_not(name):
    """Equal to the bit, whatever the number of rows it was traced with."""
    torch.manual_seed(0)
    small = small_clip(name)
    pictures = torch.randn(5, 3, 64, 64)
    texts = torch.randint(1, 100, (5, small.context_length))
    counts = (1, 3, 5, 2)
    plain = [(small.encode_image(pictures[:n]), small.encode_text(texts[:n])) for n in counts]

    trace(small)

    for n, (seen, read) in zip(counts, plain, strict=True):
        assert torch.equal(small.encode_image(pictures[:n]), seen)
        assert torch.equal(small.encode_text(texts[:n]), read)


@torch.inference_mode()
def test_a_tower_that_is_not_open_clips_own_stays_as_it_is():
    """It may decide by what it is given: those of transformers leave a mask out where nothing is masked."""

    class Other(open_clip.transformer.Transformer):
        pass

    network = torch.nn.Sequential(Other(8, 1, 1))
    trace(network)

    assert "forward" not in vars(network[0])


def small_clip(name: str) -> Any:
    """An open_clip network of the kind of *name*, with two small layers."""
    config = open_clip.get_model_config(name)
    vision = config["vision_cfg"] | {"image_size": 64, "width": 32, "head_width": 8, "patch_size": 16}
    vision["layers"] = [1, 1, 1, 1] if name == "RN50" else 2
    text = config["text_cfg"] | {"vocab_size": 128, "width": 32, "heads": 4, "layers": 2}
    if "multimodal_cfg" in config:
        decoder = config["multimodal_cfg"] | {"width": 32, "heads": 4, "layers": 1, "dim_head": 8}
        return open_clip.CoCa(32, decoder, text, vision).eval()
    return open_clip.CLIP(32, vision, text).eval()
