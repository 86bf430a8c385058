"""A gate loads a model when a call first needs it, and says so on a terminal."""

import asyncio
import threading
from contextlib import redirect_stderr

import huggingface_hub
import pytest

import scoregate
from models.checkpoints import locate
from models.core.contract import CheckpointAway, CheckpointError
from scoregate.trainers.reward import Reward
from service.process.gate import Gate
from tests.support import noted_models
from tests.support.noted_models import BEGUN, FAULTS, FREE, LOADED, noted
from tests.support.pictures import png
from tests.support.terminal import Terminal

__all__ = ["noted"]

PICTURE, PROMPT = png("red"), "a red square"
ITEM = (PICTURE, PROMPT)
POLICY = '[policies.likeness]\naccept = "clipscore >= 0"\n'


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """A store of question sets for each test."""
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")


@pytest.fixture
def gate(noted, tmp_path):
    """A gate of which no model is loaded, with a policy."""
    (tmp_path / "policies.toml").write_text(POLICY, "utf-8")
    with scoregate.load(noted, policies=tmp_path / "policies.toml") as gate:
        yield gate


@pytest.mark.parametrize(
    ("call", "needed"),
    [
        (lambda gate: gate.score(PICTURE, PROMPT), {"vqa"}),
        (lambda gate: gate.score_items([ITEM], ["vqascore", "clipscore"]), {"vqa", "clip"}),
        (
            lambda gate: gate.score_items(
                [scoregate.Item(image=PICTURE, prompt=PROMPT, metrics=["clipscore"])]
            ),
            {"clip"},
        ),
        (lambda gate: list(gate.score_many([ITEM], "clipscore")), {"clip"}),
        (lambda gate: list(gate.stream([ITEM], "clipscore")), {"clip"}),
        (lambda gate: gate.matrix([PICTURE], [PROMPT], "clipscore"), {"clip"}),
        (lambda gate: gate.rank(PROMPT, [PICTURE], metric="clipscore"), {"clip"}),
        (
            lambda gate: gate.rank(PROMPT, [PICTURE], cascade=scoregate.Cascade("clipscore", keep=1)),
            {"vqa", "clip"},
        ),
        (lambda gate: gate.compare(PROMPT, [PICTURE, png("lime")], metric="clipscore"), {"clip"}),
        (lambda gate: gate.compare(PROMPT, [PICTURE, png("lime")], rubric="preference"), {"vqa"}),
        (lambda gate: gate.decide(PICTURE, PROMPT, "likeness"), {"clip"}),
        (lambda gate: gate.questions(PROMPT), {"questions"}),
        (lambda gate: gate.policies(), {"clip"}),
        (lambda gate: gate.models("clipscore"), {"clip"}),
        (lambda gate: (gate.models(), gate.metrics(), gate.health(), gate.ready(), gate.openapi()), set()),
    ],
    ids=[
        "score",
        "several metrics",
        "metrics of an item",
        "score_many",
        "stream",
        "matrix",
        "rank",
        "cascade",
        "compare",
        "rubric",
        "decide",
        "questions",
        "policies",
        "models of a metric",
        "what is served",
    ],
)
def test_a_call_loads_the_models_that_it_needs(gate, call, needed):
    """No other model, and none again for the second call."""
    call(gate)
    call(gate)

    assert sorted(needed) == sorted(LOADED)


def test_a_request_is_read_once_where_its_models_are_there(gate, monkeypatch):
    """Though models of other metrics wait, for which its JSON would be read before."""
    gate.score(PICTURE, PROMPT)
    monkeypatch.setattr("service.process.gate.needed_by", pytest.fail)

    assert gate.score(PICTURE, "a green square").value
    assert gate.score_items([ITEM]).raise_for_errors() is None
    assert 1 == len([*gate.score_many([ITEM], "vqascore")])


def test_models_that_wait_are_listed_as_ready(gate):
    """With the metrics that they serve; ids and recipes are those of the loaded model afterwards."""
    before, ready = gate.models(), gate.ready()[0]
    gate.score(PICTURE, PROMPT)
    recipes = {each["name"]: each["recipe"] for each in gate.models()["models"]}

    assert ready
    assert all(each["ready"] for each in before["models"])
    assert before["metrics"].keys() == gate.models()["metrics"].keys()
    assert ["vqa"] == [name for name, recipe in recipes.items() if recipe] == LOADED


def test_a_request_that_is_refused_loads_nothing(gate):
    """A wrong option, an unknown metric and an unknown policy are found before."""
    with pytest.raises(scoregate.errors.InvalidError):
        gate.score(PICTURE, PROMPT, options={"vqascore": {"normalization": "?"}})
    with pytest.raises(scoregate.errors.UnknownMetricError):
        gate.score(PICTURE, PROMPT, "vqascor")
    with pytest.raises(scoregate.ScoregateError, match="no such policy"):
        gate.decide(PICTURE, PROMPT, "no such policy")

    assert [] == LOADED


