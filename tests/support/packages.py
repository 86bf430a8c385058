"""The example packages of the documentation, installed in a folder and served by a process of its own."""

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from demo.process import SERVICE, free_port, running, url, wait_until_ready
from tests.support.fake_service import PROFILE
from tests.support.pages import FENCE, ROOT, fences, page

FAKES = PROFILE.read_text("utf-8")


def files_of(name: str) -> dict[str, str]:
    """The files that a page shows, by path: blocks whose info string is one."""
    blocks = FENCE.findall(page(name))
    return {more: text for _, more, text in blocks if "." in more and " " not in more}


def install(folder: Path, files: Mapping[str, str]) -> None:
    """Write a package and what an installer would make of its pyproject.toml."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    project = tomllib.loads(files["pyproject.toml"])["project"]
    declare(folder, project["name"], project["version"], project["entry-points"])


def declare(folder: Path, name: str, version: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Have `importlib.metadata` find a package with entry points in *folder*."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{entry} = {place}" for entry, place in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join([*lines, ""]), "utf-8")


def shown_runs(name: str, folder: Path) -> Iterator[tuple[str, str]]:
    """
    Run the `scoregate` commands of a page about a package that *folder* has.

    Yields what the page shows, and what the command printed, for each command.
    """
    (folder / "demo").symlink_to(ROOT / "demo")
    path = os.pathsep.join(map(str, (folder, ROOT, ROOT / "client" / "src")))
    [shown] = [text for _, text in fences(name, "text")]
    for line in (line for _, text in fences(name, "sh") for line in text.splitlines()):
        program, *words = shlex.split(line)
        if program.endswith("/scoregate"):
            command = [sys.executable, "-m", "scoregate.cli", *words]
            environment = {**os.environ, "PYTHONPATH": path}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            assert not done.returncode, done.stderr
            yield shown, done.stdout


@contextmanager
def served(folder: Path, profile: str, **settings: Any) -> Iterator[httpx.Client]:
    """A client of `python -m service`, which finds the packages in *folder*."""
    port, file = free_port(0), folder / "served.toml"
    file.write_text(profile, "utf-8")
    settings |= {
        "PYTHONPATH": str(folder),
        "SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{folder}/questions.sqlite3",
    }
    command = (*SERVICE, "--config", str(file))
    with running(port, command, folder / "stderr", **settings) as process:
        wait_until_ready(process, port)
        with httpx.Client(base_url=url(port), timeout=60, trust_env=False) as client:
            yield client
