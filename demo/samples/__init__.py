"""The sample pictures, each with a prompt that is right for it and one that is wrong."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PROMPTS = FOLDER / "prompts.json"


def listed() -> list[dict[str, Any]]:
    """
    Of each picture its `file` in the folder, and its `right` and its `wrong` prompt.

    `geneval` has GenEval's metadata of those prompts, under the same two names; none where it has no words
    for what they say.
    """
    samples: list[dict[str, Any]] = json.loads(PROMPTS.read_text("utf-8"))
    return samples
