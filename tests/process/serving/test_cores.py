"""How many cores a process computes with, and what its threads take while they wait for each other."""

import json
import os
import subprocess
import sys

import pytest

LOADED = """
import json, os, time
from service.serving.batcher.device import all_cores
from service.serving.loading import load_models
from service.core.settings.tree import Settings

table = {"family": "clip_flant5", "checkpoint": "demo:clip_flant5"}
model = load_models(Settings.model_validate({"models": {"vqa": table}}))["vqa"]
import torch

found = {"threads": [all_cores(), torch.get_num_threads()]}
example = [model.prepare(model.example())]


def cpu_s(threads):
    torch.set_num_threads(threads)
    model.score(example)
    before = time.process_time()
    for _ in range(10):
        model.score(example)
    return time.process_time() - before


os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # of threads that start from now on, too
found["cpu_s"] = [cpu_s(1), cpu_s(2)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    """Return what a process says that had to import torch first, whose two threads share a core at last."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env=os.environ | {"OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_a_process_that_had_to_import_torch_first_knows_all_of_its_cores(found):
    """And the thread that loaded its models computes with one of them."""
    assert [2, 1] == found["threads"]


def test_threads_that_wait_for_each_other_sleep_soon(found):
    """On a core that they share each step would otherwise wait until a thread has spun long enough."""
    alone_s, both_s = found["cpu_s"]

    assert both_s < 8 * alone_s
