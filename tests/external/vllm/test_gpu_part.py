"""The part `vllm` of `make gpu` with its tiny geometry, and the real vLLM."""

from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch

from demo.process import free_port
from loadtest.gpu import limits, vllm
from loadtest.gpu.bench import Bench
from loadtest.gpu.geometry import QUESTION_LLM, TINY, VLM
from loadtest.gpu.results import Results
from loadtest.gpu.steps import run
from loadtest.servers import Server
from tests.support.background import awaited
from tests.support.service import until
from tests.support.vllm_server import PYTHON, STARTED_WITHIN_S, answers, end, fork

UNITS = {
    f"{QUESTION_LLM}, start": "s",
    f"{QUESTION_LLM}, question sets, 2 at once": "sets/s",
    f"{QUESTION_LLM}, question sets, 2 at once: tokens": "tokens/s",
    f"{QUESTION_LLM}, question sets, one alone": "ms",
    f"{QUESTION_LLM}, question sets, one alone: tokens": "tokens/s",
    f"{VLM}, start": "s",
    f"{VLM}, P(Yes), 8 pictures at once": "pictures/s",
    f"{VLM}, P(Yes), 2 × 8 at once": "pairs/s",
    f"{VLM}, P(Yes), interactive p99 alone": "ms",
}


@contextmanager
def forked(peer, checkpoint, _, log):
    """A vLLM with the options of the part's command, by a fork, which imports nothing anew."""
    port = free_port(0)
    module, *options = peer.command(checkpoint, port)[1:]
    assert module == "vllm.entrypoints.openai.api_server"
    assert [*PYTHON.parents[1].glob(f"lib/*/site-packages/{module.replace('.', '/')}.py")]
    process = fork(Path(awaited("template")["socket"]), log, options)
    try:
        until(lambda: answers(port), STARTED_WITHIN_S)
        yield Server(port, process, peer.wire)
    finally:
        end(process)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The rows of the part by name, after those of the limits."""
    folder = tmp_path_factory.mktemp("gpu")
    results = Results(folder / "tiny.jsonl", {"card": "none"})
    bench = Bench(TINY, torch.device("cpu"), "float32", folder, results, PYTHON)
    steps = {"limits": partial(limits.steps, bench), "vllm": partial(vllm.steps, bench, forked)}
    run(steps, results, lambda: None)
    return {row.what: row for row in results.of("vllm")}


def test_every_figure_is_there_with_its_unit(rows):
    """Sets are written and read through the service's own parts, and no call fails."""
    assert [] == [row.note for row in rows.values() if row.failed]
    assert UNITS == {name: row.unit for name, row in rows.items()}
    assert all(row.value for row in rows.values())


def test_shares_are_of_the_measured_limits(rows):
    """Of the product for what is computed, of the bandwidth for a set alone."""
    shares = {name: row.share for name, row in rows.items() if row.share is not None}

    assert 4 == len(shares)
    assert all(0 < share < 1 for share in shares.values())


def test_a_set_has_the_tokens_of_eight_questions(rows):
    """The row has their number: pieces are shorter than those of a trained model."""
    tokens = int(rows[f"{QUESTION_LLM}, question sets, 2 at once"].note.split()[0])

    assert 100 < tokens < 800
