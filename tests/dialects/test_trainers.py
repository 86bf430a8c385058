"""The service on real sockets, called as the trainers call it."""

import base64
import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest

from demo.process import HOST, free_port, running, url, wait_until_ready
from loadtest.workloads.named import plan
from loadtest.workloads.spec import Spec
from tests.dialects.conftest import BROKEN, COMMAND, PICTURES, PROMPTS
from tests.dialects.trainers import OVER_HTTP, PICKLED, Failed
from tests.support.service import series, until

pytestmark = pytest.mark.integration

JSON = {"Content-Type": "application/json"}
TRAINERS = {**PICKLED, **OVER_HTTP}
SCALES = {"rl-burst": 1 / 16, "rl-group": 1 / 8, "rl-large": 1 / 16}


def ask(real, trainer, pairs):
    """What the *trainer* of that name makes of the answer."""
    return TRAINERS[trainer](real.pickled if trainer in PICKLED else real.private, pairs)


def expected(real, body):
    """What `POST /score` says."""
    answer = httpx.post(f"{url(real.main)}/score", content=body, headers=JSON, timeout=120, trust_env=False)
    return [result["scores"]["vqascore"] for result in answer.json()["results"]]


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("workload", SCALES)
def test_the_loads_of_trainers_are_answered_without_an_error(real, trainer, workload):
    """Whole bursts at once, smaller than they are; every score is the one that the service gives."""
    requests = plan(Spec(workload, scale=SCALES[workload])).arrivals
    bodies = [json.loads(request.body)["items"] for request in requests]
    pairs = [[(base64.b64decode(item["image"]), item["prompt"]) for item in body] for body in bodies]
    with ThreadPoolExecutor(len(pairs)) as pool:
        scores = [*pool.map(partial(ask, real, trainer), pairs)]

    assert [expected(real, request.body) for request in requests] == scores


PAIRS = [*zip(PICTURES, PROMPTS, strict=True)]


@pytest.mark.parametrize("trainer", ["verl_omni", "flow_factory", "unirl"])
def test_what_is_wrong_with_a_picture_is_what_the_trainer_tells(real, trainer):
    with pytest.raises(Failed, match=r"undecodable|no image|cut|trunc"):
        ask(real, trainer, [*PAIRS, (BROKEN, "a")])


@pytest.mark.parametrize("trainer", ["flow_grpo", "ddpo", "deepgen_rl", "rerank"])
def test_trainers_that_read_no_texts_get_no_numbers_and_do_not_wait(real, trainer):
    with pytest.raises(Exception, match=r"outputs|precision|recall|422"):
        ask(real, trainer, [(BROKEN, "a")])


def test_the_ports_are_bound_to_this_machine_alone(real):
    """Unless another address is set."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text("utf-8").splitlines()[1:]]
    listening = {local for _, local, _, state, *_ in lines if state == "0A"}

    assert {f"0100007F:{port:04X}" for port in (real.private, real.pickled)} <= listening


@pytest.mark.parametrize("setting", ["dialects.port", "dialects.pickle_port"])
def test_a_port_that_is_taken_ends_the_start_in_one_line(real, tmp_path, setting):
    ports = {"dialects.port": str(free_port(0)), "dialects.pickle_port": str(free_port(0))}
    ports[setting] = str(real.pickled)
    done = subprocess.run(
        [
            "env",
            f"SCOREGATE_CACHE__QUESTIONS=sqlite:///{tmp_path}/q.sqlite3",
            f"SCOREGATE_SERVER__PORT={free_port(0)}",
            'SCOREGATE_DIALECTS__ENABLED=["unirl"]',
            *(f"SCOREGATE_{name.upper().replace('.', '__')}={port}" for name, port in ports.items()),
            *COMMAND,
        ],
        capture_output=True,
        text=True,
        timeout=240,
    )
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]

    assert os.EX_TEMPFAIL == done.returncode
    assert [
        f"scoregate-server: {setting}: cannot listen on {HOST}:{real.pickled}: Address already in use"
    ] == lines


def test_sigterm_answers_what_has_come_on_the_dialects_ports(tmp_path):
    """What waits there is answered, and then the process ends with status 0."""
    port, private, pickled = free_port(0), free_port(0), free_port(0)
    settings = {
        "SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{tmp_path}/q.sqlite3",
        "SCOREGATE_DIALECTS__ENABLED": '["flow_factory"]',
        "SCOREGATE_DIALECTS__PORT": str(private),
        "SCOREGATE_DIALECTS__PICKLE_PORT": str(pickled),
        "SCOREGATE_MODELS__VQA__FIXED_MS": "4000",
    }
    with (
        running(port, COMMAND, tmp_path / "stderr", **settings) as process,
        ThreadPoolExecutor(2) as pool,
    ):
        wait_until_ready(process, port)
        runs = pool.submit(TRAINERS["flow_grpo"], pickled, PAIRS[:1])
        until(lambda: series(port, "scoregate_pixels_held_bytes") > 0 and series(port, DEPTH) == 0)
        waits = pool.submit(TRAINERS["flow_factory"], private, PAIRS[1:2])
        until(lambda: series(port, DEPTH) == 1)
        process.send_signal(signal.SIGTERM)
        scores = [runs.result(), waits.result()]
        status = process.wait(60)

    assert [1, 1] == [len(each) for each in scores]
    assert 0 == status


DEPTH = 'scoregate_queue_depth{lane="bulk",model="vqa"}'
