"""Weights that do not fit the configuration of a CLIP-FlanT5 checkpoint."""

import pytest
import torch

from models.core.contract import CheckpointError
from models.families.clip_flant5.model import ClipFlanT5
from tests.support.flant5_checkpoints import golden_copy

HEAD = "lm_head.weight"


def mismatch(directory, change):
    golden_copy(directory, change)
    with pytest.raises(CheckpointError) as wrong:
        ClipFlanT5(directory, dtype="float32", device="cpu")
    return str(wrong.value).partition("the weights don't fit config.json: ")[2]


def without(*parts):
    return lambda tensors: {n: t for n, t in tensors.items() if not any(part in n for part in parts)}


def test_weights_that_do_not_fit_are_listed_with_their_numbers(tmp_path):
    """Missing, unexpected, of another shape or type: how many of each, the first few by name."""
    vision = "vision_tower.vision_tower.vision_model."

    def change(tensors):
        tensors = without("mm_projector", "layernorm")(tensors)
        tensors["mm_projector.weight"] = torch.zeros(64, 32)
        tensors[HEAD] = tensors[HEAD][:, :32]
        tensors[f"{vision}embeddings.class_embedding"] = torch.zeros(32, dtype=torch.int8)
        return tensors

    missing, unexpected, misshapen, integers = mismatch(tmp_path / "c", change).split("; ")
    assert missing.startswith("6 missing: ")
    assert missing.endswith(", …")
    assert "1 unexpected: mm_projector.weight" == unexpected
    assert "1 of another shape: lm_head.weight (1128, 32) instead of (1128, 64)" == misshapen
    assert "1 no floating-point numbers: vision_tower.embeddings.class_embedding torch.int8" == integers


def test_a_flan_t5_without_eyes_is_told_what_it_lacks(tmp_path):
    """A plain T5 has the right model type, and neither tower nor projector."""
    told = mismatch(tmp_path / "c", without("vision_tower", "mm_projector"))

    assert told.startswith("75 missing: ")
    assert "unexpected" not in told


def test_names_of_the_shared_embedding_that_differ_are_an_error(tmp_path):
    """Which one would be right cannot be known."""

    def change(tensors):
        tensors["decoder.embed_tokens.weight"] += 1
        return tensors

    golden_copy(tmp_path / "c", change)
    with pytest.raises(CheckpointError, match=r"decoder\.embed_tokens\.weight: differs from shared"):
        ClipFlanT5(tmp_path / "c", dtype="float32", device="cpu")
