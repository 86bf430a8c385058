"""Where a CLIP may come from, and what is said of one that cannot be loaded."""

import json
import shutil
import socket
from collections import OrderedDict
from fnmatch import fnmatch
from pathlib import Path

import huggingface_hub
import numpy as np
import open_clip
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.base import CheckpointError, Image, ImageCall, TextCall
from models.clip import Clip
from tests.clip_checkpoints import OWN_WORDS, PLAIN, noise, plain_cosines, save_own, save_published

TINY = "ViT-test-8"


def clip(model, **more):
    return Clip(str(model), dtype="float32", device="cpu", **more)


def cosine(model):
    calls = [ImageCall(Image(noise(40, 32), "a")), TextCall("a red circle")]
    image, text = model.score([model.prepare(call) for call in calls])
    return float(image.vector @ text.vector)


@pytest.fixture
def offline(monkeypatch):
    """No socket can be made."""

    def refuse(*_, **__):
        raise AssertionError("a socket was made")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def known(tmp_path):
    """A small architecture among those that open_clip knows by name."""
    path = tmp_path / f"{TINY}.json"
    path.write_text(json.dumps(PLAIN))
    open_clip.add_model_config(path)
    yield TINY
    open_clip.factory._MODEL_CONFIG_PATHS.remove(path)
    del open_clip.factory._MODEL_CONFIGS[TINY]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A fake hub of one repository, `owner/name`; it notes what is asked of it."""
    asked = []

    def snapshot_download(repository, *, revision, allow_patterns):
        asked.append((repository, revision, allow_patterns))
        if repository != "owner/name":
            raise OSError("404")
        snapshot = tmp_path / "snapshots" / "0123abc"
        snapshot.mkdir(parents=True, exist_ok=True)
        for file in (tmp_path / "repository").iterdir():
            if any(fnmatch(file.name, pattern) for pattern in allow_patterns):
                shutil.copy(file, snapshot)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    snapshot_download.asked = asked
    snapshot_download.files = lambda: {p.name for p in (tmp_path / "snapshots" / "0123abc").iterdir()}
    return snapshot_download


def test_a_name_with_a_file_of_weights_is_loaded_without_a_request(tmp_path, known, offline):
    """HPSv2's form: a dict with the weights under `state_dict`, trained on several GPUs."""
    directory = save_own(tmp_path / "clip")
    weights = load_file(directory / "open_clip_model.safetensors")
    file = tmp_path / "HPS_v2_compressed.pt"
    torch.save({"state_dict": OrderedDict((f"module.{name}", t) for name, t in weights.items())}, file)
    model = clip(known, pretrained=str(file))
    expected = plain_cosines(directory, [noise(40, 32)], ["a red circle"])

    assert float(expected[0, 0]) == pytest.approx(cosine(model), abs=2e-5)
    assert (known, 12) == (model.info.id, len(model.info.revision))


@pytest.mark.parametrize("prefix", ["", "local-dir:"])
def test_a_directory_of_either_layout_is_loaded_without_a_request(tmp_path, offline, prefix):
    """open_clip's prefix changes nothing."""
    save_own(tmp_path / "own")
    save_published(tmp_path / "published")

    assert "own" == clip(f"{prefix}{tmp_path / 'own'}").info.id
    assert "published" == clip(f"{prefix}{tmp_path / 'published'}").info.id


@pytest.mark.parametrize("prefix", ["", "hf-hub:"])
def test_a_hub_id_is_downloaded_with_one_file_of_weights_and_no_code(tmp_path, hub, prefix):
    """A repository may hold the same weights four times."""
    repository = save_own(tmp_path / "repository", weights="open_clip_pytorch_model.bin")
    for name in ("pytorch_model.bin", "model.safetensors", "modeling.py", "README.md"):
        (repository / name).write_text("not looked at")
    (repository / "merges.txt").write_text("")
    model = clip(f"{prefix}owner/name", revision="v1")

    assert ("owner/name", "0123abc") == (model.info.id, model.info.revision)
    assert {"open_clip_config.json", "open_clip_pytorch_model.bin", "merges.txt"} == hub.files()
    assert ("owner/name", "v1") == hub.asked[0][:2]


