"""The memory that a model takes on a GPU, predicted without one, and that the documents say the same."""

import logging
import re
from dataclasses import replace
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from transformers import CLIPVisionConfig, T5Config

from benchmarks.work import text_work, vision_work
from models.checkpoints.files import open_clip_weights, weight_files
from models.checkpoints.locate import DEMO
from models.checkpoints.weights import tensor_sizes
from models.core.contract import Prepared
from models.core.family import Memory, Plan
from models.core.settings import Batch
from models.families.clip_flant5 import ClipFlanT5Settings
from models.families.clip_flant5.memory import (
    AFTER,
    ANSWER,
    FEW,
    FEW_OF_VISION,
    full_batches,
    prepared,
    scorer,
)
from models.families.clip_flant5.published import XL, XXL
from models.families.clip_flant5.tower import VIT_L_14_336
from models.families.nli.model import Nli
from models.families.nli.plan import full_batches as nli_batches
from models.families.question_llm.model import QuestionLLM
from models.families.question_llm.plan import largest
from models.families.registry import families
from models.sizing.dry_run import dry_run, is_dry
from models.sizing.memory import full, measured, predicted
from service.core.settings.tree import Settings
from service.process.check import described, plans
from service.process.launching import batch_ms, gpus_of_one_process
from service.wiring.load import load_settings
from tests.support import real_sizes
from tests.support.pages import rows, section
from tests.support.paths import ROOT

PROFILES = ROOT / "deploy" / "profiles"
EIGHT = "gpu-8x80gb"


@pytest.fixture(autouse=True)
def eight_gpus(monkeypatch):
    """What `devices = "all"` finds."""
    monkeypatch.setattr("models.core.copies.gpu_count", lambda: 8)


def memory(family: str, **table: Any) -> Memory | None:
    declared = families()[family]
    settings = declared.settings(family=family, **{"role": declared.role, "device": "cuda", **table})
    return declared.plan("left", settings).memory


@cache
def of_demo(family: str, name: str, **table: Any) -> Memory | None:
    """What a shipped model takes."""
    return memory(family, checkpoint=f"demo:{name}", **table)


def gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


# --- what the documents say ---------------------------------------------------------------------


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
    """Settings, and what can be seen of the models without them."""
    settings, planned_here = planned(path)
    rows, _, _ = described(settings, planned_here).partition("\n\n")

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


# --- what it depends on -------------------------------------------------------------------------


def activations(*batches: list[Prepared], more_layers: int = 0) -> list[int]:
    """Of each batch alone in CLIP-FlanT5-XL with as few layers as the prediction takes, or some more."""
    settings = ClipFlanT5Settings(role="vqa", family="clip_flant5", device="cuda", dtype="bfloat16")
    config = XL.config | {name: few + more_layers for name, few in FEW.items()}
    vision = VIT_L_14_336 | {name: few + more_layers for name, few in FEW_OF_VISION.items()}
    found = []
    with dry_run() as meter:
        model = scorer(config, vision, settings)
        for batch in batches:
            held = meter.peak = meter.held
            model.score(batch)
            found.append(meter.peak - held)
    return found


def calls(number: int, call: Prepared) -> list[Prepared]:
    return full(Batch(max_items=number, max_cost_tokens=10**9), call, "digest")


def test_layers_leave_nothing_behind():
    """To the byte, for each of the largest batches: what the prediction rests on, and the tests below."""
    batches = [*full_batches(VIT_L_14_336, Batch(max_items=4, max_cost_tokens=16_384))]

    assert activations(*batches) == activations(*batches, more_layers=3)


def test_activations_grow_with_the_calls_of_a_batch():
    """24 calls take 24 times what one takes."""
    ordinary = prepared(VIT_L_14_336, AFTER, ANSWER)

    many, one = activations(calls(24, ordinary), calls(1, ordinary))
    assert many == pytest.approx(24 * one, rel=0.01)


def test_a_long_question_among_others_takes_no_more_than_long_ones():
    """One of 2,624 tokens and 21 of 641, which would take 20 GB if all were as long."""
    long, ordinary = (prepared(VIT_L_14_336, tokens, ANSWER) for tokens in (2014, AFTER))
    mixed = calls(22, ordinary)
    mixed[7] = calls(1, long)[0]
    batch = Batch(max_items=24, max_cost_tokens=16_384)

    assert sum(call.cost for call in mixed) <= batch.max_cost_tokens
    of_mixed, *of_full = activations(mixed, *full_batches(VIT_L_14_336, batch))
    assert of_mixed < max(of_full)


def test_features_that_are_kept_count():
    """A cache of 744 MiB more than the default's."""
    less = of_demo("clip_flant5", "clip_flant5")
    more = of_demo("clip_flant5", "clip_flant5", features_mb=1000)

    assert less
    assert more
    assert more.activations - less.activations == (1000 - 256) * 2**20


# --- where there is none ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("open_clip", "clip"),
        ("clip_flant5", "clip_flant5"),
        ("transformers", "question_llm"),
        ("transformers_nli", "nli"),
    ],
)
def test_a_checkpoint_that_is_here_is_measured_on_a_gpu_only(family, name):
    """Its weights as many bytes as its files hold numbers, but for what is not kept or kept in float32."""
    found = of_demo(family, name)
    files = [open_clip_weights(DEMO / name)] if name == "clip" else weight_files(DEMO / name)
    held = 4 * sum(tensor_sizes(files).values())

    assert found
    assert 0.85 * held < found.weights < 1.1 * held
    assert found.activations > 0
    assert of_demo(family, name, device="cpu") is None


def test_what_a_dry_run_cannot_follow_is_unknown():
    """It is no error, since the model may well run."""

    def load() -> Any:
        raise NotImplementedError

    assert predicted("cuda:1", load, lambda _: []) is None


def test_after_a_dry_run_numbers_are_numbers_again():
    """And libraries may log."""
    before = logging.root.manager.disable
    with dry_run():
        assert is_dry()
        assert torch.ones(2).tolist() == [0, 0]

    assert not is_dry()
    assert torch.ones(2).tolist() == [1, 1]
    assert before == logging.root.manager.disable
