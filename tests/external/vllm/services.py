"""A service in front of a vLLM, and what its tests ask."""

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import PIL.Image

from demo.process import SERVICE, free_port, running, url, wait_until_ready
from demo.samples import FOLDER, listed
from tests.support.background import awaited, background
from tests.support.vllm_server import VLLM

LISTED = listed()
PICTURE = (FOLDER / LISTED[1]["file"]).read_bytes()
PIXELS = {  # of three files
    file: PIL.Image.open(io.BytesIO(file)).convert("RGB")
    for file in ((FOLDER / sample["file"]).read_bytes() for sample in LISTED[:3])
}
PATIENT_S = 170


@contextmanager
def server(name: str) -> Iterator[VLLM]:
    """Yield the vLLM of that name, which runs in the background, once it answers; kill it in the end."""
    with background(name) as described:
        paths = (awaited("template")["socket"], described["checkpoint"], described["log"])
        template, checkpoint, log = map(Path, paths)
        found = VLLM(template, checkpoint, described["port"], log)
        yield found
        found.kill()


@contextmanager
def service(directory: Path, tables: str) -> Iterator[httpx.Client]:
    """Yield a client of a service with those settings."""
    port, path = free_port(0), directory / "profile.toml"
    path.write_text(f'{tables}\n[cache]\nquestions = "sqlite:///{directory}/questions.sqlite3"\n')
    with running(port, (*SERVICE, "--config", str(path)), directory / "stderr") as process:
        wait_until_ready(process, port)
        with httpx.Client(base_url=url(port), timeout=PATIENT_S + 10, trust_env=False) as client:
            yield client


def scored(
    client: httpx.Client,
    prompts: list[str],
    metric: str,
    picture: bytes = PICTURE,
    beside: dict[str, Any] | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Return the results of one picture against *prompts*, with fields *beside* it."""
    image = base64.b64encode(picture).decode()
    body = {
        "items": [{"prompt": prompt, "image": image, **(beside or {})} for prompt in prompts],
        "metrics": [metric],
        "options": {metric: options},
        "explain": True,
        "timeout_ms": PATIENT_S * 1000,
    }
    answer = client.post("/score", json=body)
    assert 200 == answer.status_code, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results
