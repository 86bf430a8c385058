"""Instructions of our own in place of those that an operator copies from the releases of reward models."""

import tomllib
from pathlib import Path

from service.metrics.rubrics.prompt_files import RELEASED_RUBRICS

PLACEHOLDERS = {
    call["prompt_file"]: call.get("prompt_slot", "{prompt}")
    for text in RELEASED_RUBRICS.values()
    for call in tomllib.loads(text)["calls"]
}


def copied(folder: Path) -> Path:
    """Write a file of instructions for each rubric of a released model into *folder*, and return it."""
    for name, placeholder in PLACEHOLDERS.items():
        about = f" The text is [{placeholder}]." if placeholder else ""
        (folder / name).write_text(f"Grade it as {name} says.{about}", "utf-8")
    return folder
