"""Clients that call as the trainers do: their libraries, retries, timeouts and ways of reading an answer."""

import asyncio
import pickle
from collections.abc import Sequence

import aiohttp
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from demo.process import url
from tests.conftest import b64

Pair = tuple[bytes, str]


class Failed(Exception):
    """What ends a rank."""


def flow_grpo(port: int, pairs: Sequence[Pair]) -> list[float]:
    """Reads the pickle of whatever comes back, and waits for what urllib3's retries wait for."""
    with requests.Session() as session:
        session.trust_env = False
        retries = Retry(total=1000, backoff_factor=1, status_forcelist=[500], allowed_methods=False)
        session.mount("http://", HTTPAdapter(max_retries=retries))
        body = {"images": [picture for picture, _ in pairs], "prompts": [prompt for _, prompt in pairs]}
        answer = session.post(url(port), data=pickle.dumps(body), timeout=120)
        return list(pickle.loads(answer.content)["outputs"])


def ddpo(port: int, pairs: Sequence[Pair]) -> list[float]:
    """The comparison of texts; the recall is the reward."""
    with requests.Session() as session:
        session.trust_env = False
        retries = Retry(total=1000, backoff_factor=1, status_forcelist=[500], allowed_methods=False)
        session.mount("http://", HTTPAdapter(max_retries=retries))
        body = {
            "images": [picture for picture, _ in pairs],
            "queries": [["Answer concisely: what is going on in this image?"]] * len(pairs),
            "answers": [[f"The image contains {prompt}"] for _, prompt in pairs],
        }
        answer = pickle.loads(session.post(url(port), data=pickle.dumps(body), timeout=120).content)
        assert all(len(answer[name]) == len(pairs) for name in ("precision", "f1", "outputs"))
        return list(answer["recall"])


def deepgen_rl(port: int, pairs: Sequence[Pair]) -> list[float]:
    """No retries; a status of 400 or more is an error, and so is `error`."""
    body = {"images": [one for one, _ in pairs], "prompts": [prompt for _, prompt in pairs], "metadata": {}}
    with requests.Session() as session:
        session.trust_env = False
        answer = session.post(f"{url(port)}/", data=pickle.dumps(body), timeout=600)
    answer.raise_for_status()
    found = pickle.loads(answer.content)
    if "error" in found:
        raise Failed(found["error"])
    return list(found["scores"])


def verl_omni(port: int, pairs: Sequence[Pair]) -> list[float]:
    """One picture a request, all at once over at most 100 connections; three tries within 1.5 s."""

    async def all_of_them() -> list[float]:
        timeout = aiohttp.ClientTimeout(total=120)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            return await asyncio.gather(*(verl_omni_score(session, url(port), *pair) for pair in pairs))

    return asyncio.run(all_of_them())


async def verl_omni_score(session: aiohttp.ClientSession, address: str, picture: bytes, prompt: str) -> float:
    """Reads the text of an error from its pickle; anything that pickle chokes on in another way escapes."""
    body = pickle.dumps({"images": [picture], "prompts": [prompt], "metadata": {}})
    for attempt in range(3):
        async with session.post(address, data=body) as answer:
            content = await answer.read()
            if answer.status == 200:
                found = pickle.loads(content)
                if "error" in found or not found.get("scores"):
                    raise Failed(str(found))
                return float(found["scores"][0])
            try:
                text = str(pickle.loads(content)["error"])
            except (pickle.UnpicklingError, EOFError):
                text = content.decode("utf-8", "replace")
            if answer.status not in (408, 429) and answer.status < 500:
                raise Failed(f"{answer.status}: {text}")
        await asyncio.sleep(0.5 * 2**attempt)
    raise Failed(text)


def flow_factory(port: int, pairs: Sequence[Pair]) -> list[float]:
    """`/health` first; three tries at once after every status but 200."""
    nothing = {"video": None, "condition_images": None, "condition_videos": None, "kwargs": None}
    body = {
        "prompt": [prompt for _, prompt in pairs],
        "image": [b64(picture) for picture, _ in pairs],
        **nothing,
    }
    with requests.Session() as session:
        session.trust_env = False
        if not session.get(f"{url(port)}/health", timeout=5).ok:
            raise Failed("health")
        for attempt in range(3):
            try:
                answer = session.post(f"{url(port)}/compute", json=body, timeout=60)
                answer.raise_for_status()
                found = answer.json()
            except requests.RequestException as exc:
                if attempt == 2:
                    raise Failed(str(exc)) from exc
                continue
            if found.get("error"):
                raise Failed(found["error"])
            return list(found["rewards"])
    raise AssertionError


def unirl(port: int, pairs: Sequence[Pair], reward: str = "vqascore") -> list[float]:
    """The roster first; a picture without a score is an error."""
    entries = [
        {
            "history": [{"text": prompt, "image_b64": b64(picture)}],
            "required_rewards": [reward],
            "metadata": None,
            "request_id": str(number),
        }
        for number, (picture, prompt) in enumerate(pairs)
    ]
    with requests.Session() as session:
        session.trust_env = False
        roster = session.get(f"{url(port)}/unirl/health", timeout=5).json()["rewards"]
        if reward not in roster:
            raise Failed(f"{reward} is not served")
        body = {"protocol_version": "1", "requests": entries}
        answer = session.post(f"{url(port)}/unirl/score", json=body, timeout=300)
        answer.raise_for_status()
        found = answer.json()
    assert [entry["request_id"] for entry in found["identities"]] == [
        entry["request_id"] for entry in entries
    ]
    if errors := [error for error in found["errors"] if error]:
        raise Failed(str(errors))
    return [next(iter(result[reward].values())) for result in found["results"]]


def reranker(port: int, pairs: Sequence[Pair]) -> list[float]:
    """Pairs, as vLLM's clients send them."""
    body = {"text_1": [prompt for _, prompt in pairs], "text_2": [b64(picture) for picture, _ in pairs]}
    with requests.Session() as session:
        session.trust_env = False
        answer = session.post(f"{url(port)}/v1/score", json=body, timeout=120)
    answer.raise_for_status()
    return [entry["score"] for entry in answer.json()["data"]]


PICKLED = {"flow_grpo": flow_grpo, "ddpo": ddpo, "deepgen_rl": deepgen_rl, "verl_omni": verl_omni}
OVER_HTTP = {"flow_factory": flow_factory, "unirl": unirl, "rerank": reranker}
