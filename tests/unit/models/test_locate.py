"""Where a checkpoint is looked for: directories first, then the hub's local cache, then the hub."""

from pathlib import Path

import httpx
import pytest
from huggingface_hub.errors import (
    GatedRepoError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from models.checkpoints import locate as locating
from models.checkpoints.locate import DEMO, cached, locate, named, pending_bytes
from models.core.contract import CheckpointError, Temporary

COMMIT = "3b4a6b1b618f4e286f5353b5b5147a3ae7d9ec55"
OTHER = "1" * 40


@pytest.fixture
def cache(offline_hub, tmp_path, monkeypatch):
    """An empty local cache of the hub, and no way to the hub itself."""
    monkeypatch.chdir(tmp_path)
    return offline_hub


def snapshot(cache: Path, *files: str, commit: str = COMMIT, newest: bool = True) -> Path:
    """A commit of `owner/name` in the cache."""
    repository = cache / "models--owner--name"
    directory = repository / "snapshots" / commit
    directory.mkdir(parents=True)
    for path in (directory / file for file in files):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    if newest:
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text(commit)
    return directory


def test_a_directory_goes_before_a_hub_id_of_that_name(cache, tmp_path):
    """No request is made for what lies here."""
    (tmp_path / "owner" / "name").mkdir(parents=True)

    found = locate("owner/name", COMMIT)
    assert (Path("owner/name"), "name", "") == (found.directory, found.id, found.revision)
    assert DEMO / "clip" == locate("demo:clip").directory


@pytest.mark.parametrize("revision", [COMMIT, COMMIT[:7], "", "main"])
def test_what_is_in_the_cache_needs_no_hub(cache, revision):
    """A whole commit, its beginning, and a branch; scores are labelled with the commit."""
    directory = snapshot(cache, "config.json", "pytorch_model.bin")

    found = locate("owner/name", revision)
    assert (directory, "owner/name", COMMIT) == (found.directory, found.id, found.revision)
    assert directory == cached("owner/name", revision)


def test_a_commit_in_the_cache_is_found_whatever_is_newest(cache, caplog):
    """The hub finds no abbreviated commit but the newest, which is used in its place, with a warning."""
    old = snapshot(cache, "config.json", "model.safetensors", newest=False)
    snapshot(cache, "config.json", "model.safetensors", commit=OTHER)

    assert old == locate("owner/name", COMMIT).directory
    assert OTHER == locate("owner/name", COMMIT[:7]).revision
    assert f"newest commit is {OTHER}, not {COMMIT[:7]}" in caplog.text
    assert cached("owner/name", COMMIT[:7]) is None


@pytest.mark.parametrize(
    "revision", ["../../dev/zero", "/dev/zero", "a/../b", ".", "..", "a//b", "-x", "a b", "a\n", "main/", "é"]
)
@pytest.mark.parametrize("find", [locate, cached, pending_bytes])
def test_a_revision_is_a_commit_a_branch_or_a_tag(cache, fake_hub, revision, find):
    """Else the hub's library would read any file of this machine; it gets none of these."""
    snapshot(cache, "config.json", "model.safetensors")
    with pytest.raises(CheckpointError, match="neither a commit nor the name of a branch"):
        find("owner/name", revision)
    assert [] == fake_hub.requests


@pytest.mark.parametrize("revision", ["main", "v1.0", "refs/pr/3", "feature/x-1_2", COMMIT, COMMIT[:7]])
def test_names_of_branches_and_tags_are_taken(revision):
    """As they are, but for an abbreviated commit, in place of which the newest is used."""
    assert named(revision) == (None if revision == COMMIT[:7] else revision)


@pytest.mark.parametrize("files", [(), ("config.json", "spiece.model")])
def test_a_cache_without_weights_holds_no_checkpoint(cache, files):
    """What was never fetched, or only in part."""
    snapshot(cache, *files)

    assert cached("owner/name", COMMIT) is None


@pytest.mark.parametrize("revision", [COMMIT, ""])
def test_a_hub_that_cannot_be_reached_is_one_line(cache, revision):
    """It names the repository; HF_HUB_OFFLINE, or no network."""
    with pytest.raises(
        CheckpointError, match=r"^owner/name: no such directory, and it cannot be downloaded: "
    ) as told:
        locate("owner/name", revision)
    assert "\n" not in str(told.value)


def answered(kind, status):
    """An error of the hub's client for an answer with *status*."""
    return kind("no", response=httpx.Response(status, request=httpx.Request("GET", "http://hub")))


@pytest.mark.parametrize(
    ("exc", "sentence", "temporary"),
    [
        (
            OfflineModeIsEnabled("x"),
            "HF_HUB_OFFLINE is set. Unset it, or run `hf download owner/name` first.",
            False,
        ),
        (answered(GatedRepoError, 403), "run `hf auth login`, then `hf download owner/name`.", False),
        (answered(RepositoryNotFoundError, 404), "Correct the name, or run `hf auth login`.", False),
        (
            answered(RevisionNotFoundError, 404),
            "no such revision. Correct it; `hf download owner/name`",
            False,
        ),
        (
            httpx.LocalProtocolError("Illegal header value b'Bearer hf_secret\\n'"),
            "HF_TOKEN has a char",
            False,
        ),
        ("hf_sécret", "HF_TOKEN has a character that no header can carry.", False),
        (httpx.ConnectError("refused"), "cannot be reached (ConnectError: refused). Check the network", True),
        (
            httpx.UnsupportedProtocol("no http."),
            "no http. Check HF_ENDPOINT and the variables of proxies",
            False,
        ),
    ],
)
def test_a_fault_of_the_hub_is_whole_sentences_with_what_to_do(cache, fake_hub, exc, sentence, temporary):
    """And without the token; whether a later start may succeed is part of the error."""
    unsent = UnicodeEncodeError("ascii", str(exc), 4, 5, "ordinal not in range")
    fake_hub.error = exc if isinstance(exc, Exception) else unsent
    with pytest.raises(CheckpointError) as told:
        locate("owner/name")

    line = str(told.value)
    assert sentence in line
    assert line.endswith(".")
    assert "cret" not in line
    assert temporary == isinstance(told.value, Temporary)


@pytest.mark.parametrize("checkpoint", ["", "demo:nothing", "/srv/nothing", "a/b/c", "nothing"])
def test_what_can_be_no_hub_id_is_never_asked_for(cache, fake_hub, checkpoint):
    """A path that is not there is an error at once."""
    with pytest.raises(CheckpointError, match="no such d"):
        locate(checkpoint)
    assert [] == fake_hub.requests


def test_only_data_is_fetched_and_that_of_one_commit(cache, fake_hub):
    """First the configuration, which tells the commit; then weights and words of the same, and no code."""
    fake_hub.download = lambda *_, **__: str(cache / "snapshots" / COMMIT)
    locate("owner/name", "main")

    asked = [(each["revision"], set(each["allow_patterns"])) for _, each in fake_hub.requests]
    (first, small), (second, all_of_it) = asked
    assert ("main", COMMIT) == (first, second)
    assert {"config.json", "open_clip_config.json"} == small
    assert not any(Path("modeling.py").match(pattern) for pattern in all_of_it)


def test_a_cache_that_cannot_be_written_is_used_without_a_request(cache, fake_hub, monkeypatch):
    """As a volume that is mounted for reading: only what it lacks is an error, which names it."""
    directory = snapshot(cache, "config.json", "model.safetensors")
    monkeypatch.setattr(locating, "is_writable", lambda folder: False)

    assert directory == locate("owner/name").directory
    with pytest.raises(
        CheckpointError, match=rf"the hub's cache {cache} cannot be written\. Set HF_HUB_CACHE"
    ):
        locate("owner/other")
    assert [] == fake_hub.requests
