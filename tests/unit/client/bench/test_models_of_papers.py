"""The caution that a benchmark's answers are from another model than the paper's."""

from pathlib import Path

import pytest

from scoregate.bench.answers import BenchmarkItem, Found
from scoregate.bench.benchmark import cautions
from scoregate.bench.generators.compbench import COMPBENCH
from scoregate.bench.generators.gedit import GEDIT
from scoregate.bench.generators.geneval2 import GENEVAL2
from scoregate.bench.generators.imgedit import IMGEDIT
from scoregate.bench.generators.wise import WISE


def said(benchmark, *labels):
    """The cautions about models."""
    found = Found({"0": [{1: 1}]}, {*labels})
    settings = benchmark.settings(data=Path("data"))
    every = cautions(benchmark, settings, [BenchmarkItem("0", "a prompt", "0")], found, {"0": {}})
    return [each for each in every if each.startswith("answered by")]


@pytest.mark.parametrize(
    ("benchmark", "label"),
    [
        (IMGEDIT, "gpt-4o-mini"),
        (IMGEDIT, "gpt-4o-mini-2024-07-18"),
        (GEDIT, "openai/gpt-4.1-nano@2025"),
        (GENEVAL2, "Qwen/Qwen3-VL-8B-Thinking@0c351dd"),
        (GENEVAL2, "Qwen/Qwen3-VL-8B-Instruct-FP8"),
        (COMPBENCH, "Salesforce/blip-vqa-base@787b3d3"),
        (WISE, "gpt-4o-2024-08-06"),
        (WISE, "gpt-4o"),
    ],
)
def test_a_model_of_a_longer_or_another_name_is_named_in_a_caution(benchmark, label):
    """Names are compared whole: a smaller, a quantized or a later sibling is another model."""
    assert [f"answered by {label}, in the paper by {benchmark.paper.model}"] == said(benchmark, label)


@pytest.mark.parametrize(
    ("benchmark", "label"),
    [
        (IMGEDIT, "gpt-4o"),
        (IMGEDIT, "gpt-4o-2024-08-06"),
        (GEDIT, "openai/gpt-4.1-20250414"),
        (GENEVAL2, "Qwen/Qwen3-VL-8B-Instruct@0c351dd"),
        (COMPBENCH, "Salesforce/blip-vqa-capfilt-large@e53f958"),
        (WISE, "gpt-4o-2024-05-13"),
    ],
)
def test_the_papers_model_has_no_caution(benchmark, label):
    """With any owner, revision, case, or date of a snapshot where the paper has none."""
    assert [] == said(benchmark, label)


def test_of_several_models_the_others_are_named():
    """In the order of their names."""
    [caution] = said(IMGEDIT, "gpt-4o", "o3", "gpt-4o-mini")

    assert "answered by gpt-4o-mini, o3, in the paper by GPT-4o" == caution
