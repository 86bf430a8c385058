"""docs/trainers/: what the pages have people paste works as it stands."""

import asyncio
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
import yaml

from scoregate.trainers.reward import Reward
from tests.process.client.trainers.standins import (
    MultiVisualRewardManager,
    RewardArguments,
    flow_factory,
    multi_score,
    pointwise_rewards,
    trl_rewards,
)
from tests.support.packages import files_of

IMAGES = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
PROMPTS = ["a red square"] * 4


@pytest.fixture
def pasted(tmp_path, monkeypatch, here):
    """The code of a page, imported from a file of the name that the page gives it."""

    def load(page: str, file: str) -> ModuleType:
        (tmp_path / file).write_text(files_of(f"trainers/{page}")[file], "utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, Path(file).stem, raising=False)
        return importlib.import_module(Path(file).stem)

    return load


@pytest.fixture
def expected(here) -> Any:
    """The scores of the pictures, with the settings that are given."""
    return lambda *metric, **settings: list(Reward(*metric, **settings)(IMAGES, PROMPTS))


def test_flow_grpo_finds_the_rewards_in_its_dictionary(pasted, expected):
    """Each by its name."""
    functions = pasted("flow-grpo.md", "rewards.py").score_functions
    scores = {
        "vqascore": expected(),
        "vqascore_eval": expected(logit=False),
        "clipscore": expected("clipscore"),
    }

    assert functions.keys() == scores.keys()
    for name, found in scores.items():
        logged, _ = multi_score("cuda", {name: 0.1}, functions)(IMAGES, PROMPTS, [{}] * 4)
        assert [0.1 * score for score in found] == logged["avg"]


def test_flow_grpo_logs_each_metric_of_one_request(pasted, expected):
    """The reward function that takes the place of its own."""
    logged, _ = pasted("flow-grpo.md", "multi.py").reward_fn(IMAGES, PROMPTS, [{}] * 4)

    assert expected("clipscore") == logged["clipscore"]
    assert expected() == logged["vqascore"]


def test_ddpo_takes_the_function_itself(pasted, expected):
    """A tensor of the batch, a tuple of prompts, and what goes with them."""
    scores, info = pasted("flow-grpo.md", "reward_fn.py").reward_fn(IMAGES, tuple(PROMPTS), tuple([{}] * 4))

    assert expected() == torch.as_tensor(scores, dtype=torch.float64).tolist()
    assert {"vqascore": scores} == info


def test_verl_omni_finds_the_function_by_its_keys(expected, here):
    """The overrides of the launch script, with the service's real address."""
    prefix = "+reward.reward_functions.vqascore."
    lines = files_of("trainers/verl-omni.md")["launch.sh"].splitlines()
    keys = dict(line.removeprefix(prefix).split("=", 1) for line in lines if line.startswith(prefix))
    given = yaml.safe_load("\n".join(f"{name}: {value}" for name, value in keys.items()))
    module = importlib.import_module(given.pop("path").removeprefix("pkg://"))
    function = getattr(module, given.pop("name"))
    assert 1.0 == given.pop("weight")
    manager = MultiVisualRewardManager(function, **{**given, "server_url": here})
    images = (IMAGES * 255).round().to(torch.uint8)

    assert manager.required
    assert expected() == asyncio.run(manager.run(list(zip(images, PROMPTS, strict=True))))


def test_flow_factory_finds_the_class_by_the_yaml(expected, here, monkeypatch):
    """Its path, and settings that the class takes."""
    for name, module in flow_factory().items():
        monkeypatch.setitem(sys.modules, name, module)
    [entry] = yaml.safe_load(files_of("trainers/flow-factory.md")["rewards.yaml"])["rewards"]
    module, _, name = entry.pop("reward_model").rpartition(".")
    found = getattr(importlib.import_module(module), name)
    monkeypatch.delitem(sys.modules, module)
    config = RewardArguments(**{**entry, "base_url": here})
    model = found(config=config, accelerator=SimpleNamespace(device=torch.device("cpu")))
    samples = [{"prompt": prompt, "image": image} for image, prompt in zip(IMAGES, PROMPTS, strict=True)]

    assert torch.tensor(expected()).tolist() == pointwise_rewards(model, samples).tolist()
    assert 300 == model.reward.timeout_s


@pytest.mark.parametrize("file", ["rewards.py", "masked.py"])
def test_trl_takes_the_reward_function(pasted, expected, file):
    """With the pictures in a column."""
    reward = pasted("trl.md", file).reward
    rows = [{"prompt": prompt, "pictures": image} for image, prompt in zip(IMAGES, PROMPTS, strict=True)]
    rewards = trl_rewards([reward], rows, [""] * 4)

    assert torch.tensor(expected()).tolist() == rewards.tolist()


def test_pictures_of_a_pipeline_are_picked(pasted, expected):
    """The best of several, and those that pass."""
    pick = pasted("diffusers.md", "pick.py")
    scores = expected(logit=False)
    best = scores.index(max(scores))

    def pipe(prompt: Any, num_images_per_prompt: int = 1) -> Any:
        """A stand-in for a pipeline: it returns the same pictures, in tensors."""
        return SimpleNamespace(images=IMAGES)

    assert (pick.best(pipe, PROMPTS[0]) == IMAGES[best]).all()
    [shown] = pick.shown(pipe, PROMPTS, max(scores))
    assert (shown == IMAGES[best]).all()


def test_the_folder_of_the_nodes_is_where_the_page_links_to(tmp_path):
    """The second line of the installation, in a ComfyUI folder."""
    link = files_of("trainers/comfyui.md")["install.sh"].splitlines()[1]
    (tmp_path / "custom_nodes").mkdir()
    python = f'python() {{ {sys.executable} "$@"; }}\n'
    subprocess.run(["bash", "-euc", python + link], cwd=tmp_path, check=True)

    assert "NODE_CLASS_MAPPINGS" in (tmp_path / "custom_nodes/scoregate/__init__.py").read_text("utf-8")
