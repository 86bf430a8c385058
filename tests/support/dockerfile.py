"""The Dockerfile, as tests read it."""

import re
import shlex
from dataclasses import dataclass, field

from tests.support.paths import ROOT


@dataclass(frozen=True)
class Stage:
    """A stage: its base, and its instructions in order."""

    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """What stands behind every instruction of this kind."""
        return [rest for name, rest in self.instructions if name == instruction]


def stages() -> dict[str, Stage]:
    """All stages by name."""
    found: dict[str, Stage] = {}
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    for line in text.replace("\\\n", " ").splitlines():
        name, _, rest = line.partition(" ")
        if name == "FROM":
            base, _, stage = rest.split()
            found[stage] = Stage(base)
        elif name and found:
            list(found.values())[-1].instructions.append((name, rest))
    return found


def environment() -> dict[str, str]:
    """The variables of every container."""
    pairs = [pair for line in stages()["runtime"].all("ENV") for pair in shlex.split(line)]
    return dict(pair.split("=", 1) for pair in pairs)
