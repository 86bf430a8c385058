"""The documents state the memory that is predicted for a GPU without one."""

import re
from dataclasses import replace
from functools import cache
from math import ceil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import CLIPVisionConfig, T5Config

from benchmarks.work import text_work, vision_work
from models.core.family import Memory, Plan
from models.core.settings import Batch
from models.families.clip_flant5.memory import ANSWER
from models.families.clip_flant5.published import XL, XXL
from models.families.clip_flant5.tower import VIT_L_14_336
from models.families.nli.model import Nli
from models.families.nli.plan import full_batches as nli_batches
from models.families.question_llm.model import QuestionLLM
from models.families.question_llm.plan import largest
from models.families.registry import families
from models.sizing.memory import measured
from service.core.settings.tree import Settings
from service.process.check import described, plans
from service.process.launching import batch_ms, gpus_of_one_process
from service.wiring.load import load_settings
from tests.support import real_sizes
from tests.support.pages import rows, section
from tests.support.paths import ROOT
from tests.support.predicted import memory

PROFILES = ROOT / "deploy" / "profiles"
EIGHT = "gpu-8x80gb"


@pytest.fixture(autouse=True)
def eight_gpus(monkeypatch):
    """What `devices = "all"` finds."""
    monkeypatch.setattr("models.core.copies.gpu_count", lambda: 8)


def gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


@cache
def planned(path: Path) -> tuple[Settings, dict[str, Plan]]:
    """A profile's settings, and what it would load."""
    settings = load_settings(path, {})
    return settings, plans(settings)


def of_profile(profile: str) -> dict[str, Memory]:
    """What each of a profile's own models takes."""
    settings, planned_here = planned(PROFILES / f"{profile}.toml")
    own = {name for name, table in settings.models.items() if table.model_fields_set & {"device", "devices"}}
    found = {name: plan.memory for name, plan in planned_here.items() if name in own and plan.memory}
    assert own == found.keys()
    return found


def without_features(found: Memory) -> Memory:
    """The cache of features has the default size in both profiles."""
    return replace(found, activations=found.activations - 256 * 2**20)


def clip(name: str, file: Path) -> Memory:
    found = memory("open_clip", model=name, pretrained=str(file))
    assert found
    return found


def nli(directory: Path, batch: Batch) -> Memory:
    def load() -> Nli:
        return Nli(directory, dtype="bfloat16", device="cuda", revision="-")

    return measured("cuda", load, lambda model: nli_batches(model, batch))


def question_llm(directory: Path) -> Memory:
    def load() -> QuestionLLM:
        return QuestionLLM(directory, dtype="bfloat16", device="cuda", revision="-")

    return measured("cuda", load, largest)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("CLIP-FlanT5-XL", lambda _: without_features(of_profile("gpu-24gb")["vqa"])),
        ("CLIP-FlanT5-XXL", lambda _: without_features(of_profile("gpu-80gb")["vqa"])),
        ("CLIP ViT-L/14", lambda path: clip("ViT-L-14-quickgelu", path / "weights.safetensors")),
        (
            "CLIP ViT-L/14 at 336 pixels",
            lambda path: clip("ViT-L-14-336-quickgelu", path / "weights.safetensors"),
        ),
        ("CLIP ViT-H/14", lambda path: clip("ViT-H-14", path / "weights.safetensors")),
        ("DeBERTa-v3-large", lambda path: nli(real_sizes.nli(path / "d", real_sizes.DEBERTA), Batch())),
        ("T5-XXL as TRUE has it", lambda path: nli(real_sizes.nli(path / "d", real_sizes.TRUE), Batch())),
        ("Qwen3-4B-Instruct-2507", lambda path: question_llm(real_sizes.question_llm(path / "d"))),
    ],
)
def test_the_memory_on_the_page_is_predicted(model, kind, tmp_path):
    """Weights and activations of each row of the table in docs/models.md, to 0.1 GB."""
    save_file({"weight": torch.zeros(1)}, tmp_path / "weights.safetensors")
    [row] = [row for row in rows(section("models.md", "### With activations")) if row[0] == model]
    found = kind(tmp_path)

    assert [gb(found.weights), gb(found.activations)] == row[3:]


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_profile_is_valid(path):
    """Settings, and what can be seen of the models without them.  Their memory is for other tests."""
    settings = load_settings(path, {})
    on_cpu = {
        name: table.model_copy(update={"device": "cpu", "devices": None})
        for name, table in settings.models.items()
    }
    seen = plans(settings.model_copy(update={"models": on_cpu}))
    rows, _, _ = described(settings, seen).partition("\n\n")

    assert list(settings.models) == [line.split()[0] for line in rows.splitlines()[1:]]


