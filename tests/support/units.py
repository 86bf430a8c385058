"""Units of systemd, as tests read them."""

import shlex
from pathlib import Path

from tests.support.paths import ROOT

FOLDER = ROOT / "deploy" / "systemd"


class Unit:
    """One unit: the values of each directive, in order, whatever its section."""

    def __init__(self, path: Path) -> None:
        self.path, self._values = path, dict[str, list[str]]()
        for line in path.read_text("utf-8").replace("\\\n", " ").splitlines():
            name, given, value = line.partition("=")
            if given and not line.startswith("#"):
                self._values.setdefault(name, []).append(value)

    def all(self, name: str) -> list[str]:
        """The values of a directive that may be there several times."""
        return self._values.get(name, [])

    def one(self, name: str) -> str:
        """The value of a directive that is there once."""
        [value] = self._values[name]
        return value

    @property
    def command(self) -> list[str]:
        """The program and its arguments."""
        return shlex.split(self.one("ExecStart"))

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its process."""
        return dict(each.split("=", 1) for each in self.all("Environment"))


def unit(name: str) -> Unit:
    """A unit that is shipped."""
    return Unit(FOLDER / f"{name}.service")


def told_in(profile: Path) -> list[str]:
    """The command line of vLLM in the first lines of a profile."""
    lines = [line.lstrip("# ") for line in profile.read_text("utf-8").splitlines() if line.startswith("#")]
    command = " ".join(lines).replace("\\", "").split("vllm serve ", 1)[1].split(" scoregate-server", 1)[0]
    return shlex.split(command)


def options(arguments: list[str]) -> dict[str, str]:
    """What arguments say, written `--name=value` or `--name value`; the first is the model."""
    model, *rest = " ".join(arguments).replace("=", " ").split()
    return {"model": model, **dict(zip(rest[::2], rest[1::2], strict=True))}
