"""The memory that a model takes on a GPU, predicted without one."""

import logging
from functools import cache
from typing import Any

import pytest
import torch

from models.checkpoints.files import open_clip_weights, weight_files
from models.checkpoints.locate import DEMO
from models.checkpoints.weights import tensor_sizes
from models.core.contract import Prepared
from models.core.family import Memory
from models.core.settings import Batch
from models.families.clip_flant5 import ClipFlanT5Settings
from models.families.clip_flant5.memory import (
    AFTER,
    ANSWER,
    FEW,
    FEW_OF_VISION,
    full_batches,
    prepared,
    scorer,
)
from models.families.clip_flant5.published import XL
from models.families.clip_flant5.tower import VIT_L_14_336
from models.sizing.dry_run import dry_run, is_dry
from models.sizing.memory import full, predicted
from tests.support.predicted import memory


@cache
def of_demo(family: str, name: str, **table: Any) -> Memory | None:
    """What a shipped model takes."""
    return memory(family, checkpoint=f"demo:{name}", **table)


def activations(*batches: list[Prepared], more_layers: int = 0) -> list[int]:
    """Of each batch alone in CLIP-FlanT5-XL with as few layers as the prediction takes, or some more."""
    settings = ClipFlanT5Settings(role="vqa", family="clip_flant5", device="cuda", dtype="bfloat16")
    config = XL.config | {name: few + more_layers for name, few in FEW.items()}
    vision = VIT_L_14_336 | {name: few + more_layers for name, few in FEW_OF_VISION.items()}
    found = []
    with dry_run() as meter:
        model = scorer(config, vision, settings)
        for batch in batches:
            held = meter.peak = meter.held
            model.score(batch)
            found.append(meter.peak - held)
    return found


def calls(number: int, call: Prepared) -> list[Prepared]:
    return full(Batch(max_items=number, max_cost_tokens=10**9), call, "digest")


def test_layers_leave_nothing_behind():
    """To the byte, for each of the largest batches: what the prediction rests on, and the tests below."""
    batches = [*full_batches(VIT_L_14_336, Batch(max_items=4, max_cost_tokens=16_384))]

    assert activations(*batches) == activations(*batches, more_layers=3)


def test_activations_grow_with_the_calls_of_a_batch():
    """24 calls take 24 times what one takes."""
    ordinary = prepared(VIT_L_14_336, AFTER, ANSWER)

    many, one = activations(calls(24, ordinary), calls(1, ordinary))
    assert many == pytest.approx(24 * one, rel=0.01)


def test_a_long_question_among_others_takes_no_more_than_long_ones():
    """One of 2,624 tokens and 21 of 641, which would take 20 GB if all were as long."""
    long, ordinary = (prepared(VIT_L_14_336, tokens, ANSWER) for tokens in (2014, AFTER))
    mixed = calls(22, ordinary)
    mixed[7] = calls(1, long)[0]
    batch = Batch(max_items=24, max_cost_tokens=16_384)

    assert sum(call.cost for call in mixed) <= batch.max_cost_tokens
    of_mixed, *of_full = activations(mixed, *full_batches(VIT_L_14_336, batch))
    assert of_mixed < max(of_full)


def test_features_that_are_kept_count():
    """A cache of 744 MiB more than the default's."""
    less = of_demo("clip_flant5", "clip_flant5")
    more = of_demo("clip_flant5", "clip_flant5", features_mb=1000)

    assert less
    assert more
    assert more.activations - less.activations == (1000 - 256) * 2**20


# --- where there is none ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("open_clip", "clip"),
        ("clip_flant5", "clip_flant5"),
        ("transformers", "question_llm"),
        ("transformers_nli", "nli"),
    ],
)
def test_a_checkpoint_that_is_here_is_measured_on_a_gpu_only(family, name):
    """Its weights as many bytes as its files hold numbers, but for what is not kept or kept in float32."""
    found = of_demo(family, name)
    files = [open_clip_weights(DEMO / name)] if name == "clip" else weight_files(DEMO / name)
    held = 4 * sum(tensor_sizes(files).values())

    assert found
    assert 0.85 * held < found.weights < 1.1 * held
    assert found.activations > 0
    assert of_demo(family, name, device="cpu") is None


def test_what_a_dry_run_cannot_follow_is_unknown():
    """It is no error, since the model may well run."""

    def load() -> Any:
        raise NotImplementedError

    assert predicted("cuda:1", load, lambda _: []) is None


def test_after_a_dry_run_numbers_are_numbers_again():
    """And libraries may log."""
    before = logging.root.manager.disable
    with dry_run():
        assert is_dry()
        assert torch.ones(2).tolist() == [0, 0]

    assert not is_dry()
    assert torch.ones(2).tolist() == [1, 1]
    assert before == logging.root.manager.disable
