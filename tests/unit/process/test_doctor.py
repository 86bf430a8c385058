"""`scoregate-server doctor`: findings from facts, and the exit status."""

import asyncio
import json
from email.utils import formatdate
from math import log
from types import SimpleNamespace
from zlib import crc32

import httpx
import pytest
from huggingface_hub.errors import OfflineModeIsEnabled, RepositoryNotFoundError

from models.core.family import Plan
from models.families.registry import families
from service.core.settings.tree import Settings
from service.process.doctor import (
    BROKEN,
    LATER,
    WRONG,
    Finding,
    check_clock,
    check_disk,
    check_driver,
    check_gpus,
    check_memory,
    check_packages,
    hub,
    known_calls,
    status_of,
)
from tests.support.fake_openai import weighed

GB = 10**9


@pytest.mark.parametrize(
    ("built", "newest", "needed", "statuses"),
    [
        ("", 0, False, (0, 0)),
        ("", 12040, True, (WRONG, 0)),
        ("12.8", 0, True, (0, BROKEN)),
        ("12.8", 12040, True, (0, 0)),
        ("13.0", 12040, True, (0, WRONG)),
    ],
)
def test_the_build_of_pytorch_and_the_driver_must_suit_the_profile(built, newest, needed, statuses):
    """CUDA of one major version is compatible; a machine without a GPU needs neither."""
    found = check_packages("2.9", built, needed), check_driver(newest, built, needed)

    assert statuses == tuple(finding.status for finding in found)


def test_a_gpu_that_does_not_answer_is_broken():
    """The others are listed with their free memory."""
    found = [str(finding) for finding in check_gpus(["cuda:0", "cuda:1"], {"cuda:0": 20 * GB})]

    assert "✓ cuda:0: 20.0 GB free" == found[0]
    assert found[1].startswith("✗ cuda:1: this GPU does not answer: run nvidia-smi")


@pytest.mark.parametrize(
    ("weights", "begin"),
    [
        (15, "✓ memory of cuda:0: 15.0 GB of weights needed, 20.0 GB free"),
        (21, "✗ memory of cuda:0: the weights take 21.0 GB, and 20.0 GB are free: choose"),
    ],
)
def test_memory_is_compared_with_what_is_free(weights, begin):
    """That of the weights."""
    [finding] = check_memory({"cuda:0": weights * GB}, {"cuda:0": 20 * GB})

    assert str(finding).startswith(begin)


def test_downloads_must_fit_on_the_disk():
    """Of the hub's cache."""
    assert 0 == check_disk("/cache", 20 * GB, 6 * GB).status
    assert WRONG == check_disk("/cache", 5 * GB, 6 * GB).status


def test_the_clock_is_compared_with_configured_servers():
    """Without a date nothing is checked, and that is said."""
    now = 1_800_000_000.0

    assert str(check_clock(["", "no date"], now)).startswith("- clock: not checked")
    assert 0 == check_clock([formatdate(now - 3)], now).status
    assert "+300 s" in check_clock([formatdate(now), formatdate(now - 300)], now).fact


def test_the_status_is_that_of_the_fault_that_needs_a_person_most():
    """A setting before a device, and a device before what may pass."""
    found = [Finding("a", "b", "c", status) for status in (0, LATER, BROKEN, WRONG)]

    assert [0, LATER, BROKEN, WRONG] == [status_of(found[: n + 1]) for n in range(4)]


def test_a_finding_is_one_line():
    """Whatever line ends a library has put into it."""
    assert "✗ hub: no\troute".replace("\t", " ") + ": wait" == str(
        Finding("hub", "no\n route", "wait", LATER)
    )


@pytest.fixture
def found_by_hub(fake_hub):
    """A function: the finding about a profile, where the hub gives files, or an error."""
    fake_hub.warning = "said twice"

    def found(given, checkpoint="owner/clip", where="not in the cache"):
        if isinstance(given, Exception):
            fake_hub.error = given
        else:
            fake_hub.files = [*given]
        table = {"family": "clip_flant5", "checkpoint": checkpoint}
        settings = Settings.model_validate({"models": {"vqa": table}})
        return hub(settings, {"vqa": Plan(checkpoint, where=where)})

    return found


def file(size, pending):
    """One file of a checkpoint."""
    return SimpleNamespace(filename="model.safetensors", file_size=size, will_download=pending)