@pytest.mark.parametrize("profile", ["gpu-24gb", "gpu-80gb", EIGHT])
def test_a_profile_adds_up_what_is_predicted(profile):
    """The comment's lines of the service's own models, and the sum of all lines."""
    text, found = (PROFILES / f"{profile}.toml").read_text(), of_profile(profile)
    lines = dict(re.findall(r"^#   (\S.*?)  .* (\d+\.\d)(?:  .*)?$", text, re.MULTILINE))
    total = re.search(r"^# +sum +(\d+\.\d)$", text, re.MULTILINE)
    [clip_line] = [line for line in lines if line.startswith("CLIP ViT")]
    [vqa_line] = [line for line in lines if line.startswith("CLIP-FlanT5")]

    assert gb(found["clip"].weights) == f"{lines[clip_line]} GB"
    assert gb(found["vqa"].weights) == f"{lines[vqa_line]} GB"
    most = max(one.activations for one in found.values())
    assert float(lines["activations"]) + float(lines["features"]) == pytest.approx(most / 1e9, abs=0.1)
    assert total
    assert float(total[1]) == pytest.approx(sum(map(float, lines.values())), abs=0.05)


@pytest.mark.parametrize(
    ("model", "calls", "profile", "name"),
    [
        ("CLIP-FlanT5-XXL", 48, "gpu-80gb", "vqa"),
        ("CLIP-FlanT5-XXL", 48, EIGHT, "vqa"),
        ("CLIP-FlanT5-XL", 24, "gpu-24gb", "vqa"),
        ("CLIP ViT-L/14 at 336 pixels", 32, "gpu-80gb", "clip"),
        ("CLIP ViT-L/14 at 336 pixels", 56, EIGHT, "clip"),
        ("CLIP ViT-L/14", 32, "gpu-24gb", "clip"),
    ],
)
def test_the_gpus_of_one_process_on_the_page_are_those_of_the_rule(model, calls, profile, name):
    """By the operations of the full batch of a profile, in the dtype of the row."""
    settings, _ = planned(PROFILES / f"{profile}.toml")
    family, limits = settings.models[name].family, settings.models[name].batch
    page = rows(section("operations/several-gpus.md", "## What Python's lock allows"))
    [row] = [row for row in page if row[:1] + row[2:4] == [model, str(calls), f"{limits.max_batch_ms:g}"]]
    full_ms = batch_ms(of_profile(profile)[name].operations, row[1], limits.max_batch_ms)
    gpus = gpus_of_one_process(families()[family].launch_ms, full_ms)

    assert calls == limits.max_items
    assert [f"{full_ms:.0f}", str(gpus), str(ceil(8 / gpus))] == row[4:]


def test_one_process_is_enough_for_the_profile_of_eight_gpus():
    """The longer batches of its models; with those of one GPU, both would need two processes."""
    settings, plans_of_eight = planned(PROFILES / f"{EIGHT}.toml")
    short = {name: {"batch": Batch()} for name in ("clip", "vqa")}
    models = {name: table.model_copy(update=short.get(name)) for name, table in settings.models.items()}
    short_batches = settings.model_copy(update={"models": models})

    assert "processes" not in described(settings, plans_of_eight)
    found = re.findall(r"^(\w+: \d) processes for 8 GPUs", described(short_batches, plans_of_eight), re.M)
    assert ["clip: 2", "vqa: 2"] == found


@pytest.mark.parametrize(("profile", "published"), [("gpu-24gb", XL), ("gpu-80gb", XXL)])
def test_the_operations_of_a_batch_are_those_of_the_formula(profile, published):
    """To 6 %: they are scaled from a network with few layers."""
    settings, _ = planned(PROFILES / f"{profile}.toml")
    batch = settings.models["vqa"].batch
    config, tower = T5Config(**published.config), CLIPVisionConfig(**VIT_L_14_336)
    call = text_work(config, batch.max_cost_tokens // batch.max_items, len(ANSWER))
    call += vision_work(tower, config.d_model, -2)  # the last layer but one

    assert of_profile(profile)["vqa"].operations == pytest.approx(batch.max_items * call, rel=0.06)
