"""The benchmark of the forward pass runs, counts its work rightly, and refuses what memory can't hold."""

import re

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from loadtest import forward as benchmark
from models.families.clip_flant5.forward import Forward

CPU = torch.device("cpu")
FAST = ("--layers", "2", "--questions", "2", "--rounds", "1", "--matrix", "256")


@pytest.fixture(autouse=True)
def threads():
    """The benchmark tries several numbers of threads; the other tests get theirs back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_it_runs_on_the_demo_geometry_and_prints_its_figures(capsys):
    """Two layers, two pairs, one round: every figure is there; what it gains is not judged."""
    assert 0 == benchmark.main([*FAST, "--threads", "1", "2", "--least", "0"])
    printed = capsys.readouterr().out
    assert ["1 threads", "2 threads"] == re.findall(r"^\d threads", printed, re.MULTILINE)
    for line in (
        r"plain loop [\d.]+ pairs/s, fast pass [\d.]+ pairs/s",
        r"a pair takes [\d.e-]+ TFLOP",
        r"fast pass [\d.e-]+ TFLOP/s, matrix product [\d.e-]+ TFLOP/s: \d\.\d\d of it",
        r"log-probabilities at most (0\.0e\+00|\d\.\de-0[5-9]) apart",
        r"speed-up over the plain loop, each with its best number of threads: [\d.]+",
    ):
        assert re.search(line, printed), line


def test_a_gain_below_the_target_is_a_failure():
    """The exit status tells a script."""
    assert 1 == benchmark.main([*FAST, "--threads", "1", "--least", "1e9"])


def test_the_counted_work_is_what_torch_counts():
    """Projections, attention and head, for lengths that need no padding; torch's counter has them all."""
    network = benchmark.build("demo", None, CPU, torch.float32)
    fast = Forward(benchmark.twin(network), device=CPU, dtype=torch.float32)
    text = (list(range(20)), list(range(11)))  # with 49 patches 80 tokens, a multiple of 16
    batch = benchmark.Batch(torch.zeros(1, 3, 70, 70), [(0, text)] * 3)
    benchmark.fast_pass(fast, batch)  # while a block is traced, it is also run
    with FlopCounterMode(display=False) as counter:
        benchmark.fast_pass(fast, batch)

    assert counter.get_total_flops() == benchmark.total_work(network, batch)


def test_a_geometry_that_does_not_fit_ends_with_one_line_before_it_is_made():
    """11 G parameters in float32 and 20 GB of memory."""
    with pytest.raises(SystemExit, match=r"^xxl: 11\.\d G parameters .* 20 GB are free on cpu"):
        benchmark.build("xxl", None, CPU, torch.float32, lambda device: 20 * 10**9)
