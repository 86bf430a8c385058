"""
`make gpu` with its tiny geometry, from a bundle, without network.

The environment has nothing but PyTorch, transformers and the packages that the bundle is for or brings.  All
parts run but the peers, and one of them fails and is tried again.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from loadtest.gpu.bundle import HAVE, copy_sources, requirements
from loadtest.gpu.table import HEAD
from tests.process.loadtest.environment import offline_environment, with_dependencies
from tests.support.paths import ROOT

PARTS = ("limits", "forward", "encoders", "decoders", "memory", "drift", "service")
VLLM = "vllm"  # which is not there
UNITS = {
    "",
    "TFLOP/s",
    "GB/s",
    "GB",
    "pairs/s",
    "pictures/s",
    "rewards/h",
    "ms",
    "s",
    "×",
    "of log P",
    "cores",
}
# In one process, since imports take most of the time.
SCRIPT = f"""
import sys
from loadtest.gpu import __main__ as command, drift

whole, drift.Scores = drift.Scores, lambda bench: 1 / 0
arguments = ["--geometry", "tiny", "--results", sys.argv[1], "--only", *{(*PARTS, VLLM)!r}]
assert command.main(arguments) == 0
drift.Scores = whole
assert command.main(arguments) == 0
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Path, list[dict]]:
    """The file of the results, and its lines, of a run with a broken part and a whole one."""
    folder = tmp_path_factory.mktemp("gpu")
    file, sources = folder / "results" / "tiny.jsonl", folder / "bundle"
    copy_sources(sources)
    compiled = Path("models", "images", "__pycache__")
    (sources / compiled).mkdir()
    for kernel in (ROOT / compiled).glob("*.nb[ci]"):  # numba's, which take long to make
        shutil.copy2(kernel, sources / compiled)
    brought = {each.name for each in requirements()} | {*HAVE}
    python = offline_environment(folder / "venv", with_dependencies(["torch", "transformers"]) | brought)
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python), "-c", SCRIPT, str(file)]
    done = subprocess.run(command, cwd=sources, env=alone, capture_output=True, text=True, timeout=280)
    assert 0 == done.returncode, done.stderr
    return file, [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def rows(lines: list[dict], part: str) -> list[dict]:
    return [row for line in lines if line.get("part") == part for row in line["rows"]]


def test_every_part_has_figures_with_units_and_shares_below_one(runs):
    """What needs CUDA is left out, and says so."""
    _, lines = runs
    found = [row for part in PARTS for row in rows(lines, part)]

    assert all(any(row["value"] is not None for row in rows(lines, part)) for part in PARTS)
    assert {row["unit"] for row in found} <= UNITS
    assert all(row["unit"] for row in found if row["value"] is not None)
    assert all(0 <= row["share"] < 1 for row in found if row["share"] is not None)
    assert any(row["share"] for row in rows(lines, "forward"))
    assert {"left out: needs CUDA"} == {
        row["note"] for row in found if row["value"] is None and not row["failed"]
    }


def test_without_vllm_its_part_is_one_line(runs):
    """In the table, too, with the option that names a Python with vLLM."""
    file, lines = runs
    [row] = rows(lines, VLLM)
    table = file.with_suffix(".md").read_text("utf-8").splitlines()
    [line] = [line for line in table if line.startswith(f"| {VLLM}")]

    assert (None, False) == (row["value"], row["failed"])
    assert "left out: vLLM is not installed; --vllm PYTHON names a Python that has it" == row["note"]
    assert row["note"] in line


def test_a_part_that_fails_leaves_the_others_and_is_tried_again(runs):
    """The second run measures nothing else, but for sums."""
    _, lines = runs
    steps = [(line["part"], line["step"]) for line in lines if "part" in line]
    failed = [row["note"] for row in rows(lines, "drift") if row["failed"]]
    again = {step for step in steps if steps.count(step) > 1}

    assert {"ZeroDivisionError: division by zero"} == set(failed)
    assert {"bfloat16, cpu: from float32 on the CPU"} <= {row["what"] for row in rows(lines, "drift")}
    assert {("drift", "float32, cpu"), ("drift", "bfloat16, cpu")} == {s for s in again if s[0] != "forward"}
    assert all(name.endswith("best") for part, name in again if part == "forward")
    assert not [row for part in PARTS if part != "drift" for row in rows(lines, part) if row["failed"]]


def test_the_table_and_the_plot_lie_next_to_the_results(runs):
    """All columns, in each line, and the machine before them."""
    file, _ = runs
    machine, _, head, rule, *lines = file.with_suffix(".md").read_text("utf-8").splitlines()

    assert all(f" {name} " in f" {machine} " for name in ("geometry tiny", "card", "PyTorch", "transformers"))
    assert f"| {' | '.join(HEAD)} |" == head
    assert {len(HEAD) + 1} == {line.count("|") for line in (rule, *lines)}
    assert {*PARTS, VLLM} == {line.split(" | ")[0].strip("| ") for line in lines}
    assert file.with_suffix(".svg").read_text("utf-8").startswith("<svg ")
