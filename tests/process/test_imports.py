"""What needs no model starts without the libraries that compute."""

import json
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

COMPUTING = {"torch", "transformers", "open_clip"}
WEB = {"fastapi", "uvicorn", "service.web.app"}
HEAVY = COMPUTING | {"llguidance", "huggingface_hub"}
FAMILIES = ["registry", "fake", "question_llm"]
CORE = ["family", "settings", "contract", "calls", "outcomes"]
FIGURES = ["bench.metrics.ts2", "evaluation.figures", "report.dataset", "report.versus"]
LIGHT = {
    "scoregate": COMPUTING | {"numpy"},  # first, before others import it
    **{f"scoregate.{name}": COMPUTING | {"scipy"} for name in FIGURES},
    **{f"models.families.{name}": HEAVY for name in FAMILIES},
    **{f"models.core.{name}": HEAVY for name in CORE},
    "models.images.image": HEAVY,
    **dict.fromkeys(
        [
            "service.plugins",
            "service.metrics.common.registry",
            "service.wiring.load",
            "service.serving.handle",
            "service.serving.runtime",
        ],
        COMPUTING,
    ),
    "service.process.command": COMPUTING | WEB,
}
IMPORTING = """
import importlib, json, sys

loaded = {}
for module in sys.argv[1:]:
    importlib.import_module(module)
    loaded[module] = list(sys.modules)
print(json.dumps(loaded))
"""


@pytest.fixture(scope="module")
def loaded():
    """What one process has imported after each of the modules, in their order."""
    command = [sys.executable, "-c", IMPORTING, *LIGHT]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=ROOT)
    return json.loads(ended.stdout)


@pytest.mark.parametrize("module", LIGHT)
def test_what_is_declared_is_imported_without_what_computes_it(loaded, module):
    """
    A package of its own and whoever reads the settings start in no time, as do commands but `serve`.

    NumPy computes nearly all figures; SciPy takes a second, and is imported by the few that need it.
    """
    assert not LIGHT[module] & {*loaded[module]}


LOADED = """
import json, sys
import scoregate

with scoregate.load("demo", metrics="vqascore") as gate:
    assert gate.score("demo/samples/binding.png", "a red square").value is not None
print(json.dumps(list(sys.modules)))
"""


def test_a_gate_of_a_vqascore_imports_no_network_of_transformers():
    """Nor torch's compiler, which they import: this takes as long as all the rest."""
    command = [sys.executable, "-c", LOADED]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True, cwd=ROOT)
    modules = {*json.loads(ended.stdout.splitlines()[-1])}

    assert {"torch", "models.families.clip_flant5.forward"} <= modules
    assert not modules & {"torch._dynamo", "torchvision", "transformers.modeling_utils"}
