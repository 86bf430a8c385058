"""
Models without weights, which derive results from a hash of the call.

They compute nothing else, so that measurements show the service alone.  With `fixed_ms` and `per_call_ms` a
fake occupies its device like a real model.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import cos, log, sin
from typing import Any

import numpy as np
import PIL.Image

from models.core.calls import (
    AnswerCall,
    Call,
    ChoiceCall,
    ContrastCall,
    DetectCall,
    EditCall,
    EntailmentCall,
    FirstTokenCall,
    GenerateCall,
    ImageCall,
    LabelCall,
    LikelihoodCall,
    ProgressCall,
    ReadCall,
    RerankCall,
    RewardCall,
    TextCall,
    VideoCall,
)
from models.core.contract import ModelInfo, Prepared
from models.core.family import Plan
from models.core.outcomes import (
    CallResult,
    Choices,
    Detection,
    Detections,
    Embedding,
    Entailment,
    FirstToken,
    Likelihood,
    Line,
    Reading,
    Reward,
    Text,
    packed,
)
from models.families.fake import FakeSettings
from models.images.image import Image

YES_NO_QUESTIONS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "questions": {"items": {"properties": {"id": {}, "kind": {}, "text": {}, "depends_on": {}}}}
    },
}


def written(user: str, schema: Mapping[str, Any]) -> str:
    """
    Return JSON of *schema*, whose one list has an entry for every noun after an article, with the word before
    it.

    A list of plain texts answers each of the numbered questions in the user message with yes.
    """
    [(name, entries)] = schema["properties"].items()
    fields = entries["items"].get("properties")
    if fields is None:
        listed = user.rpartition("questions: ")[2]
        return json.dumps({name: ["yes" for _ in re.findall(r"(?:^|; )\d+ ", listed)]})
    nouns = dict.fromkeys(re.findall(r"\ban? (\w+ \w+)", user.split("prompt: ", 1)[-1]))
    return json.dumps({name: [entry(name, n, noun, fields) for n, noun in enumerate(nouns, 1)]})


def entry(name: str, number: int, noun: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return one entry about *noun* in the list *name*: the *fields* of its schema."""
    question, in_pairs = f"Is there a {noun}?", name == "pairs"
    known: dict[str, Any] = {
        "id": number,
        "kind": "entity",
        "text": noun if name == "keywords" else question,
        "depends_on": [],
        "tuple": f"entity ({noun})",
        "entity": noun,
        "type": "object",
        "choices": ["yes", "no"],
        "answer": noun if in_pairs else "yes",
        "question": "What is there?" if in_pairs else question,
        "groundable": True,
        "skill": "entities",
        "subskill": "object",
        "phrase": noun,
        "node_type": "presence",
    }
    return {field: known[field] for field in fields}


def valid(schema: Mapping[str, Any], *parts: str) -> Any:
    """Return a value that a JSON schema of an object allows, by a hash of *parts*."""
    if schema["type"] == "object":
        return {name: valid(each, *parts, name) for name, each in schema["properties"].items()}
    share = chance(*parts)
    match schema:
        case {"enum": listed}:
            return listed[int(share * len(listed))]
        case {"type": "integer", "minimum": least, "maximum": largest}:
            return least + int(share * (largest - least + 1))
        case {"type": "number"}:
            least, largest = schema.get("minimum", 0), schema.get("maximum", 1)
            return least + share * (largest - least)
    return f"reason {share:.3f}"


COST = 10  # tokens of every call
GREY = Image.of(PIL.Image.new("RGB", (8, 8), (128, 128, 128)), "grey")
# Calls of roles whose models take others than `RewardCall`.
EXAMPLES: dict[str, Call] = {
    "clip": TextCall("grey"),
    "vqa": LikelihoodCall(GREY, "Is it grey?"),
    "questions": GenerateCall("", "style: example\nprompt: a grey square"),
    "embedding": TextCall("grey"),
    "nli": EntailmentCall("a grey square", "Is it grey? yes"),
    "ocr": ReadCall(GREY),
    "detector": DetectCall(GREY, ("square",)),
    "reranker": RerankCall(GREY, "grey"),
    "hpsv3pp": ProgressCall(GREY, "grey"),
    "editreward": EditCall(GREY, "grey", GREY),
    "videoalign": VideoCall((GREY, GREY), "grey"),
}


class FakeModel:
    """
    A model of any role, which answers every kind of call.

    Args:
        fixed_s, per_call_s: seconds of a batch, and of each call in it.

    Attributes:
        sleep: takes the time of a batch.
    """

    def __init__(
        self,
        role: str,
        *,
        fixed_s: float = 0.0,
        per_call_s: float = 0.0,
        id: str = "",
        revision: str = "",
        device: str = "cpu",
    ) -> None:
        self.info = ModelInfo(
            role=role,
            family="fake",
            id=id or f"fake-{role}",
            revision=revision or "1",
            dtype="float32",
            device=device,
            logit_scale=100.0 if role == "clip" else None,
            masks=role == "detector",
            generates=role == "questions",
        )
        self._fixed_s, self._per_call_s = fixed_s, per_call_s
        self.sleep: Callable[[float], object] = time.sleep

    def prepare(self, call: Any) -> Prepared:
        """Return a constant cost, and decode all images as any model does."""
        for image in call.images:
            image.rgb.load()
        return Prepared(COST, call)

    def score(self, batch: Sequence[Prepared]) -> list[Any]:
        """Sleep on the device's thread like a kernel, then answer."""
        if seconds := self._fixed_s + self._per_call_s * len(batch):
            self.sleep(seconds)
        return [self.answer(prepared.data) for prepared in batch]

    def answer(self, call: Any) -> Any:
        """Return the result of one call."""
        return answer(call)

    def example(self) -> Any:
        return EXAMPLES.get(self.info.role, RewardCall(GREY, "grey"))


