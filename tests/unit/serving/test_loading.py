"""Loading of one model."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace

import huggingface_hub
import pytest

from models.checkpoints import locate
from models.core.contract import CheckpointError
from models.core.settings import LocalSettings, RemoteSettings
from models.families.registry import families
from service.serving import loading

COMMIT = "a" * 40


@pytest.mark.parametrize(
    ("wanted", "found", "warned"),
    [("", COMMIT, True), (COMMIT, COMMIT, False), ("", "0123456789ab", False)],
    ids=["the newest commit", "a pinned commit", "a directory"],
)
def test_a_commit_that_nobody_pinned_is_a_warning(wanted, found, warned, monkeypatch, caplog):
    """With the commit, to be pinned."""
    model = SimpleNamespace(info=SimpleNamespace(revision=found))
    family = SimpleNamespace(imports=lambda name: None, load=lambda name, table: model)
    monkeypatch.setitem(families(), "clip_flant5", family)
    table = LocalSettings(role="vqa", family="clip_flant5", checkpoint="a/b", revision=wanted)

    assert loading.load_model("vqa", table) is model
    assert warned == (f"models.vqa: no revision is set; the newest commit is loaded, {COMMIT}" in caplog.text)


@pytest.mark.parametrize("fails", [False, True])
def test_a_model_is_loaded_while_no_other_one_is(fails, monkeypatch):
    """
    By any thread: transformers replaces methods of all models meanwhile.

    Two loads at once could leave them replaced for good.  One that fails hinders no other.
    """
    alone = []

    def load(name, table):
        alone.append(loading.LOADING.locked())
        if fails:
            raise CheckpointError("damaged")
        return SimpleNamespace(info=SimpleNamespace(revision="1"))

    family = SimpleNamespace(imports=lambda name: None, load=load)
    monkeypatch.setitem(families(), "clip_flant5", family)
    table = LocalSettings(role="vqa", family="clip_flant5", checkpoint="a/b")
    with suppress(CheckpointError):
        loading.load_model("vqa", table)

    assert [True] == alone
    assert not loading.LOADING.locked()


def test_a_model_is_loaded_while_another_one_is_downloaded(monkeypatch, tmp_path):
    """The rest of the load that downloads is alone again."""
    asked, free, alone = threading.Event(), threading.Event(), []

    def download(*args, **more):
        asked.set()
        assert free.wait(60)
        return str(tmp_path)

    def load(name, table):
        if table.checkpoint == "owner/absent":
            locate.fetch(table.checkpoint, None, ["*"])
        alone.append((table.checkpoint, loading.LOADING.locked()))
        return SimpleNamespace(info=SimpleNamespace(revision="1"))

    family = SimpleNamespace(imports=lambda name: None, load=load)
    monkeypatch.setitem(families(), "clip_flant5", family)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    absent, here = (
        LocalSettings(role="vqa", family="clip_flant5", checkpoint=each) for each in ("owner/absent", "here")
    )
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(loading.load_model, "slow", absent)
        assert asked.wait(60)
        try:
            threads.submit(loading.load_model, "fast", here).result(20)
            assert not slow.done()
        finally:
            free.set()
        slow.result(60)

    assert [("here", True), ("owner/absent", True)] == alone
    assert not loading.LOADING.locked()


def test_a_download_that_fails_keeps_the_turn_of_its_load(monkeypatch):
    """What the load does about it is alone, too."""
    alone = []

    def load(name, table):
        with pytest.raises(CheckpointError, match="cannot be downloaded"):
            locate.fetch(table.checkpoint, None, ["*"])
        alone.append(loading.LOADING.locked())
        return SimpleNamespace(info=SimpleNamespace(revision="1"))

    family = SimpleNamespace(imports=lambda name: None, load=load)
    monkeypatch.setitem(families(), "clip_flant5", family)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *args, **more: 1 / 0)
    loading.load_model("vqa", LocalSettings(role="vqa", family="clip_flant5", checkpoint="a/b"))

    assert [True] == alone
    assert not loading.LOADING.locked()


def test_a_model_that_a_server_runs_waits_for_no_load(monkeypatch):
    """Nothing is built in this process."""
    model = SimpleNamespace(info=SimpleNamespace(revision="1"))
    family = SimpleNamespace(imports=lambda name: None, load=lambda name, table: model)
    monkeypatch.setitem(families(), "openai", family)
    table = RemoteSettings(role="questions", family="openai", base_url="http://localhost:1/v1", model="a")
    with loading.LOADING.taken():
        assert loading.load_model("questions", table) is model