def test_downloads_are_counted_without_what_the_cache_has(found_by_hub, capfd):
    """6 of 9 GB."""
    size, finding = found_by_hub([file(6 * GB, True), file(3 * GB, False)])

    assert 6 * GB == size
    assert "" == capfd.readouterr().err  # of the hub's own logger
    assert str(finding).startswith("✓ hub: 6.0 GB to download from ")


def test_the_hub_is_not_called_for_what_is_there(found_by_hub):
    """Neither for a checkpoint of the cache nor for a directory."""
    assert (0, 0) == (
        found_by_hub(AssertionError(), where="/cache")[0],
        found_by_hub([], where="/cache")[1].status,
    )


@pytest.mark.parametrize(
    ("error", "status", "remedy"),
    [
        (
            RepositoryNotFoundError(
                "none", response=httpx.Response(404, request=httpx.Request("GET", "http://x"))
            ),
            WRONG,
            "correct models.vqa",
        ),
        (ConnectionError("no route"), LATER, "or set HF_ENDPOINT"),
        (OfflineModeIsEnabled("HF_HUB_OFFLINE"), WRONG, "or set HF_ENDPOINT"),
    ],
)
def test_a_wrong_name_is_told_from_a_hub_that_is_away(found_by_hub, error, status, remedy):
    """The first has to be corrected, the second may pass."""
    _, finding = found_by_hub(error)

    assert status == finding.status
    assert finding.remedy.endswith(remedy)
    assert "owner/clip: cannot be found" in finding.fact


class Server:
    """A server whose numbers depend on the whole body, its picture and its texts."""

    async def post(self, path, body, headers):
        if path == "../tokenize":
            ids = {"Yes": [5], "No": [6]}[body["prompt"]]
            return {"tokens": ids, "token_strs": [body["prompt"]]}
        number = crc32(json.dumps(body).encode()) / 2**32
        return {
            "answers": [{"probability": number}],
            "data": [{"index": 0, "score": number, "probs": [number], "embedding": [number, 1.0]}],
            **weighed(id5=log(number), id6=log(1 - number)),
        }


class WithoutLogProbabilities(Server):
    """A server that returns the text of an answer alone."""

    async def post(self, path, body, headers):
        answer = await super().post(path, body, headers)
        return {**answer, "choices": [{"message": {"content": "Yes"}}]}


def known_calls_of(server, family, role, **more):
    table = families()[family].settings(
        family=family, role=role, base_url="http://h/v1", model="m", timeout_s=5, **more
    )
    return asyncio.run(known_calls("x", table, server, "vLLM 1 serves m"))


PICTURES = "of a red and a blue picture"
QUESTIONS = "log-probabilities of named tokens for opposite questions about a picture"


@pytest.mark.parametrize(
    ("family", "role", "more", "compared"),
    [
        ("openai_vlm", "vqa", {}, QUESTIONS),
        ("openai_safety", "safety", {"policy": "Is it?"}, QUESTIONS),
        ("decisions", "vqa", {"body": "openai"}, "probabilities for a red and a blue picture"),
        ("openai_rerank", "reranker", {}, f"scores {PICTURES}"),
        (
            "openai_rerank",
            "reranker",
            {"instruction": "Find it."},
            f"scores {PICTURES}, and with and without the instruction,",
        ),
        ("openai_clip", "clip", {}, f"embeddings {PICTURES}"),
        ("openai_embedding", "embedding", {}, "embeddings of two texts"),
        ("openai_reward", "reward", {}, "outputs for a right and a wrong text of a picture"),
    ],
)
def test_the_finding_about_a_server_names_what_was_compared(family, role, more, compared):
    """Rerankers, embedders and decisions of two pictures, others of two texts."""
    found = known_calls_of(Server(), family, role, **more)

    assert f"✓ models.x: vLLM 1 serves m, whose {compared} differ; a priority is accepted" == str(found)


def test_answers_that_could_not_be_compared_are_no_passed_check():
    """The reason stands in their place; metrics by written answers need none of them."""
    found = known_calls_of(WithoutLogProbabilities(), "openai_vlm", "vqa")

    assert 0 == found.status
    assert str(found).startswith(
        "- models.x: vLLM 1 serves m; known calls were not compared: returned no log-"
    )


def test_a_model_without_known_calls_has_none_in_its_finding():
    """A question LLM is only found among the server's models."""
    assert "✓ models.x: vLLM 1 serves m" == str(known_calls_of(Server(), "openai", "questions"))
