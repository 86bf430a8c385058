"""A service around timed fakes, and what tests ask of it."""

import io
import json
import pickle
from typing import Any

import httpx
import PIL.Image

from demo.process import url
from tests.support.pictures import b64
from tests.support.service import series

# A batch of 8 takes 100 ms on one device; a cached score would prove nothing.
PROFILE = """
{runtime}

[cache]
questions = "sqlite:///{folder}.sqlite3"
scores = "off"

[server]
grace_s = 30

[models.vqa]
family = "fake"
fixed_ms = 20
per_call_ms = 10
batch = {{ max_items = 8, max_batch_ms = 1000 }}
{placed}

[models.clip]
family = "fake"
{placed}

[models.questions]
family = "fake"
{placed}
"""

# Reward models with several outputs, one of which gets an edit's source and the other one a film's frames.
REWARDS = """
[models.editreward]
family = "fake"
{placed}

[models.videoalign]
family = "fake"
{placed}

[metrics.editreward]
model = "editreward"

[metrics.videoalign]
model = "videoalign"
"""

# Of the gateways, as variables.
POLICIES = {
    "SCOREGATE_POLICIES__SHOW__ACCEPT": "vqascore >= 0.5 and (clipscore >= 0.5 or dsg > 0.4)",
    "SCOREGATE_POLICIES__SHOW__REVIEW": "vqascore >= 0.25",
    "SCOREGATE_POLICIES__SHOW__RANK_BY": "vqascore",
    "SCOREGATE_POLICIES__SHOW__TIMEOUT_MS": "60000",
    "SCOREGATE_POLICIES__WIDE__ACCEPT": "max(vqascore, clipscore) > 0.3",
    "SCOREGATE_POLICIES__WIDE__RANK_BY": "clipscore",
    "SCOREGATE_POLICIES__WIDE__TIMEOUT_MS": "60000",
}


class Served:
    """A running one."""

    def __init__(self, port: int, pickle_port: int = 0) -> None:
        self.port, self.pickle_port = port, pickle_port

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{url(self.port)}{path}", timeout=60, trust_env=False, verify=False)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The answer to JSON."""
        return httpx.post(
            f"{url(self.port)}{path}", json=body, timeout=60, trust_env=False, verify=False
        ).json()

    def streamed(self, items: list[dict[str, Any]]) -> list[Any]:
        """The lines of a stream."""
        path, body = "/score?stream=1", {"items": items}
        answer = httpx.post(f"{url(self.port)}{path}", json=body, timeout=60, trust_env=False, verify=False)
        return [json.loads(line) for line in answer.text.splitlines()]

    def unpickled(self, body: dict[str, Any]) -> Any:
        """The answer to a pickle, as a trainer reads it."""
        content = pickle.dumps(body)
        answer = httpx.post(url(self.pickle_port), content=content, timeout=60, trust_env=False, verify=False)
        return pickle.loads(answer.content)

    def score(self, items: list[dict[str, Any]], *metrics: str, **more: Any) -> httpx.Response:
        body = {"items": items, "metrics": metrics or ["vqascore"], "timeout_ms": 60_000} | more
        return httpx.post(f"{url(self.port)}/score", json=body, timeout=120, trust_env=False, verify=False)

    def model(self) -> str:
        """The label of the VQA model that answers."""
        label: str = self.score(items(1)).json()["models"]["vqa"]
        return label

    def waiting(self, lane: str = "bulk") -> float:
        """Calls that wait for the VQA model."""
        return series(self.port, f'scoregate_queue_depth{{lane="{lane}",model="vqa"}}')


def picture(number: int) -> bytes:
    """A picture of a colour of its own."""
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (8, 8), (number % 256, number // 256, 7)).save(buffer, "PNG")
    return buffer.getvalue()


def items(count: int, first: int = 0, prompt: str = "a red square") -> list[dict[str, Any]]:
    """Items with so many different pictures."""
    return [{"prompt": prompt, "image": b64(picture(number))} for number in range(first, first + count)]
