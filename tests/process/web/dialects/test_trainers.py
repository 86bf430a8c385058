"""The service on real sockets, called as the trainers call it."""

import base64
import io
import json
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import PIL.Image
import pytest

from demo.process import free_port, url
from loadtest.workloads import Spec, plan
from service.images.arrays import bmp
from tests.app.web.dialects.conftest import BROKEN, PICTURES, PROMPTS
from tests.process.web.dialects.trainers import OVER_HTTP, PICKLED, Failed, cosmos_rl, npy
from tests.support.double import faulty
from tests.support.films import mp4
from tests.support.pictures import b64
from tests.support.raw import calling
from tests.support.service import until

JSON = {"Content-Type": "application/json"}
TRAINERS = {**PICKLED, **OVER_HTTP}
SCALES = {"rl-burst": 1 / 16, "rl-group": 1 / 8, "rl-large": 1 / 16}


def ask(fake_service, trainer, pairs):
    """What the *trainer* of that name makes of the answer."""
    return TRAINERS[trainer](fake_service.pickled if trainer in PICKLED else fake_service.private, pairs)


def expected(fake_service, body):
    """What `POST /score` says."""
    answer = httpx.post(
        f"{url(fake_service.main)}/score", content=body, headers=JSON, timeout=120, trust_env=False
    )
    return [result["scores"]["vqascore"] for result in answer.json()["results"]]


@pytest.fixture(scope="module", params=SCALES)
def load(request, fake_service):
    """A load's requests as pairs of picture and prompt, and the scores that `POST /score` gives them."""
    bodies = [each.body for each in plan(Spec(request.param, scale=SCALES[request.param])).arrivals]
    items = [json.loads(body)["items"] for body in bodies]
    pairs = [[(base64.b64decode(item["image"]), item["prompt"]) for item in each] for each in items]
    return pairs, [expected(fake_service, body) for body in bodies]


@pytest.mark.parametrize("trainer", TRAINERS)
def test_the_loads_of_trainers_are_answered_without_an_error(fake_service, trainer, load):
    """Whole bursts at once, smaller than they are; every score is the one that the service gives."""
    pairs, scores = load
    with ThreadPoolExecutor(len(pairs)) as pool:
        assert scores == [*pool.map(partial(ask, fake_service, trainer), pairs)]


def test_what_is_no_http_gets_a_pickle_on_the_port_for_pickles(fake_service):
    """Its clients read the pickle of every answer, of one before a request has a path too."""
    with calling(fake_service.pickled) as [caller]:
        answer = caller.send(b"\0\0\r\n\r\n").answer()

    assert (400, "malformed") == (answer.status, pickle.loads(answer.body)["code"])


PAIRS = [*zip(PICTURES, PROMPTS, strict=True)]


@pytest.mark.parametrize("trainer", ["verl_omni", "flow_factory", "unirl"])
def test_what_is_wrong_with_a_picture_is_what_the_trainer_tells(fake_service, trainer):
    with pytest.raises(Failed, match=r"undecodable|no image|cut|trunc"):
        ask(fake_service, trainer, [*PAIRS, (BROKEN, "a")])


@pytest.mark.parametrize("trainer", ["flow_grpo", "ddpo", "deepgen_rl", "rerank"])
def test_trainers_that_read_no_texts_get_no_numbers_and_do_not_wait(fake_service, trainer):
    with pytest.raises(Exception, match=r"outputs|precision|recall|422"):
        ask(fake_service, trainer, [(BROKEN, "a")])


def test_cosmos_rl_has_scores_of_pictures_and_of_videos(fake_service):
    """Arrays of pixels, and an MP4 file; each has the scores that the service gives the same pixels."""
    array = np.stack([np.asarray(PIL.Image.open(io.BytesIO(picture)).convert("RGB")) for picture in PICTURES])
    film = mp4()
    files = [*map(bmp, array), film]
    items = [
        {"prompt": prompt, "image": b64(file)} for prompt, file in zip([*PROMPTS, "a"], files, strict=True)
    ]
    expected_scores = expected(fake_service, json.dumps({"items": items}))
    port = fake_service.private

    assert expected_scores[:4] == cosmos_rl(port, npy(array), PROMPTS)
    assert expected_scores[4:] == cosmos_rl(port, film, ["a"], kind="video")
    with pytest.raises(Failed, match="decoder"):
        cosmos_rl(port, npy(np.zeros((1, 16, 2, 4, 4), np.float16)), ["a"], kind="latent")


def test_the_ports_are_bound_to_this_machine_alone(fake_service):
    """Unless another address is set."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text("utf-8").splitlines()[1:]]
    listening = {local for _, local, _, state, *_ in lines if state == "0A"}

    assert {f"0100007F:{port:04X}" for port in (fake_service.private, fake_service.pickled)} <= listening


def test_sigterm_answers_what_has_come_on_the_dialects_ports(tmp_path):
    """What waits there is answered, and then the process ends with status 0."""
    private, pickled = free_port(0), free_port(0)
    settings = {
        "SCOREGATE_DIALECTS__ENABLED": '["flow_factory"]',
        "SCOREGATE_DIALECTS__PORT": str(private),
        "SCOREGATE_DIALECTS__PICKLE_PORT": str(pickled),
    }
    with faulty(tmp_path, **settings) as double, ThreadPoolExecutor(2) as pool:
        runs = pool.submit(TRAINERS["flow_grpo"], pickled, [(PICTURES[0], "held")])
        until(double.is_held)
        waits = pool.submit(TRAINERS["flow_factory"], private, PAIRS[1:2])
        until(lambda: double.instrument(DEPTH) == 1)
        double.process.send_signal(signal.SIGTERM)
        until(lambda: not double.accepts())
        double.release()
        scores = [runs.result(), waits.result()]
        status = double.process.wait(60)

    assert [1, 1] == [len(each) for each in scores]
    assert 0 == status


DEPTH = 'scoregate_queue_depth{lane="bulk",model="vqa"}'
