"""The real TRL and diffusers, with the code that their pages have people paste."""

import json
import math
from pathlib import Path

import pytest

from tests.support import clients
from tests.support.packages import files_of
from tests.support.paths import ROOT

SCRIPT = Path(__file__).with_name("pasted.py")


@pytest.fixture(scope="module")
def found(service, tmp_path_factory):
    """What `pasted.py` said of the code of the pages."""
    folder = tmp_path_factory.mktemp("pasted")
    files = files_of("trainers/diffusers.md") | files_of("trainers/trl.md")
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    environment = [f"SCOREGATE_BASE_URL={service.url}", "HF_HUB_OFFLINE=1", f"PYTHONPATH={ROOT}"]
    ran = clients.run("env", *environment, clients.program(), SCRIPT, folder, cwd=folder)
    assert 0 == ran.returncode, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_pictures_of_a_real_pipeline_are_picked(found):
    """The best of four in every output type, and those that pass."""
    picked = found["diffusers"]
    best = max(range(4), key=picked["scores"].__getitem__)

    assert best == picked["best"]
    assert {"pil": best, "np": best, "pt": best} == picked["by_type"]
    assert 2 == picked["shown"]


def test_a_real_trainer_takes_the_rewards_of_the_page(found):
    """The mean that it logs is that of the log-odds of its pictures, masked or not."""
    rewarded = found["trl"]

    assert math.isclose(rewarded["expected"], rewarded["rewards"], rel_tol=1e-5)
    assert math.isclose(rewarded["expected"], rewarded["masked"], rel_tol=1e-5)
