"""The service as its real clients find it."""

from dataclasses import dataclass

import httpx
import pytest

from demo.process import url
from tests.support.fake_service import FakeService
from tests.support.pictures import b64, png

PROMPT = "a red square"
PICTURES = [b64(png(colour)) for colour in ("blue", "red", "green")]


@dataclass
class Service:
    """
    Attributes:
        url, dialects: addresses of the main port and of the dialects'.
        scores: of `PICTURES` against `PROMPT`.
    """

    url: str
    dialects: str
    scores: list[float]

    @property
    def ranking(self) -> list[tuple[int, float]]:
        """The pictures' numbers with their scores, best first."""
        return sorted(enumerate(self.scores), key=lambda pair: -pair[1])


@pytest.fixture(scope="session")
def service(fake_service: FakeService) -> Service:
    """The shared service, with its scores."""
    body = {"prompt": PROMPT, "images": PICTURES}
    answer = httpx.post(
        f"{fake_service.url}/score", json=body, timeout=60, trust_env=False
    ).raise_for_status()
    scores = [result["scores"]["vqascore"] for result in answer.json()["results"]]
    return Service(fake_service.url, url(fake_service.private), scores)
