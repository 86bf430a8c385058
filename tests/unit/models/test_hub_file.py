"""One file of a repository on the hub, in the place of a path."""

from pathlib import Path

import pytest

from models.checkpoints.locate import HubFile, hub_file, path_of
from models.core.contract import CheckpointError

COMMIT = "3b4a6b1b618f4e286f5353b5b5147a3ae7d9ec55"
PINNED = f"hf-hub:owner/name@{COMMIT}/a+b.pth"
NEWEST = "hf-hub:owner/name/a+b.pth"


@pytest.fixture
def cached_file(offline_hub):
    """The file in the hub's local cache, and no way to the hub itself."""
    repository = offline_hub / "models--owner--name"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    file = repository / "snapshots" / COMMIT / "a+b.pth"
    file.parent.mkdir(parents=True)
    file.write_text("weights")
    return file


def test_a_setting_names_a_file_of_the_hub_with_its_commit_or_without():
    """Everything else is a path."""
    assert HubFile("owner/name", COMMIT, "a+b.pth") == hub_file(PINNED)
    assert HubFile("owner/name", "", "a+b.pth") == hub_file(NEWEST)
    for other in ("", "openai", "/srv/a.pth", "hf-hub:owner/name", f"hf-hub:owner/name@{COMMIT[:7]}/a.pth"):
        assert hub_file(other) is None
    assert Path("/srv/a.pth") == path_of("/srv/a.pth")


@pytest.mark.parametrize(("setting", "warned"), [(PINNED, False), (NEWEST, True)])
def test_a_file_in_the_cache_needs_no_hub(cached_file, caplog, setting, warned):
    """Without a commit there is a warning that has it."""
    assert cached_file == path_of(setting) == hub_file(setting).cached()
    assert warned == (f"no commit is set; the newest is used, {COMMIT}" in caplog.text)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("hf-hub:owner/name/other.pth", "owner/name@main: has no file other.pth"),
        ("hf-hub:other/name/a.pth", "other/name: no such directory, and it cannot be downloaded"),
    ],
)
def test_a_file_that_is_not_there_is_one_line(cached_file, setting, reason):
    """Of the file, or of the repository."""
    with pytest.raises(CheckpointError, match=reason):
        path_of(setting)
    assert hub_file(setting).cached() is None
