"""One service around fake models for all real clients."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from demo.process import free_port, running, url, wait_until_ready
from tests.conftest import b64, png
from tests.docs.pages import ROOT

COMMAND = (sys.executable, "-m", "service", "--config", str(ROOT / "loadtest" / "fake.toml"))
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


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with the dialect of rerankers."""
    folder = tmp_path_factory.mktemp("service")
    main, private = free_port(0), free_port(0)
    settings = {
        "SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{folder}/questions.sqlite3",
        "SCOREGATE_DIALECTS__ENABLED": json.dumps(["rerank"]),
        "SCOREGATE_DIALECTS__PORT": str(private),
    }
    with running(main, COMMAND, Path(folder) / "stderr", **settings) as process:
        wait_until_ready(process, main)
        body = {"prompt": PROMPT, "images": PICTURES}
        answer = httpx.post(f"{url(main)}/score", json=body, timeout=60, trust_env=False).raise_for_status()
        scores = [result["scores"]["vqascore"] for result in answer.json()["results"]]
        yield Service(url(main), url(private), scores)
