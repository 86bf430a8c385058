"""The profile that `make gpu` prints after a sweep."""

import tomllib

import pytest
import torch

from loadtest.gpu import sweep
from loadtest.gpu.bench import Bench
from loadtest.gpu.geometry import REAL
from loadtest.gpu.results import Results, Row
from loadtest.gpu.sweep import Switches, named, profile
from models.families.clip_flant5 import ClipFlanT5Settings

EAGER, GRAPHS, COMPILED = Switches(False, 0), Switches(False, 4), Switches(True, 0)


@pytest.fixture
def bench(tmp_path):
    results = Results(tmp_path / "real.jsonl", {"card": "H100"})
    return Bench(REAL, torch.device("cuda"), "bfloat16", tmp_path, results)


def best(bench, rates):
    """The profile after a sweep of the XXL with these rates, by switches and batch."""
    rows = [Row(named("XXL", *key), rate, "pairs/s") for key, rate in rates.items()]
    bench.results.add("sweep", "all", rows)
    return profile(bench, "XXL", "H100")


def test_the_fastest_switches_win_with_the_smallest_batch_that_is_nearly_as_fast(bench):
    """A batch of 64 has 99 % of the rate of 128."""
    text = best(
        bench,
        {(EAGER, 1): 9.0, (EAGER, 64): 50.0, (COMPILED, 1): 8.0, (COMPILED, 64): 59.4, (COMPILED, 128): 60.0},
    )
    table = tomllib.loads(text)["models"]["vqa"]

    assert text.startswith("# XXL on H100: 59.4 pairs/s; a single pair takes 125.0 ms.\n")
    assert (True, 0, 64) == (table["compile"], table["graph_rows"], table["batch"]["max_items"])


def test_among_equally_fast_ones_the_latency_of_a_single_pair_decides(bench):
    """Graphs do not make a large batch faster."""
    table = tomllib.loads(
        best(bench, {(EAGER, 1): 9.0, (EAGER, 64): 50.2, (GRAPHS, 1): 19.0, (GRAPHS, 64): 50.0})
    )

    assert 4 == table["models"]["vqa"]["graph_rows"]


def test_the_profile_is_one_that_the_service_reads(bench):
    """Every key is a setting, and a question of ordinary length counts 641 tokens."""
    table = tomllib.loads(best(bench, {(EAGER, 16): 50.0}))["models"]["vqa"]
    settings = ClipFlanT5Settings(role="vqa", **table)

    assert ("cuda:0", "bfloat16") == (settings.device, settings.dtype)
    assert 16 * 641 == settings.batch.max_cost_tokens


def test_without_figures_there_is_no_profile(bench):
    assert "" == profile(bench, "XL", "H100")


def test_a_cpu_measures_what_needs_no_gpu(bench):
    """The other combinations are left out by name."""
    on_cpu = Bench(REAL, torch.device("cpu"), "float32", bench.folder, bench.results)
    names = [step.name for step in sweep.steps(on_cpu)]

    assert [name for name in names if name.startswith("XL, compile off, graph_rows 0")] == [
        named("XL", EAGER, items) for items in REAL.batches
    ]
    assert 2 * (len(REAL.batches) + len(sweep.EVERY) - 1) == len(names)
