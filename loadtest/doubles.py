"""
Test doubles of models, and the real service around them.

`python -m loadtest.doubles --model null|timed [--a-ms A --b-ms B]`

The **null model** answers at once: what is left is the service.  The **timed model** holds its device for
a + b·n milliseconds and computes nothing: what is left is queueing, and two cores suffice to measure it.
Each has an image decoded, as any model does, and says in `GET /models` what it is.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from models.base import (
    Embedding,
    GenerateCall,
    Image,
    ImageCall,
    Likelihood,
    LikelihoodCall,
    ModelInfo,
    Prepared,
    TextCall,
)
from service.__main__ import serve
from service.logs import configure_logging
from service.settings import load_settings

PROFILE = Path(__file__).with_name("doubles.toml")
ROLES = ("clip", "vqa", "questions")
COST = 10  # tokens of every call
YES = Likelihood((log(0.8), log(0.9)), log(0.8), log(0.1))
QUESTIONS = '{"questions": [{"id": 1, "kind": "entity", "text": "Is it there?", "depends_on": []}]}'


class Double:
    """Holds the device for *a_s* + *b_s*·n seconds, then gives the same answer to all."""

    def __init__(self, kind: str, role: str, a_s: float, b_s: float) -> None:
        self.info = ModelInfo(role, f"{kind}-double", f"{kind}-double-{role}", "1", "none", "none")
        self._a_s, self._b_s = a_s, b_s

    def prepare(self, call: Any) -> Prepared:
        """Every call costs the same; its image is decoded."""
        if isinstance(call, ImageCall | LikelihoodCall):
            call.image.rgb.load()
        return Prepared(COST, call)

    def score(self, batch: Sequence[Prepared]) -> list[Any]:
        """Sleep on the device thread, as a kernel would keep it."""
        if seconds := self._a_s + self._b_s * len(batch):
            time.sleep(seconds)
        return [answer(prepared.data) for prepared in batch]

    def example(self) -> Any:
        """A call of the role."""
        grey = Image(PIL.Image.new("RGB", (8, 8)), "grey")
        calls = {"clip": ImageCall(grey), "vqa": LikelihoodCall(grey, "?"), "questions": GenerateCall("", "")}
        return calls[self.info.role]


def answer(call: ImageCall | TextCall | LikelihoodCall | GenerateCall) -> Any:
    """The same for every call of a kind."""
    if isinstance(call, LikelihoodCall):
        return YES
    if isinstance(call, GenerateCall):
        return QUESTIONS
    return Embedding(np.array([1, 0], np.float32))


def main() -> None:
    """Serve until SIGTERM; settings come from `doubles.toml` and the environment."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--model", choices=("null", "timed"), required=True)
    parser.add_argument("--a-ms", type=float, default=20, help="timed: of each batch")
    parser.add_argument("--b-ms", type=float, default=6, help="timed: of each call in it")
    arguments = parser.parse_args()
    seconds = (0.0, 0.0) if arguments.model == "null" else (arguments.a_ms / 1000, arguments.b_ms / 1000)
    configure_logging()
    models = {role: Double(arguments.model, role, *seconds) for role in ROLES}
    sys.exit(serve(load_settings(PROFILE), models))


if __name__ == "__main__":
    main()
