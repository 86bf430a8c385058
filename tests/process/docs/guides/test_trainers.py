"""docs/trainers/README.md: its programs, with the demo models and a stand-in for a pipeline."""

import json
import re
import runpy
from types import SimpleNamespace

import pytest
import torch

import scoregate
from scoregate.trainers import Reward
from tests.support.packages import files_of
from tests.support.pages import fences
from tests.support.paths import ROOT

PAGE = "trainers/README.md"
PROFILE = str(ROOT / "loadtest" / "fake.toml")


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """A store of question sets."""
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")


@pytest.fixture
def program(tmp_path):
    """Run a program of the page; its names."""

    def program(name):
        (tmp_path / name).write_text(files_of(PAGE)[name], "utf-8")
        return runpy.run_path(str(tmp_path / name))

    return program


@pytest.mark.filterwarnings("ignore::scoregate.ScoregateWarning")  # they are demo models
def test_the_first_program_prints_the_rewards_of_the_page(program, monkeypatch, capsys):
    """By the demo models, which run in this process."""
    monkeypatch.chdir(ROOT)
    program("first.py")["client"].close()
    [(_, shown)] = fences(PAGE, "text")

    assert json.loads(capsys.readouterr().out) == pytest.approx(
        [float(number) for number in re.findall(r"-?[\d.]+(?=…)", shown)], abs=0.001
    )


def test_a_rollout_has_the_rewards_of_each_prompts_own_pictures(program):
    """In the order of a pipeline; a picture with a NaN has none."""

    def pipe(prompts, num_images_per_prompt, output_type):
        assert "pt" == output_type
        images = torch.rand(len(prompts) * num_images_per_prompt, 3, 8, 8)
        images[-1, 0, 0, 0] = torch.nan
        return SimpleNamespace(images=images)

    with scoregate.load(PROFILE) as gate:
        reward = Reward("vqascore", client=gate)
        images, rewards = program("rollout.py")["rollout"](pipe, ["a cat", "a dog"], reward, group=3)
        alone = [
            gate.score_items([(image, "a dog")], options={"vqascore": {"output": "logit"}})
            for image in (images[3:5] * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
        ]

    assert [False] * 5 + [True] == [isinstance(one, scoregate.ScoregateError) for one in rewards]
    assert [each[0].scores["vqascore"] for each in alone] == pytest.approx(rewards[3:5], abs=1e-5)
