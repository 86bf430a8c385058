"""The real TRL and diffusers, with the code that their pages have people paste."""

import json
import math
from pathlib import Path

import pytest

from tests.support import clients
from tests.support.packages import files_of
from tests.support.paths import ROOT

FOLDER = Path(__file__).parent


@pytest.fixture
def told(service, tmp_path):
    """What a script said as JSON of the code of a page."""

    def tell(script, page, *arguments):
        for name, text in files_of(f"trainers/{page}").items():
            (tmp_path / name).write_text(text, "utf-8")
        environment = [f"SCOREGATE_BASE_URL={service.url}", "HF_HUB_OFFLINE=1", f"PYTHONPATH={ROOT}"]
        ran = clients.run(
            "env", *environment, clients.program(), FOLDER / script, tmp_path, *arguments, cwd=tmp_path
        )
        assert 0 == ran.returncode, ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])

    return tell


def test_pictures_of_a_real_pipeline_are_picked(told):
    """The best of four in every output type, and those that pass."""
    found = told("pipeline.py", "diffusers.md")
    best = max(range(4), key=found["scores"].__getitem__)

    assert best == found["best"]
    assert {"pil": best, "np": best, "pt": best} == found["by_type"]
    assert 2 == found["shown"]


def test_a_real_trainer_takes_the_rewards_of_the_page(told):
    """The mean that it logs is that of the log-odds of its pictures, masked or not."""
    found = told("training.py", "trl.md", "pictures")

    assert math.isclose(found["expected"], found["rewards"], rel_tol=1e-5)
    assert math.isclose(found["expected"], found["masked"], rel_tol=1e-5)
