"""What the port whose bodies are pickles refuses, and with which status and text."""

import gc
import os
import pickle
import tracemalloc

import numpy as np
import pytest

from tests.app.web.dialects.conftest import PICTURES, PROMPTS
from tests.app.web.dialects.test_pickle_port import LINES, asked

pytestmark = pytest.mark.anyio

REFUSED = {
    "no prompts (DeQA), and no metric that needs none": ({"images": PICTURES}, 422, "prompts"),
    "metadata, and no detector": ({"images": PICTURES, "meta_datas": LINES}, 422, "detector"),
    "no prompts (LLaVA)": ({"images": PICTURES, "queries": [["What is this?"]] * 4}, 422, "prompts"),
    "an array of pictures": (
        {"images": np.zeros((2, 8, 8, 3), np.uint8), "prompts": PROMPTS},
        400,
        "as bytes",
    ),
    "too few prompts": (asked(prompts=PROMPTS[:3]), 422, "4 images and 3 prompts"),
    "an empty prompt": (asked(prompts=[*PROMPTS[:3], " "]), 422, "prompts/3: is empty"),
    "half a character": (asked(prompts=[*PROMPTS[:3], "\ud800"]), 422, "prompts/3"),
    "a prompt that is none": (asked(prompts=[*PROMPTS[:3], 1]), 422, "prompts/3"),
    "a prompt that is too long": (asked(prompts=["a" * 4001, *PROMPTS[:3]]), 422, "prompts/0"),
    "a picture that is none": (asked(images=[*PICTURES[:3], "picture"]), 422, "images/3"),
    "pictures by name": (asked(images={"a": PICTURES}), 422, "images: must be a list"),
    "too few lines of metadata": (asked(meta_datas=LINES[:3]), 422, "4 images and 3 meta_datas"),
    "a text of 60 kB and more": (asked(prompts=["a" * 70_000, *PROMPTS[:3]]), 422, "prompts/0"),
    "no pictures": ({"images": [], "prompts": []}, 422, "0 pictures"),
    "answers without form": ({"images": PICTURES, "answers": [1, 2, 3, 4]}, 422, "prompts/0"),
    "answers that are a number": ({"images": PICTURES, "answers": 1}, 422, "answers: must be a list"),
    "too many pictures": ({"images": [PICTURES[0]] * 1025, "prompts": ["a"] * 1025}, 422, "1025 pictures"),
    "no dict": ([PICTURES, PROMPTS], 422, "must hold a dict with images and prompts"),
    "nothing": (b"", 400, "no pickle"),
    "no pickle": (b'{"images": []}', 400, "no pickle"),
    "a call": (b"cos\nsystem\n(S'id'\ntR.", 400, "refused"),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", REFUSED)
async def test_what_cannot_be_scored_is_refused_for_good_with_a_text(dialects, monkeypatch, name):
    """A status below 500 without Retry-After, and a pickle that no client takes for scores."""
    monkeypatch.setattr(os, "system", lambda command: pytest.fail("it ran"))
    body, expected, text = REFUSED[name]
    async with dialects() as apps:
        content = body if isinstance(body, bytes) else pickle.dumps(body)
        refused = await apps.pickled.post("/", content=content)
        answer = pickle.loads(refused.content)

    assert expected == refused.status_code
    assert text in answer["error"]
    assert {"error", "code"} == answer.keys()
    assert "retry-after" not in refused.headers


@pytest.mark.shared
async def test_paths_and_methods_that_are_not_served_are_told(dialects):
    async with dialects() as apps:
        wrong = await apps.unpickled(asked(), "/pickscore")
        unknown = await apps.unpickled(asked(), "/score/me")
        close = await apps.unpickled(asked(), "/clipscoreX")
        got = await apps.pickled.get("/")

    assert (404, "not_found") == (wrong[0], wrong[1]["code"])
    assert (404, "not_found") == (unknown[0], unknown[1]["code"]) == (close[0], close[1]["code"])
    assert 405 == got.status_code
    assert "application/octet-stream" == got.headers["content-type"]
    assert "only POST is served here" == pickle.loads(got.content)["error"]


async def test_a_body_over_the_limit_is_refused_and_not_asked_for_again(dialects):
    """A client with urllib3's retries would send it for ever if there were a Retry-After."""
    async with dialects(server={"body_limit_mb": 1}) as apps:
        declared = await apps.pickled.post("/", content=bytes(2**20 + 1))
        chunked = await apps.pickled.post("/", content=pieces(2**20 + 1))

    for refused in (declared, chunked):
        assert 413 == refused.status_code
        assert "retry-after" not in refused.headers


async def test_values_that_take_more_than_the_limit_are_refused_though_the_body_is_small(dialects):
    """A picture that stands in many places counts in each."""
    body = pickle.dumps({"images": [bytes(2**15)] * 33, "prompts": ["a"] * 33}, 4)
    assert len(body) < 2**16
    async with dialects(server={"body_limit_mb": 1}) as apps:
        status, answer = await apps.unpickled(body)

    assert 413 == status
    assert f"the values of the pickle hold more than {2**20} bytes" == answer["error"]


async def pieces(size):
    for _ in range(0, size, 2**16):
        yield bytes(2**16)
    yield b"x"


async def test_a_service_that_drains_says_so_and_when_to_come_again(dialects):
    async with dialects() as apps:
        apps.service.draining = True
        refused = await apps.pickled.post("/", content=pickle.dumps(asked()))

    assert 503 == refused.status_code
    assert int(refused.headers["retry-after"]) >= 1


async def test_a_refused_body_is_freed_with_its_answer(dialects):
    """From the service's memory, without the garbage collector, which seldom looks at old objects."""
    body = pickle.dumps({"images": [bytes(4 * 2**20)], "prompts": ["a", "b"]}, 4)
    async with dialects() as apps:
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(4):
                assert 422 == (await apps.unpickled(body))[0]
            kept = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/service/*")])
            assert sum(trace.size for trace in kept.traces) < len(body)
        finally:
            tracemalloc.stop()
            gc.enable()
