"""What is said of a CLIP that cannot be loaded."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.core.contract import CheckpointError
from models.families.clip.model import Clip
from tests.support.clip_checkpoints import PLAIN, TINY, clip, save_own


def test_a_tokenizer_that_does_not_fit_the_text_tower_is_refused(tmp_path):
    """Its ids would lie outside the table of embeddings."""
    directory = save_own(tmp_path / "clip", {**PLAIN, "text_cfg": {**PLAIN["text_cfg"], "vocab_size": 500}})
    with pytest.raises(CheckpointError, match="tokenizer does not fit"):
        clip(directory)


class Hostile:
    def __reduce__(self):
        return (exit, ())


def write(path, data):
    path.write_bytes(data)


def halve(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


BREAKS = {
    "missing": (Path.unlink, "no weights found"),
    "halved": (halve, "broken or truncated"),
    "empty": (lambda path: write(path, b""), "broken or truncated"),
    "text": (lambda path: write(path, b"version https://git-lfs"), "broken or truncated|something else"),
}
PICKLES = {
    "hostile": (lambda path: torch.save({"state_dict": {}, "x": Hostile()}, path), "not unpickled"),
    "list": (lambda path: torch.save([torch.zeros(2)], path), "contains no named weights"),
}


@pytest.mark.parametrize("damage", BREAKS)
def test_a_broken_safetensors_file_is_named(tmp_path, damage):
    """One line, with the file and what is wrong with it."""
    refused(tmp_path, "open_clip_model.safetensors", *BREAKS[damage])


@pytest.mark.parametrize("damage", BREAKS | PICKLES)
def test_a_broken_pickle_is_named_and_one_that_holds_code_is_not_run(tmp_path, damage):
    """Were it run, this process would end."""
    refused(tmp_path, "open_clip_pytorch_model.bin", *(BREAKS | PICKLES)[damage])


def refused(tmp_path, name, do, said):
    directory = save_own(tmp_path / "clip", weights=name)
    do(directory / name)
    with pytest.raises(CheckpointError, match=said) as refusal:
        clip(directory)
    assert "\n" not in str(refusal.value)
    assert str(directory) in str(refusal.value)
    assert name in str(refusal.value)


def test_weights_that_do_not_fit_are_listed(tmp_path):
    """The first few names of each kind, and how many there are."""
    directory = save_own(tmp_path / "clip")
    tensors = load_file(directory / "open_clip_model.safetensors")
    for name in [name for name in tensors if "resblocks.1.mlp" in name]:
        del tensors[name]
    tensors["score_head.weight"] = torch.zeros(3)
    tensors["ln_final.bias"] = torch.zeros(33)
    save_file(tensors, directory / "open_clip_model.safetensors")
    with pytest.raises(CheckpointError) as refusal:
        clip(directory)
    said = str(refusal.value)
    assert "8 missing: transformer.resblocks.1.mlp.c_fc.weight, " in said or "8 missing: visual" in said
    assert "1 unexpected: score_head.weight" in said
    assert "1 of another shape: ln_final.bias (33,) instead of (32,)" in said
    assert "\n" not in said


def test_weights_that_do_not_fit_are_listed_by_the_names_that_open_clip_gives_them(tmp_path, known, caplog):
    """A file of several GPUs' training, without a word about the network that it is held against."""
    directory = save_own(tmp_path / "clip")
    weights = load_file(directory / "open_clip_model.safetensors")
    del weights["ln_final.bias"]
    torch.save({"state_dict": {f"module.{name}": t for name, t in weights.items()}}, tmp_path / "last.pt")
    with pytest.raises(CheckpointError) as refusal:
        clip(known, pretrained=str(tmp_path / "last.pt"))

    assert f"{tmp_path / 'last.pt'}: the weights don't fit {TINY}: 1 missing: ln_final.bias" == str(
        refusal.value
    )
    assert "random" not in caplog.text


def test_a_failure_that_is_not_the_weights_keeps_its_own_words(tmp_path):
    """A device that torch doesn't know; the weights are sound."""
    directory = save_own(tmp_path / "clip")
    with pytest.raises(CheckpointError, match="abacus") as refusal:
        Clip(str(directory), dtype="float32", device="abacus")

    assert str(refusal.value).startswith(f"{directory}: RuntimeError: ")
    assert "fit" not in str(refusal.value)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("", "open_clip_config.json"),
        ("[]", "not a JSON object"),
        ("{}", "model_cfg"),
        (json.dumps({"model_cfg": {**PLAIN, "embed_dim": 23}}), "of another shape"),
        (json.dumps({"model_cfg": {**PLAIN, "depth": 3}}), "depth"),
    ],
)
def test_a_broken_configuration_is_refused(tmp_path, config, said):
    """One line that names the directory."""
    directory = save_own(tmp_path / "clip")
    (directory / "open_clip_config.json").write_text(config)
    with pytest.raises(CheckpointError, match=said) as refusal:
        clip(directory)
    assert str(directory) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_empty_directory_is_refused(tmp_path):
    """And so is one whose weights could be any of several."""
    with pytest.raises(CheckpointError, match="neither open_clip_config"):
        clip(tmp_path)
    directory = save_own(tmp_path / "clip", weights="epoch_1.bin")
    shutil.copy(directory / "epoch_1.bin", directory / "epoch_2.bin")
    with pytest.raises(CheckpointError, match="2 other files of weights"):
        clip(directory)
