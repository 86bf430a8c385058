"""
Rubrics of released reward models, whose instructions an operator copies from the release: none is shipped.

A call of such a rubric names a `prompt_file` in place of `instructions`.  The text in it that stands for the
prompt of an item is its `prompt_slot`, by default `{prompt}`; without one the instructions are the same for
all items.  `closing` is then empty by default.

None of these models was run here: their parsers were compared with the released ones, which take a first
number, a default or a random one where these refuse an answer.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from service.core.settings.tree import toml_files
from service.core.text_files import text_of

MAX_BYTES = 65_536  # bytes of a file, or of a rubric as JSON
FILE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\.txt")
FIELDS = ("prompt_file", "prompt_slot")
PROMPT = "{prompt}"  # placeholder of a rubric's instructions

RELEASED_RUBRICS = {
    file.stem: file.read_text("utf-8") for file in toml_files([Path(__file__).with_name("released")])
}


class PromptMissing(ValueError):
    """A file of instructions is not there; *path* is where it is expected."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"its instructions are expected in {path}, a copy from the model's release")


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A file of instructions, with the hash of its bytes."""

    path: Path
    text: str
    sha256: str

    @classmethod
    def of(cls, name: Any, folder: Path) -> "PromptFile":
        """
        Read the file *name* of *folder*.

        Raises:
            PromptMissing: it is not there.
            ValueError: it cannot be read, or is no text.
        """
        if not isinstance(name, str) or not FILE_NAME.fullmatch(name):
            raise ValueError(f"prompt_file: a name must match {FILE_NAME.pattern}")
        return cls.at(folder / name)

    @classmethod
    def at(cls, path: Path) -> "PromptFile":
        """Read a file.  Raises as `of`."""
        try:
            text, content = text_of(path, MAX_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            raise PromptMissing(path) from None
        except OSError as exc:
            raise ValueError(f"{path}: {exc.strerror or exc}") from exc
        return cls(path, text.replace("\r\n", "\n").strip(), sha256(content).hexdigest())

    def instructions(self, placeholder: Any) -> str:
        """Return the text with a rubric's placeholder in place of *placeholder*.  Raises `ValueError`."""
        if not isinstance(placeholder, str):
            raise ValueError("prompt_slot: must be a text")
        if placeholder and placeholder not in self.text:
            raise ValueError(f"{self.path} has no {placeholder} for the prompt of an item")
        return self.text.replace(placeholder, PROMPT) if placeholder else self.text


def with_instructions(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """
    Return the table of a rubric with the instructions of its prompt files, without a closing by default.

    Raises `PromptMissing`, or `ValueError` for a file that cannot be used.
    """
    calls = table.get("calls")
    if not isinstance(calls, list):
        return dict(table)
    return {**table, "calls": [call_of(call, folder) for call in calls]}


def call_of(call: Any, folder: Path) -> Any:
    """Return a call with the text of its prompt file, or itself.  Raises as `with_instructions`."""
    if not isinstance(call, dict) or "prompt_file" not in call:
        return call
    if "instructions" in call:
        raise ValueError("prompt_file: takes the place of instructions")
    file = PromptFile.of(call["prompt_file"], folder)
    rest = {name: each for name, each in call.items() if name not in FIELDS}
    return {"closing": "", **rest, "instructions": file.instructions(call.get("prompt_slot", PROMPT))}


def named_in(text: str) -> list[str]:
    """Return what a rubric's text names as prompt files; nothing of a text that is no rubric."""
    try:
        calls = tomllib.loads(text).get("calls")
    except (ValueError, RecursionError):
        return []
    named = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [call["prompt_file"] for call in named if isinstance(call.get("prompt_file"), str)]
