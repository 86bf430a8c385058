"""`scoregate.load` with the demo models, and in processes that are forked, spawned and left."""

import multiprocessing
import pickle
import subprocess
import sys

import pytest

import scoregate
from demo.samples import FOLDER, listed
from scoregate import Client
from tests.support.paths import ROOT
from tests.support.pictures import png

PROFILE = str(ROOT / "loadtest" / "fake.toml")
NEAR = 1e-5  # the difference that company in a batch may make
SINGLE = {"vqascore"}  # metrics whose single pair is a single call, so that no call shares its batch
LEFT = """
import scoregate, sys
gate = scoregate.load(sys.argv[1])
print(gate.score(sys.argv[2], "a red square").value)
"""
LEFT_ASYNCHRONOUS = """
import asyncio, scoregate, sys
async def main():
    global gate
    gate = await scoregate.aload(sys.argv[1])
    print((await gate.score(sys.argv[2], "a red square")).value)
asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """A store of question sets for each test."""
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")


def score(gate, results):
    """What a worker does: it reports a score, or the code of an error."""
    try:
        results.put(gate.score(png(), "a red square").value)
    except scoregate.ScoregateError as exc:
        results.put(exc.code)


def of_a_worker(gate, method):
    """What a worker reports that is started by *method*, and gets *gate* as its argument."""
    context = multiprocessing.get_context(method)
    results = context.Queue()
    worker = context.Process(target=score, args=(gate, results))
    worker.start()
    found = results.get(timeout=120)
    worker.join()
    assert 0 == worker.exitcode
    return found


def test_a_forked_process_gets_an_error_that_says_what_to_do():
    """Its threads are the parent's; it does not wait for them, and the parent goes on."""
    with scoregate.load(PROFILE) as gate:
        expected = gate.score(png(), "a red square").value

        assert "forked" == of_a_worker(gate, "fork")
        assert expected == gate.score(png(), "a red square").value


def test_a_spawned_process_loads_a_gate_of_its_own():
    """Pickled, a gate is what it was loaded from."""
    with scoregate.load(PROFILE) as gate:
        assert gate.score(png(), "a red square").value == of_a_worker(gate, "spawn")
        assert repr(gate).encode() not in pickle.dumps(gate)


@pytest.mark.parametrize(
    ("script", "last", "status"),
    [(LEFT, "", 0), (LEFT, "del gate", 0), (LEFT, "sys.exit(3)", 3), (LEFT_ASYNCHRONOUS, "", 0)],
    ids=["kept", "collected", "exit", "asynchronous"],
)
def test_a_script_that_closes_nothing_ends(tmp_path, script, last, status):
    """With its score, its status and no word of a thread that was left, or of an executor that has ended."""
    (tmp_path / "a.png").write_bytes(png())
    command = [sys.executable, "-W", "error", "-c", script + last, PROFILE, str(tmp_path / "a.png")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert (status, "") == (ended.returncode, ended.stderr)
    assert 0 < float(ended.stdout) < 1


def test_a_model_that_is_not_there_is_an_error_with_the_reason():
    """The name is in it."""
    with pytest.raises(scoregate.ScoregateError, match="no such model") as failed:
        scoregate.load("no such model")

    assert "not_loaded" == failed.value.code


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A gate around the demo models."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("demo")
        patch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{folder}/questions.sqlite3")
        with scoregate.load("demo", timeout_s=300.0) as gate:
            yield gate


def test_scores_are_those_over_http(demo, demo_service):
    """Of all metrics of the demo: single calls to the bit, others within 1e-5; errors are the same."""
    pairs = [(FOLDER / sample["file"], sample["right"]) for sample in listed()[:4]]
    scored = set()
    with Client(demo_service.url, timeout_s=300.0) as client:
        for metric, entry in client.models()["metrics"].items():
            alone = [scores(gate, metric, pairs[:1]) for gate in (client, demo)]
            together = [scores(gate, metric, pairs) for gate in (client, demo)]
            assert pytest.approx(alone[0], abs=0 if metric in SINGLE else NEAR) == alone[1], metric
            assert pytest.approx(together[0], abs=NEAR) == together[1], metric
            if entry["ready"] and isinstance(alone[0][0], float):
                scored.add(metric)

    assert {"vqascore", "clipscore", "dsg", "tifa", "gecko"} <= scored


def scores(gate, metric, pairs):
    """The score of each pair, or the code of its error."""
    results = gate.score_items(pairs, metric)
    return [
        result.scores.get(
            metric,
        )
        if not result.errors
        else result.errors[metric].code
        for result in results
    ]
