"""
Clients that call as the trainers do: their libraries, retries, timeouts and ways of reading an answer.

What they pickle was compared with what these send, byte by byte: flow_grpo's functions at ac4c86e,
reward-server's test of GenEval at 92ac29f, and deepgen_rl's `create_payload` at c4d5dc2.  Bodies are
those of cosmos-rl at 89f2e5b, of OpenRLHF at 3c3be62, and of slime at 624b824.
"""

import asyncio
import io
import json
import pickle
import time
from collections.abc import Iterator, Sequence
from typing import Any

import aiohttp
import numpy as np
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from demo.process import url
from tests.support.pictures import b64

Pair = tuple[bytes, str]


class Failed(Exception):
    """What ends a rank."""


AT_ONCE = 64  # pictures in a request of flow_grpo


def unifiedreward_bodies(pairs: Sequence[Pair]) -> Iterator[dict[str, Any]]:
    """What flow_grpo's `unifiedreward_score_remote` pickles: its prompts are an array of NumPy's."""
    prompts = np.array_split([prompt for _, prompt in pairs], np.ceil(len(pairs) / AT_ONCE))
    for batch, own in zip(batches([picture for picture, _ in pairs]), prompts, strict=True):
        yield {"images": batch, "prompts": own}


def deqa_bodies(pictures: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """What its `deqa_score_remote` pickles: pictures alone."""
    for batch in batches(pictures):
        yield {"images": batch}


def geneval_bodies(
    pictures: Sequence[bytes], metadatas: Sequence[dict[str, Any]], only_strict: bool
) -> Iterator[dict[str, Any]]:
    """What its `geneval_score` pickles: no prompts, and a line of GenEval's metadata for each picture."""
    lines = np.array_split(metadatas, np.ceil(len(metadatas) / AT_ONCE))
    for batch, own in zip(batches(pictures), lines, strict=True):
        yield {"images": batch, "meta_datas": list(own), "only_strict": only_strict}


def batches(pictures: Sequence[bytes]) -> Iterator[list[bytes]]:
    """As NumPy splits an array of so many: none is larger than another by more than one."""
    for numbers in np.array_split(np.arange(len(pictures)), np.ceil(len(pictures) / AT_ONCE)):
        yield [pictures[number] for number in numbers]


def deepgen_body(
    pictures: Sequence[bytes], prompts: Sequence[str], metadata: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What deepgen_rl's `create_payload` pickles; `gen_eval` has its lines in the metadata."""
    return {"images": list(pictures), "prompts": list(prompts), "metadata": metadata or {}}


def flow_grpo(port: int, pairs: Sequence[Pair]) -> list[float]:
    """`unifiedreward_score_remote`.  Reads the pickle of whatever comes back, as all of its functions do."""
    scores: list[float] = []
    with flow_grpo_session() as session:
        for body in unifiedreward_bodies(pairs):
            answer = session.post(url(port), data=pickle.dumps(body), timeout=120)
            scores += pickle.loads(answer.content)["outputs"]
    return scores


def flow_grpo_session() -> requests.Session:
    """Waits for what urllib3's retries wait for."""
    session = requests.Session()
    session.trust_env = False
    retries = Retry(total=1000, backoff_factor=1, status_forcelist=[500], allowed_methods=False)
    session.mount("http://", HTTPAdapter(max_retries=retries))
    return session


def ddpo(port: int, pairs: Sequence[Pair]) -> list[float]:
    """The comparison of texts; the recall is the reward."""
    with flow_grpo_session() as session:
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
    body = deepgen_body(*zip(*pairs, strict=True))
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


QUESTION = "Describe the picture: "


def openrlhf(port: int, pairs: Sequence[Pair]) -> list[float]:
    """One sample a request, all at once; five tries whatever the error is."""
    bodies = [
        {"query": [f"{QUESTION}{prompt}</s>"], "prompts": [QUESTION], "labels": [uri(picture)]}
        for picture, prompt in pairs
    ]
    found = asyncio.run(posted(f"{url(port)}/get_reward", bodies, timeout_s=180, tries=5))
    return [each["rewards"][0] for each in found]


def slime(port: int, pairs: Sequence[Pair]) -> list[float]:
    """One sample a request, over at most 64 connections; ten tries, and the body is the reward."""
    bodies = [{"prompt": QUESTION, "response": prompt, "label": uri(picture)} for picture, prompt in pairs]
    return asyncio.run(posted(f"{url(port)}/remote_rm", bodies, timeout_s=120, tries=10))


def uri(picture: bytes) -> str:
    """A picture as a label of a dataset holds it."""
    return f"data:image/png;base64,{b64(picture)}"


async def posted(address: str, bodies: Sequence[dict[str, Any]], timeout_s: float, tries: int) -> list[Any]:
    """The JSON of each answer.  Raises `Failed` after the last try."""
    connector, timeout = aiohttp.TCPConnector(limit=64), aiohttp.ClientTimeout(total=timeout_s)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:

        async def one(body: dict[str, Any]) -> Any:
            for attempt in range(tries):
                async with session.post(address, json=body) as answer:
                    if answer.ok:
                        return await answer.json()
                    text = await answer.text()
                await asyncio.sleep(min(2**attempt, 30))
            raise Failed(text)

        return await asyncio.gather(*map(one, bodies))


def cosmos_rl(
    port: int, media: bytes, prompts: Sequence[str], *, kind: str = "image", reward: str = "vqascore"
) -> list[float]:
    """Enqueues once, and pulls until the status is 200; anything but lists of scores is an error."""
    task = {"media_type": kind, "prompts": list(prompts), "reward_fn": {reward: 1.0}}
    headers = {"Authorization": "Bearer "}
    with requests.Session() as session:
        session.trust_env = False
        body = json.dumps(task).encode("utf-8") + b"\n" + media
        octets = headers | {"Content-Type": "application/octet-stream"}
        answer = session.post(f"{url(port)}/api/reward/enqueue", data=body, headers=octets, timeout=60)
        answer.raise_for_status()
        form = {"uuid": answer.json()["uuid"], "type": reward}
        for _ in range(600):
            answer = session.post(f"{url(port)}/api/reward/pull", data=form, headers=headers, timeout=10)
            if answer.status_code == 200:
                break
            time.sleep(0.05)
    found = answer.json()
    if not isinstance(found.get("scores"), dict):
        raise Failed(str(found))
    return list(found["scores"][reward])


def npy(array: np.ndarray[Any, Any]) -> bytes:
    """A file as `numpy.save` writes it."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


PICKLED = {"flow_grpo": flow_grpo, "ddpo": ddpo, "deepgen_rl": deepgen_rl, "verl_omni": verl_omni}
OVER_HTTP = {
    "flow_factory": flow_factory,
    "unirl": unirl,
    "openrlhf": openrlhf,
    "slime": slime,
    "rerank": reranker,
}