def test_a_hub_id_may_hold_the_layout_of_transformers(tmp_path, hub):
    """The newest commit where no revision is named; answers carry the commit."""
    save_published(tmp_path / "repository")

    assert "0123abc" == clip("owner/name").info.revision
    assert None is hub.asked[0][1]


def test_a_hub_that_has_no_such_thing_is_named(tmp_path, hub):
    """No repository, or one without weights."""
    (tmp_path / "repository").mkdir()
    with pytest.raises(CheckpointError, match="other/name"):
        clip("other/name")
    with pytest.raises(CheckpointError, match="owner/name: holds no weights"):
        clip("owner/name")


@pytest.mark.parametrize(
    ("model", "pretrained", "said"),
    [
        ("/no/such/directory", None, "neither a directory, nor a hub id"),
        ("local-dir:no/such", None, "neither a directory, nor a hub id"),
        ("NoSuchModel", None, "nor a name that open_clip knows"),
        ("", None, "no model"),
        ("ViT-B-32", None, "`pretrained` is not set; open_clip's tags for it: openai, "),
        ("ViT-B-32", "nobody", "nobody is neither a tag nor a file; open_clip's tags for it: openai, "),
        ("ViT-B/32", "nobody", "ViT-B-32: nobody is neither"),
        ("NoSuchModel", "openai", "`pretrained` goes with a name"),
    ],
)
def test_what_cannot_be_found_is_refused_before_anything_is_fetched(offline, model, pretrained, said):
    """In one line that says what is missing."""
    with pytest.raises(CheckpointError, match=said) as refusal:
        clip(model, pretrained=pretrained)
    assert "\n" not in str(refusal.value)


def test_a_directory_with_pretrained_is_refused(tmp_path):
    """open_clip would ignore it, and score with other weights than the operator named."""
    with pytest.raises(CheckpointError, match="`pretrained` goes with a name"):
        clip(save_own(tmp_path / "clip"), pretrained="openai")


def test_a_directory_needs_no_hub_for_its_tokenizer(tmp_path, offline):
    """A configuration that names one on a hub finds it beside the weights, or is refused."""
    directory = save_own(tmp_path / "clip", {**PLAIN, "text_cfg": {**OWN_WORDS, "hf_tokenizer_name": "a/b"}})
    assert clip(directory).info.id == "clip"
    (directory / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=str(directory)):
        clip(directory)


def test_a_known_name_with_a_file_asks_no_hub_for_its_tokenizer(tmp_path, known, offline):
    """It is refused where the tokenizer is not in the local cache."""
    directory = save_own(tmp_path / "clip")
    open_clip.factory._MODEL_CONFIGS[known]["text_cfg"]["hf_tokenizer_name"] = "no-such-owner/no-such-words"
    with pytest.raises(CheckpointError, match="no-such-words"):
        clip(known, pretrained=str(directory / "open_clip_model.safetensors"))


def test_a_tokenizer_that_does_not_fit_the_text_tower_is_refused(tmp_path):
    """Its ids would lie outside the table of embeddings."""
    directory = save_own(tmp_path / "clip", {**PLAIN, "text_cfg": {**PLAIN["text_cfg"], "vocab_size": 500}})
    with pytest.raises(CheckpointError, match="tokenizer does not fit"):
        clip(directory)


# --- broken checkpoints -----------------------------------------------------------------------------


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
    "list": (lambda path: torch.save([torch.zeros(2)], path), "holds no weights by name"),
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
    assert "8 missing (transformer.resblocks.1.mlp.c_fc.weight, " in said or "8 missing (visual" in said
    assert "1 unknown (score_head.weight)" in said
    assert "1 of another shape (ln_final.bias: [33] in place of [32])" in said
    assert "\n" not in said


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


def test_what_the_tokenizer_remembers_is_bounded(tmp_path):
    """open_clip's own keeps every word of every prompt."""
    model = clip(save_own(tmp_path / "clip"))
    before = len(model.tokenizer.cache)
    for length in (30, 50):
        model.prepare(TextCall("q" * length))

    assert before + 1 == len(model.tokenizer.cache)


def test_the_same_network_gives_the_same_vectors_by_name_and_by_directory(tmp_path, known):
    """Both ways end in one."""
    directory = save_own(tmp_path / "clip")
    named = clip(known, pretrained=str(directory / "open_clip_model.safetensors"))

    assert np.float64(cosine(clip(directory))) == cosine(named)
