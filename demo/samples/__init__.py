"""The sample pictures, each with a prompt that is right for it and one that is wrong."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent
PROMPTS = FOLDER / "prompts.json"


def listed() -> list[dict[str, str]]:
    """Of each picture its `file` in the folder, and its `right` and its `wrong` prompt."""
    samples: list[dict[str, str]] = json.loads(PROMPTS.read_text("utf-8"))
    return samples
