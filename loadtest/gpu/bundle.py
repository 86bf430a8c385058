"""
`--bundle`: one folder with the sources and the wheels that a machine without network needs.

PyTorch, transformers and what these need must be there.  Wheels of the peers are optional: where there are
none for a platform, the part `peers` runs without them.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
FOLDERS = ("loadtest", "models", "service")
FILES = ("demo/__init__.py", "demo/process.py", "scoregate_server.py", "Makefile", "LICENSE")
LEFT_OUT = ("__pycache__", "*.safetensors")
HAVE = (
    *("torch", "torchvision", "transformers", "numpy", "numba"),
    *("pillow", "timm", "safetensors", "tokenizers", "sentencepiece"),
)
PEERS = ("litserve", "mosec")
LINE = re.compile(r"(?P<wheel>(?P<name>[\w.-]+)(?:==\S+)?)(?:\s+# via (?P<via>[\w.-]+))?")
MANYLINUX = re.compile(r"manylinux_2_(?P<minor>\d+)_(?P<machine>\w+)")
OLDER = ("manylinux2014", "manylinux2010", "manylinux1")  # names of 2.17, 2.12 and 2.5
COMMANDS = """\
cd {directory}
python3 -m pip install --no-index --find-links wheels --no-deps --target packages -r requirements.txt
PYTHONPATH=packages make gpu"""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package as pip takes it, and the package that needs it."""

    name: str
    wheel: str
    via: str = ""

    def is_of(self, names: Collection[str]) -> bool:
        """Return True if it is one of *names*, or only needed by one."""
        return self.name in names or self.via in names


def requirements(file: Path = REQUIREMENTS) -> Iterator[Requirement]:
    """Yield the packages of a file."""
    for line in file.read_text("utf-8").splitlines():
        if found := LINE.fullmatch(line):
            yield Requirement(found["name"], found["wheel"], found["via"] or "")


def download(arguments: Sequence[str]) -> bool:
    """Download wheels with pip; return False if it fails."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*command, *arguments]).returncode == 0


def bundle(
    directory: Path,
    have: Collection[str],
    python: str = "",
    platform: str = "",
    download: Callable[[Sequence[str]], bool] = download,
) -> None:
    """
    Fill *directory*, print its size and what to run there.

    Args:
        have: packages that the machine has.
        python, platform: of the machine, such as 3.12 and manylinux_2_28_x86_64; by default those of this
            process.
        download: of wheels, by the arguments of pip's command; returns False if it fails.

    Raises:
        SystemExit: a wheel that is not optional cannot be downloaded; pip has printed why.
    """
    copy_sources(directory)
    wanted = [each for each in requirements() if not each.is_of(have)]
    needed = [each for each in wanted if not each.is_of(PEERS)]
    flags = ["--no-deps", "--only-binary=:all:", "--dest", str(directory / "wheels")]
    flags += target(python, platform)
    if not download([*flags, *(each.wheel for each in needed)]):
        raise SystemExit("loadtest.gpu: the wheels cannot be downloaded")
    for peer in PEERS:
        its = [each for each in wanted if each.is_of((peer,))]
        if its and download([*flags, *(each.wheel for each in its)]):
            needed += its
        elif its:
            print(f"{peer} is left out")
    lines = [f"{each.wheel}\n" for each in needed]
    (directory / "requirements.txt").write_text("".join(lines), "utf-8")
    size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    print(f"{directory}: {size / 1e6:.1f} MB, {len(needed)} packages.  On the machine:\n")
    print(COMMANDS.format(directory=directory.name))


def copy_sources(directory: Path) -> None:
    """Copy what the parts import and run, without the demo models' weights."""
    left_out = shutil.ignore_patterns(*LEFT_OUT)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, directory / name, ignore=left_out, dirs_exist_ok=True)
    for name in FILES:
        (directory / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, directory / name)


def target(python: str, platform: str) -> Iterator[str]:
    """Yield pip's options for another version of Python and another platform."""
    if python:
        yield f"--python-version={python}"
    if platform:
        yield from (f"--platform={tag}" for tag in platforms(platform))


def platforms(platform: str) -> list[str]:
    """Return *platform* and the older ones whose wheels run there: pip does not try them by itself."""
    found = MANYLINUX.fullmatch(platform)
    if found is None:
        return [platform]
    newer = [f"manylinux_2_{minor}" for minor in range(int(found["minor"]), 4, -1)]
    return [f"{name}_{found['machine']}" for name in (*newer, *OLDER)]
