"""The version and commit of the service, and of libraries."""

import shutil

import pytest

from service.observability import build

COMMIT = "f91093e0" * 5


@pytest.fixture
def git(tmp_path):
    """The folder `.git` of a checkout on the branch main."""
    folder = tmp_path / "checkout" / ".git"
    (folder / "refs" / "heads").mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def test_the_commit_of_a_branch_is_in_its_own_file_or_in_the_packed_one(git):
    """git packs references now and then."""
    (git / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/main\n")
    packed = build.checked_out(git)
    (git / "refs/heads/main").write_text(f"{COMMIT[::-1]}\n")

    assert [COMMIT, COMMIT[::-1]] == [packed, build.checked_out(git)]


def test_a_head_without_a_branch_is_the_commit(git):
    """As after `git checkout COMMIT`."""
    (git / "HEAD").write_text(f"{COMMIT}\n")

    assert COMMIT == build.checked_out(git)


def test_a_further_work_tree_has_the_commit_of_its_own_branch(git, tmp_path):
    """Its `.git` is a file, and the branches are in the first one's folder."""
    of_it = git / "worktrees" / "other"
    of_it.mkdir(parents=True)
    (of_it / "HEAD").write_text("ref: refs/heads/other\n")
    (of_it / "commondir").write_text("../..\n")
    (git / "refs/heads/other").write_text(f"{COMMIT}\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / ".git").write_text(f"gitdir: {of_it}\n")

    assert COMMIT == build.checked_out(other / ".git")


def test_without_a_readable_head_the_commit_is_unknown(git):
    """An empty text, and no error: scores are as good without it."""
    shutil.rmtree(git)

    assert "" == build.checked_out(git)


def test_an_image_has_the_commit_of_its_build(tmp_path):
    """There is no checkout in it, but the file that the build wrote."""
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "COMMIT").write_text(f"{COMMIT}\n")

    assert COMMIT == build.commit(tmp_path)


def test_installed_libraries_have_their_versions():
    """Those that numbers depend on, and Python."""
    assert {"python", "numpy", "pillow"} <= build.libraries().keys()