def test_threads_that_need_a_model_wait_for_one_load(gate):
    """Each has its score."""
    begin, found = threading.Barrier(8), {}

    def score(number):
        begin.wait()
        found[number] = gate.score(PICTURE, f"prompt {number}").value

    threads = [threading.Thread(target=score, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ["vqa"] == LOADED
    assert [gate.score(PICTURE, f"prompt {number}").value for number in range(8)] == [
        found[number] for number in range(8)
    ]


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        (CheckpointError("no such file"), scoregate.ScoregateError, "not_loaded"),
        (CheckpointAway("the hub is away"), scoregate.errors.NotReadyError, "not_ready"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_an_error_of_each_call_that_needs_it(gate, fault, kind, code):
    """With its reason; calls of other models go on, and the next call tries again."""
    FAULTS["vqa"] = fault
    for _ in range(2):
        with pytest.raises(kind, match=f"models.vqa: {fault}") as failed:
            gate.score(PICTURE, PROMPT)
        assert code == failed.value.code
    with pytest.raises(kind):
        gate.score_items([ITEM], ["clipscore", "vqascore"])
    FAULTS.clear()

    assert gate.score(PICTURE, PROMPT, "clipscore").value
    assert gate.score(PICTURE, PROMPT).value
    assert sorted(["clip", "vqa"]) == sorted(LOADED)


@pytest.fixture
def held(noted):
    """A profile of models whose loads end when `FREE` is set."""
    FREE.clear()
    yield noted
    FREE.set()


@pytest.mark.anyio
async def test_a_call_whose_gate_is_closed_during_the_load_is_an_error(held):
    """Its task is not cancelled: nobody has cancelled it."""
    gate = await scoregate.aload(held)
    call = asyncio.create_task(gate.score(PICTURE, PROMPT))
    await asyncio.to_thread(BEGUN.wait)
    closing = asyncio.create_task(gate.close())

    with pytest.raises(scoregate.errors.ServiceConnectionError, match="closed meanwhile"):
        await call
    FREE.set()
    await closing


@pytest.mark.anyio
async def test_a_call_does_not_wait_for_the_download_of_another_model(noted, monkeypatch, tmp_path):
    """Both are needed for the first time."""
    asked, free, load = asyncio.Event(), threading.Event(), noted_models.load
    loop = asyncio.get_running_loop()

    def download(*args, **more):
        loop.call_soon_threadsafe(asked.set)
        assert free.wait(60)
        return str(tmp_path)

    def downloading(settings):
        if settings.role == "vqa":
            locate.fetch("owner/absent", None, ["*"])
        return load(settings)

    monkeypatch.setattr(noted_models, "load", downloading)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    async with scoregate.aload(noted) as gate:
        slow = asyncio.create_task(gate.score(PICTURE, PROMPT))
        await asked.wait()
        try:
            async with asyncio.timeout(30):
                assert (await gate.score(PICTURE, PROMPT, "clipscore")).value
            assert ["clip"] == LOADED
        finally:
            free.set()

        assert (await slow).value


@pytest.mark.anyio
async def test_a_call_whose_gate_is_closed_during_its_request_is_an_error(noted, monkeypatch):
    """The same one, and nothing is sent again."""
    sent = []
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def exchange(gate, method, path, *rest):
        sent.append(path)
        loop.call_soon_threadsafe(began.set)
        await asyncio.Event().wait()

    monkeypatch.setattr(Gate, "exchange", exchange)
    gate = await scoregate.aload(noted)
    call = asyncio.create_task(gate.score(PICTURE, PROMPT))
    await began.wait()
    await gate.close()

    with pytest.raises(scoregate.errors.ServiceConnectionError, match="closed meanwhile") as failed:
        await call
    assert "closed" == failed.value.code
    assert ["/score"] == sent


@pytest.mark.anyio
async def test_a_caller_who_leaves_during_the_load_is_cancelled(held):
    """The load goes on for the next one, who has a score."""
    async with scoregate.aload(held) as gate:
        call = asyncio.create_task(gate.score(PICTURE, PROMPT))
        await asyncio.to_thread(BEGUN.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        FREE.set()

        assert (await gate.score(PICTURE, PROMPT)).value


def test_the_caller_may_change_the_models_of_a_gate(gate):
    """Also one that was not loaded yet; no key is needed, as in a service with an operator's port."""
    states = [change("vqa")["state"] for change in (gate.unload_model, gate.load_model, gate.offload_model)]

    assert ["unloaded", "loaded", "offloaded"] == states
    reward = Reward(logit=False, client=gate)
    with reward.awake():
        assert reward.outcomes([PICTURE], [PROMPT]) == [gate.score(PICTURE, PROMPT).value]
    assert ["vqa"] == LOADED


def test_a_terminal_shows_what_is_loaded(noted):
    """One line for each call that loads something."""
    with redirect_stderr(Terminal()) as terminal, scoregate.load(noted) as other:
        assert "" == terminal.getvalue()
        other.score_items([ITEM], ["vqascore", "clipscore"])
        other.score(PICTURE, PROMPT)

    assert "scoregate: loading vqa, clip\n" == terminal.getvalue()


def test_metrics_that_are_named_are_loaded_at_once(noted):
    """A run of them begins without a wait."""
    with scoregate.load(noted, metrics="clipscore"):
        assert ["clip"] == LOADED
