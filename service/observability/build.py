"""What this process runs: the version and commit of the service, and the versions of libraries."""

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

import orjson

ROOT = Path(__file__).parents[2]
COMMIT_FILE = "service/COMMIT"  # the build of an image writes it
LIBRARIES = ("torch", "torchvision", "transformers", "tokenizers", "open-clip-torch", "pillow", "numpy", "av")


@cache
def commit(root: Path = ROOT) -> str:
    """Return the commit of the service's code in *root*; empty if unknown."""
    if (root / ".git").exists():
        return checked_out(root / ".git")
    if (root / COMMIT_FILE).is_file():
        return (root / COMMIT_FILE).read_text("utf-8").strip()
    return installed_from()


def checked_out(git: Path) -> str:
    """Return the commit of a checkout from the files of git, without starting a process."""
    try:
        if git.is_file():  # a further work tree has a file that names its folder
            git = git.parent / git.read_text("utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text("utf-8").strip()
        if not head.startswith("ref:"):
            return head
        name, common = head.removeprefix("ref:").strip(), git / "commondir"
        shared = git / common.read_text("utf-8").strip() if common.is_file() else git
        if (shared / name).is_file():
            return (shared / name).read_text("utf-8").strip()
        packed = (shared / "packed-refs").read_text("utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
    except (OSError, UnicodeDecodeError):
        return ""


def installed_from() -> str:
    """Return the commit that pip installed the service from; empty if it was no repository."""
    try:
        source = distribution("scoregate-server").read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    return str(orjson.loads(source or "{}").get("vcs_info", {}).get("commit_id", ""))


@cache
def libraries() -> Mapping[str, str]:
    """Return the versions of Python and of installed libraries that numbers depend on."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
