"""Fake models: fast, deterministic, and with switches to fail.  For faults and speed only."""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log
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

GREY = Image(PIL.Image.new("RGB", (8, 8), (128, 128, 128)), "grey")


def info(role: str) -> ModelInfo:
    return ModelInfo(role, "fake", f"fake-{role}", "1", "float32", "cpu")


def chance(*parts: str) -> float:
    """A number in (0, 1) that depends on nothing but *parts*."""
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return (int.from_bytes(digest[:6]) + 1) / (2**48 + 2)


class FakeModel:
    """Scores batches with `answer(call)`, keeps what it was given, and can be held."""

    role = "vqa"

    def __init__(self) -> None:
        self.info = info(self.role)
        self.batches: list[list[Any]] = []
        self.hold = threading.Event()
        self.hold.set()
        self.held = False
        self.fault: Callable[[Any], Exception | None] = lambda call: None

    def prepare(self, call: Any) -> Prepared:
        if isinstance(call, ImageCall | LikelihoodCall):
            call.image.rgb.load()  # as every model does
        return Prepared(10, call)

    def score(self, batch: Sequence[Prepared]) -> list[Any]:
        calls = [prepared.data for prepared in batch]
        self.held = not self.hold.is_set()
        self.hold.wait(10)
        self.held = False
        self.batches.append(calls)
        for call in calls:
            if fault := self.fault(call):
                raise fault
        return [self.answer(call) for call in calls]

    def answer(self, call: Any) -> Any:
        raise AssertionError("a fake answers in its own way")

    def example(self) -> Any:
        raise AssertionError("a fake has an example of its own")

    @property
    def calls(self) -> list[Any]:
        """Every call but the warm-up's."""
        example = self.example()
        return [call for batch in self.batches for call in batch if call != example]


class FakeVqa(FakeModel):
    """P(Yes) from the image's digest and the question."""

    def answer(self, call: LikelihoodCall) -> Likelihood:
        yes = chance(call.image.digest, call.question)
        return Likelihood((log(yes), log(0.9)), log(yes), log(1 - yes))

    def example(self) -> LikelihoodCall:
        return LikelihoodCall(GREY, "Is it grey?")


class FakeClip(FakeModel):
    """A unit vector from the content."""

    role = "clip"

    def __init__(self) -> None:
        super().__init__()
        self.info = replace(self.info, logit_scale=100.0)

    def answer(self, call: ImageCall | TextCall) -> Embedding:
        angle = chance(call.text if isinstance(call, TextCall) else call.image.digest)
        return Embedding(np.array([np.cos(angle), np.sin(angle)], np.float32))

    def example(self) -> TextCall:
        return TextCall("grey")


class FakeQuestionLLM(FakeModel):
    """Asks for every noun after an article; `texts` overrides what it writes for a prompt."""

    role = "questions"

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}

    def answer(self, call: GenerateCall) -> str:
        prompt = call.user.split("prompt: ", 1)[1]
        if prompt in self.texts:
            return self.texts[prompt]
        nouns = dict.fromkeys(re.findall(r"\ban? (\w+ \w+)", prompt))
        questions = [
            {"id": n, "kind": "entity", "text": f"Is there a {noun}?", "depends_on": []}
            for n, noun in enumerate(nouns, 1)
        ]
        return json.dumps({"questions": questions})

    def example(self) -> GenerateCall:
        return GenerateCall("", "style: dsg\nprompt: a grey square")
