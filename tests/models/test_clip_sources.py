"""Where a CLIP may come from: a directory, a name, a hub; and what is not fetched."""

import shutil
from collections import OrderedDict
from fnmatch import fnmatch

import numpy as np
import open_clip
import pytest
import torch
from safetensors.torch import load_file

from models.core.calls import ImageCall, TextCall
from models.core.contract import CheckpointError
from models.families.registry import families
from models.images.image import Image
from tests.support.clip_checkpoints import (
    OWN_WORDS,
    PLAIN,
    clip,
    noise,
    plain_cosines,
    save_own,
    save_published,
)


def cosine(model):
    calls = [ImageCall(Image.of(noise(40, 32), "a")), TextCall("a red circle")]
    image, text = model.score([model.prepare(call) for call in calls])
    return float(image.vector @ text.vector)


@pytest.fixture
def hub(tmp_path, fake_hub):
    """A fake hub of one repository, `owner/name`."""

    def download(repository, *, allow_patterns, **_):
        if repository != "owner/name":
            raise OSError("404")
        snapshot = tmp_path / "snapshots" / "0123abc"
        snapshot.mkdir(parents=True, exist_ok=True)
        for file in (tmp_path / "repository").iterdir():
            if any(fnmatch(file.name, pattern) for pattern in allow_patterns):
                shutil.copy(file, snapshot)
        return str(snapshot)

    fake_hub.download = download
    return fake_hub


@pytest.fixture
def downloaded(tmp_path):
    """A function: the names of the files that were downloaded."""
    return lambda: {path.name for path in (tmp_path / "snapshots" / "0123abc").iterdir()}


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


def test_a_name_with_a_file_of_the_hub_is_downloaded(tmp_path, known, hub, downloaded):
    """That file alone; its contents are the revision, as for a file on the disk."""
    repository = save_own(tmp_path / "repository")
    (repository / "other.pt").write_text("not looked at")
    model = clip(known, pretrained="hf-hub:owner/name/open_clip_model.safetensors")
    here = clip(known, pretrained=str(repository / "open_clip_model.safetensors"))

    assert cosine(here) == cosine(model)
    assert (here.info.id, here.info.revision) == (model.info.id, model.info.revision)
    assert {"open_clip_model.safetensors"} == downloaded()


def test_a_file_of_the_hub_is_planned_before_it_is_downloaded(known, offline, hub_cache):
    """With its place; its numbers are not known."""
    commit = "1" * 40
    family = families()["open_clip"]
    where = {"model": known, "pretrained": f"hf-hub:owner/name@{commit}/a.pt", "device": "cuda:0"}
    planned = family.plan("clip", family.settings(role="clip", family="open_clip", **where))

    assert f"the hub's owner/name@{commit} (not in the cache)" == planned.where
    assert f"{known}, a.pt" == planned.loads
    assert planned.num_parameters is None


@pytest.mark.parametrize("prefix", ["", "local-dir:"])
def test_a_directory_of_either_layout_is_loaded_without_a_request(tmp_path, offline, prefix):
    """open_clip's prefix changes nothing."""
    save_own(tmp_path / "own")
    save_published(tmp_path / "published")

    assert "own" == clip(f"{prefix}{tmp_path / 'own'}").info.id
    assert "published" == clip(f"{prefix}{tmp_path / 'published'}").info.id


@pytest.mark.parametrize("prefix", ["", "hf-hub:"])
def test_a_hub_id_is_downloaded_with_one_file_of_weights_and_no_code(tmp_path, hub, downloaded, prefix):
    """A repository may hold the same weights four times."""
    repository = save_own(tmp_path / "repository", weights="open_clip_pytorch_model.bin")
    for name in ("pytorch_model.bin", "model.safetensors", "modeling.py", "README.md"):
        (repository / name).write_text("not looked at")
    (repository / "merges.txt").write_text("")
    model = clip(f"{prefix}owner/name", revision="v1")

    assert ("owner/name", "0123abc") == (model.info.id, model.info.revision)
    assert {"open_clip_config.json", "open_clip_pytorch_model.bin", "merges.txt"} == downloaded()
    assert ("owner/name", "v1") == (hub.requests[0][0], hub.requests[0][1]["revision"])


def test_a_hub_id_may_hold_the_layout_of_transformers(tmp_path, hub):
    """The newest commit where no revision is named; answers carry the commit."""
    save_published(tmp_path / "repository")

    assert "0123abc" == clip("owner/name").info.revision
    assert None is hub.requests[0][1]["revision"]


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
        ("NoSuchModel", None, "nor a name of open_clip"),
        ("", None, "no model"),
        ("ViT-B-32", None, "`pretrained` is not set; open_clip's tags for it: openai, "),
        ("ViT-B-32", "nobody", "nobody is neither a tag nor a file; open_clip's tags for it: openai, "),
        ("ViT-B/32", "nobody", "ViT-B-32: nobody is neither"),
        ("NoSuchModel", "openai", "`pretrained` needs a name"),
    ],
)
def test_what_cannot_be_found_is_refused_before_anything_is_fetched(offline, model, pretrained, said):
    """In one line that says what is missing."""
    with pytest.raises(CheckpointError, match=said) as refusal:
        clip(model, pretrained=pretrained)
    assert "\n" not in str(refusal.value)


def test_a_directory_with_pretrained_is_refused(tmp_path):
    """open_clip would ignore it, and score with other weights than the operator named."""
    with pytest.raises(CheckpointError, match="`pretrained` needs a name"):
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


def test_the_same_network_gives_the_same_vectors_by_name_and_by_directory(tmp_path, known):
    """Both ways end in one."""
    directory = save_own(tmp_path / "clip")
    named = clip(known, pretrained=str(directory / "open_clip_model.safetensors"))

    assert np.float64(cosine(clip(directory))) == cosine(named)


def test_what_the_tokenizer_remembers_is_bounded(tmp_path):
    """open_clip's own keeps every word of every prompt."""
    model = clip(save_own(tmp_path / "clip"))
    before = len(model.tokenizer.cache)
    for length in (30, 50):
        model.prepare(TextCall("q" * length))

    assert before + 1 == len(model.tokenizer.cache)
