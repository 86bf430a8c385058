"""How many cores a process computes with."""

import os
import subprocess
import sys

LOADED = """
from service.serving.batcher.device import all_cores
from service.serving.loading import load_models
from service.core.settings.tree import Settings

table = {"family": "clip_flant5", "checkpoint": "demo:clip_flant5"}
load_models(Settings.model_validate({"models": {"vqa": table}}))
import torch

print(all_cores(), torch.get_num_threads())
"""


def test_a_process_that_had_to_import_torch_first_knows_all_of_its_cores():
    """And the thread that loaded its models computes with one of them."""
    said = subprocess.run(
        [sys.executable, "-c", LOADED],
        env=os.environ | {"OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "2 1" == said.stdout.strip()
