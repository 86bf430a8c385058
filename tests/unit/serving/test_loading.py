"""Loading of one model."""

from contextlib import suppress
from types import SimpleNamespace

import pytest

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


def test_a_model_that_a_server_runs_waits_for_no_load(monkeypatch):
    """Nothing is built in this process."""
    model = SimpleNamespace(info=SimpleNamespace(revision="1"))
    family = SimpleNamespace(imports=lambda name: None, load=lambda name, table: model)
    monkeypatch.setitem(families(), "openai", family)
    table = RemoteSettings(role="questions", family="openai", base_url="http://localhost:1/v1", model="a")
    with loading.LOADING:
        assert loading.load_model("questions", table) is model