def answer(call: Call) -> CallResult:
    """Return the result of any fake for *call*."""
    match call:
        case LikelihoodCall(image, question):
            yes = chance(image.digest, question)
            return Likelihood((log(yes), log(0.9)), log(yes), log(1 - yes))
        case AnswerCall(image, question, schema=dict() as schema, seed=seed):
            return Text(json.dumps(valid(schema, image.digest, question, str(seed))))
        case AnswerCall(image, question):
            return Text("Yes" if chance(image.digest, question) > 0.5 else "No")
        case ChoiceCall(image, question, choices):
            return Choices(tuple((log(chance(image.digest, question, choice)),) for choice in choices))
        case FirstTokenCall(image, question, answers):
            shares = [chance(image.digest, question, text) / len(answers) for text in answers]
            return FirstToken(tuple(map(log, shares)), tuple(range(len(answers))))
        case LabelCall(image, question, labels, before):
            shown = [each if isinstance(each, str) else each.digest for each in before]
            shares = [chance(image.digest, question, label, *shown) / len(labels) for label in labels]
            return Choices(tuple((log(share),) for share in shares))
        case EntailmentCall(premise, hypothesis):
            return Entailment(chance(premise, hypothesis))
        case ReadCall(image):
            corners = ((0.0, 0.0), (8.0, 0.0), (8.0, 8.0), (0.0, 8.0))
            return Reading((Line(f"read in {image.digest[:8]}", corners, chance(image.digest)),))
        case DetectCall(image, labels, threshold):
            return Detections(tuple(found(image, labels, threshold)))
        case RewardCall(image, prompt):
            return Reward((log(chance(image.digest, prompt)), -1.0))
        case RerankCall(image, prompt, activated):
            share = chance(image.digest, prompt)
            return Reward((share if activated else log(share / (1 - share)),))
        case ProgressCall(image, prompt, progress):
            return Reward((log(chance(image.digest, prompt)), -1.0, progress))
        case EditCall(image, prompt, source):
            both = log(chance(image.digest, prompt)), log(chance(source.digest, prompt))
            return Reward((sum(both) / 2, -1.0, both[0], -1.0, both[1], -1.0))
        case VideoCall(frames, prompt):
            seen = [frame.digest for frame in frames]
            parts = [log(chance(*seen, *more)) for more in (("visual",), ("motion",), ("text", prompt))]
            return Reward((sum(parts), *parts))
        case ContrastCall(image, prompt):
            share = chance(image.digest, prompt)
            return Reward((2 * share - 1, 0.0, log(share)))
        case GenerateCall(user=user, schema=schema):
            return Text(written(user, schema or YES_NO_QUESTIONS))
        case ImageCall(image):
            angle = chance(image.digest)
        case TextCall(text):
            angle = chance(text)
        case _:
            raise TypeError(f"a fake has no answer to a {type(call).__name__}")
    return Embedding(np.array([cos(angle), sin(angle)], np.float32))


def found(image: Image, labels: Sequence[str], threshold: float) -> Iterator[Detection]:
    """
    Yield an object for each label that scores more than the threshold, the highest score first.

    Each fills a box of half the image's width and height, at a position that depends on the label.
    """
    width, height = image.size
    across, down = (width + 1) // 2, (height + 1) // 2
    mask = packed(np.ones((down, across), bool))
    scores = {label: chance(image.digest, label) for label in labels}
    for label in sorted(scores, key=lambda label: -scores[label]):
        if scores[label] > threshold:
            left = float(int((width - across) * chance(image.digest, label, "left")))
            top = float(int((height - down) * chance(image.digest, label, "top")))
            yield Detection(label, scores[label], (left, top, left + across, top + down), mask)


def chance(*parts: str) -> float:
    """Return a number in (0, 1) that is a hash of *parts*."""
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return (int.from_bytes(digest[:6]) + 1) / (2**48 + 2)


def from_settings(settings: FakeSettings) -> FakeModel:
    """Return the fake of a table."""
    return FakeModel(
        settings.role,
        fixed_s=settings.fixed_ms / 1000,
        per_call_s=settings.per_call_ms / 1000,
        id=settings.id,
        revision=settings.revision,
        device=settings.device,
    )


def plan(settings: FakeSettings) -> Plan:
    """Return the plan of a fake, without weights."""
    return Plan(settings.id or f"fake-{settings.role}", "no weights", 0)
