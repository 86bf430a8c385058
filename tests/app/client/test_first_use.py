"""A gate loads a model when a call first needs it, and says so on a terminal."""

import asyncio
import threading

import pytest

import scoregate
from models.core.contract import CheckpointAway, CheckpointError
from scoregate import local
from scoregate.trainers.reward import Reward
from service.serving import loading
from service.serving.backends import local as backend
from tests.support.paths import ROOT
from tests.support.pictures import png

PROFILE = str(ROOT / "loadtest" / "fake.toml")
PICTURE, PROMPT = png("red"), "a red square"
ITEM = (PICTURE, PROMPT)
POLICY = '[policies.likeness]\naccept = "clipscore >= 0"\n'


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """A store of question sets for each test."""
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")


@pytest.fixture
def loaded(monkeypatch):
    """The names of the models that were loaded, in order."""
    names, load_model = [], loading.load_model

    def noted(name, table):
        names.append(name)
        return load_model(name, table)

    monkeypatch.setattr(loading, "load_model", noted)
    monkeypatch.setattr(backend, "load_model", noted)
    return names


@pytest.fixture
def gate(loaded, tmp_path):
    """A gate of which no model is loaded, with a policy."""
    (tmp_path / "policies.toml").write_text(POLICY, "utf-8")
    with scoregate.load(PROFILE, policies=tmp_path / "policies.toml") as gate:
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
def test_a_call_loads_the_models_that_it_needs(gate, loaded, call, needed):
    """No other model, and none again for the second call."""
    call(gate)
    call(gate)

    assert sorted(needed) == sorted(loaded)


def test_models_that_wait_are_listed_as_ready(gate, loaded):
    """With the metrics that they serve; ids and recipes are those of the loaded model afterwards."""
    before, ready = gate.models(), gate.ready()[0]
    gate.score(PICTURE, PROMPT)
    recipes = {each["name"]: each["recipe"] for each in gate.models()["models"]}

    assert ready
    assert all(each["ready"] for each in before["models"])
    assert before["metrics"].keys() == gate.models()["metrics"].keys()
    assert ["vqa"] == [name for name, recipe in recipes.items() if recipe] == loaded


def test_a_request_that_is_refused_loads_nothing(gate, loaded):
    """A wrong option, an unknown metric and an unknown policy are found before."""
    with pytest.raises(scoregate.errors.InvalidError):
        gate.score(PICTURE, PROMPT, options={"vqascore": {"normalization": "?"}})
    with pytest.raises(scoregate.errors.UnknownMetricError):
        gate.score(PICTURE, PROMPT, "vqascor")
    with pytest.raises(scoregate.ScoregateError, match="no such policy"):
        gate.decide(PICTURE, PROMPT, "no such policy")

    assert [] == loaded


def test_threads_that_need_a_model_wait_for_one_load(gate, loaded):
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

    assert ["vqa"] == loaded
    assert [gate.score(PICTURE, f"prompt {number}").value for number in range(8)] == [
        found[number] for number in range(8)
    ]


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        (CheckpointError("models.vqa: no such file"), scoregate.ScoregateError, "not_loaded"),
        (CheckpointAway("models.vqa: the hub is away"), scoregate.errors.NotReadyError, "not_ready"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_an_error_of_each_call_that_needs_it(
    gate, loaded, monkeypatch, fault, kind, code
):
    """With its reason; calls of other models go on, and the next call tries again."""

    def failing(name, table):
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(backend, "load_model", failing)
        for _ in range(2):
            with pytest.raises(kind, match=str(fault)) as failed:
                gate.score(PICTURE, PROMPT)
            assert code == failed.value.code
        with pytest.raises(kind):
            gate.score_items([ITEM], ["clipscore", "vqascore"])

    assert gate.score(PICTURE, PROMPT, "clipscore").value
    assert gate.score(PICTURE, PROMPT).value
    assert sorted(["clip", "vqa"]) == sorted(loaded)


@pytest.fixture
def held(monkeypatch):
    """Two events: a load has begun, and it may go on."""
    begun, may_go_on = threading.Event(), threading.Event()

    def load(name, table):
        begun.set()
        assert may_go_on.wait(100)
        return loading.load_model(name, table)

    monkeypatch.setattr(backend, "load_model", load)
    yield begun, may_go_on
    may_go_on.set()


@pytest.mark.anyio
async def test_a_call_whose_gate_is_closed_during_the_load_is_an_error(held):
    """Its task is not cancelled: nobody has cancelled it."""
    begun, may_go_on = held
    gate = await scoregate.aload(PROFILE)
    call = asyncio.create_task(gate.score(PICTURE, PROMPT))
    await asyncio.to_thread(begun.wait)
    closing = asyncio.create_task(gate.close())

    with pytest.raises(scoregate.errors.ServiceConnectionError, match="closed meanwhile"):
        await call
    may_go_on.set()
    await closing


@pytest.mark.anyio
async def test_a_caller_who_leaves_during_the_load_is_cancelled(held):
    """The load goes on for the next one, who has a score."""
    begun, may_go_on = held
    async with scoregate.aload(PROFILE) as gate:
        call = asyncio.create_task(gate.score(PICTURE, PROMPT))
        await asyncio.to_thread(begun.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        may_go_on.set()

        assert (await gate.score(PICTURE, PROMPT)).value


def test_the_caller_may_change_the_models_of_a_gate(gate, loaded):
    """Also one that was not loaded yet; no key is needed, as in a service with an operator's port."""
    states = [change("vqa")["state"] for change in (gate.unload_model, gate.load_model, gate.offload_model)]

    assert ["unloaded", "loaded", "offloaded"] == states
    reward = Reward(logit=False, client=gate)
    with reward.awake():
        assert reward.outcomes([PICTURE], [PROMPT]) == [gate.score(PICTURE, PROMPT).value]
    assert ["vqa"] == loaded


def test_a_terminal_shows_what_is_loaded(monkeypatch):
    """One line for each call that loads something."""
    lines = []
    monkeypatch.setattr(local, "say_on_terminal", lines.append)
    with scoregate.load(PROFILE) as other:
        assert [] == lines
        other.score_items([ITEM], ["vqascore", "clipscore"])
        other.score(PICTURE, PROMPT)

    assert ["loading vqa, clip"] == lines


def test_metrics_that_are_named_are_loaded_at_once(loaded):
    """A run of them begins without a wait."""
    with scoregate.load(PROFILE, metrics="clipscore"):
        assert ["clip"] == loaded
