"""`scoregate.load`: the service in this process, as a client that opens no port."""

import asyncio
import gc
import json
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import numpy as np
import pytest

import scoregate
from models.images import image
from scoregate import local
from scoregate.client import Portal, nothing
from scoregate.trainers.reward import Reward
from tests.support.noted_models import BEGUN, FREE, SLOW, noted
from tests.support.paths import ROOT
from tests.support.pictures import png
from tests.support.service import until

__all__ = ["noted"]

PROFILE = str(ROOT / "loadtest" / "fake.toml")
PICTURES = [png(colour) for colour in ("red", "lime", "blue")]
PROMPTS = ["a red square", "a green square"]


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """A store of question sets for each test."""
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")


@pytest.fixture
def gate():
    """A gate around fake models."""
    with scoregate.load(PROFILE) as gate:
        yield gate


def ours():
    """The threads of a gate that run now."""
    names = ("scoregate", "cpu-", "device", "parser", "loading")
    return {thread for thread in threading.enumerate() if thread.name.startswith(names)}


def test_it_decides_by_the_policies_of_a_file(tmp_path):
    """Beside those of the profile; several from the same scores, and the best of a group."""
    (tmp_path / "policies.toml").write_text(
        '[policies.show]\naccept = "vqascore >= 0"\nrank_by = "vqascore"\n'
        '[policies.strict]\naccept = "vqascore > 0.999999"\nrank_by = "vqascore"\n',
        "utf-8",
    )
    with scoregate.load(PROFILE, policies=tmp_path / "policies.toml") as gate:
        one = gate.decide(PICTURES[0], "a red square", ["show", "strict"])
        items = [scoregate.Item(prompt="a red square", image=each, group="a") for each in PICTURES]
        best = gate.decide_items(items).accepted
        broken = gate.decide(png()[:40], "a red square", fallback="accept")
        listed = gate.policies()
        scores = [gate.score(each, "a red square").value for each in PICTURES]

    assert one.accepted
    assert {"show": "accept", "strict": "reject"} == {
        name: two.decision for name, two in one.policies.items()
    }
    assert [scores.index(max(scores))] == [each.index for each in best]
    assert ("reject", "unreadable: image_undecodable") == (broken.decision, broken.because)
    assert {"show", "strict"} <= listed.keys()
    assert listed["show"]["id"] == one.policy


def test_it_scores_as_a_client_does(gate):
    """Single scores, lists, rankings, questions and what is served, with the client's types."""
    [single] = [gate.score(PICTURES[0], "a red square")]
    report = gate.score_items([(PICTURES[0], "a red square")], ["vqascore", "clipscore"])
    [many] = gate.score_many([(PICTURES[0], "a red square")])
    ranking = gate.rank("a red square", PICTURES)
    comparison = gate.compare("a red square", PICTURES)
    judged = gate.compare("a red square", PICTURES, rubric="preference")

    assert single.value == report[0].scores["vqascore"] == many.scores["vqascore"]
    assert single.model.startswith("fake")
    assert {0, 1, 2} == {place.index for place in ranking}
    assert [place.index for place in ranking] == comparison.ranking
    assert 3 == len(judged)
    assert 1.5 == sum(judged.win_rates)
    assert gate.questions("a red square")[0].id
    assert "vqascore" in gate.models()["metrics"]
    assert gate.ready()[0]


def test_every_method_of_the_client_is_answered_by_a_gate():
    """None ends in an unknown path: each path and query of the client is one of the app in this process."""
    pair = (PICTURES[0], "a red square")
    calls = {
        "score": pair,
        "score_items": ([pair],),
        "score_many": ([pair],),
        "stream": ([pair],),
        "rank": ("a red square", PICTURES),
        "compare": ("a red square", PICTURES),
        "decide": pair,
        "decide_items": ([pair],),
        "label": ("0" * 32, True),
        "matrix": (PICTURES[:1], PROMPTS),
        "questions": ("a red square",),
        "question_set": ("no such set",),
        **{f"{verb}_model": ("no such model",) for verb in ("load", "offload", "unload")},
        **dict.fromkeys(("policies", "models", "metrics", "health", "ready", "version", "openapi"), ()),
    }
    methods = {name for name, each in vars(scoregate.Client).items() if callable(each)}
    public = {name for name in methods if not name.startswith("_")} - {"close"}
    with scoregate.load(PROFILE) as gate:
        found = {name: answer_of(getattr(gate, name), arguments) for name, arguments in calls.items()}

    assert public == calls.keys()
    unknown = {"question_set", "load_model", "offload_model", "unload_model"}
    assert {*unknown, "decide", "decide_items", "label"} == {  # there is no policy, and no log
        name for name, answer in found.items() if isinstance(answer, scoregate.ScoregateError)
    }
    assert not [name for name, answer in found.items() if "no such path" in str(answer)]


def answer_of(method, arguments):
    """What a method returns, a generator as a list; or its error."""
    try:
        answer = method(*arguments)
        return list(answer) if isinstance(answer, Iterator) else answer
    except scoregate.ScoregateError as error:
        return error


def test_a_stream_has_the_result_of_each_item(gate):
    """With the score of a single call; the picture that cannot be read has its error."""
    pairs = [(picture, PROMPTS[0]) for picture in (*PICTURES, b"no picture")]
    found = {result.index: result for result in gate.stream(pairs)}

    singles = [gate.score(picture, PROMPTS[0]).value for picture in PICTURES]
    assert singles == [found[index].scores["vqascore"] for index in range(3)]
    assert found[3].errors


def test_a_stream_that_is_refused_as_a_whole_is_its_error(gate):
    """The one that the service would send over HTTP."""
    with pytest.raises(scoregate.errors.UnknownMetricError):
        list(gate.stream([(PICTURES[0], "a")], "no_metric"))


def test_a_matrix_has_a_row_for_each_picture(gate):
    """And a column for each prompt: the scores of the pairs."""
    matrix = gate.matrix(PICTURES, PROMPTS)
    singles = [[gate.score(picture, prompt).value for prompt in PROMPTS] for picture in PICTURES]

    np.testing.assert_array_equal(singles, matrix)
    assert (np.float64, (3, 2)) == (matrix.dtype, matrix.shape)
    assert (0, 2) == gate.matrix([], PROMPTS).shape
    assert (3, 0) == gate.matrix(PICTURES, []).shape


@pytest.mark.parametrize("prompts", [1, 40, 128])
def test_a_picture_of_a_matrix_is_decoded_once(gate, monkeypatch, prompts):
    """For all of its prompts, which are in one request."""
    decoded, real = [], image.decode
    monkeypatch.setattr(image, "decode", lambda data, header: decoded.append(data) or real(data, header))
    gate.matrix(PICTURES, [f"prompt {number}" for number in range(prompts)])

    assert sorted(PICTURES) == sorted(decoded)


def test_a_pair_of_a_matrix_without_a_score_is_an_error_that_names_it(gate):
    """There is no number in its place."""
    with pytest.raises(scoregate.errors.BadImageError, match="picture 1, prompt 0: "):
        gate.matrix([PICTURES[0], b"no picture"], PROMPTS)


def test_errors_are_those_of_the_client(gate):
    """An unknown metric, a wrong option, a broken picture, and too little time."""
    with pytest.raises(scoregate.errors.UnknownMetricError):
        gate.score(PICTURES[0], "a", "no_metric")
    with pytest.raises(scoregate.errors.InvalidError, match="normalization"):
        gate.score(PICTURES[0], "a", options={"vqascore": {"normalization": "?"}})
    with pytest.raises(scoregate.errors.InvalidError, match=r"/images: should have at least 2 items, not 1$"):
        gate.compare("a", PICTURES[:1])
    with pytest.raises(scoregate.errors.ImageUndecodableError):
        gate.score(PICTURES[0][:40], "a")
    with pytest.raises((scoregate.errors.ServiceTimeoutError, scoregate.errors.DeadlineExceededError)):
        gate.score(PICTURES[0], "a", timeout_s=1e-6)


def test_a_reward_takes_a_gate(gate):
    """It is the gate's score, and the gate stays open when the reward is closed."""
    reward = Reward(logit=False, client=gate)
    [value] = reward.outcomes([PICTURES[0]], ["a red square"])
    reward.close()

    assert value == gate.score(PICTURES[0], "a red square").value
    with pytest.raises(ValueError, match="of its own"):
        Reward(client=gate, base_url="http://127.0.0.1:1")


def test_threads_share_a_gate(gate):
    """Each gets the scores of its own pictures."""
    prompts = [f"prompt {number}" for number in range(16)]
    expected = [gate.score(PICTURES[0], prompt).value for prompt in prompts]
    found = {}

    def score(number):
        found[number] = gate.score(PICTURES[0], prompts[number]).value

    threads = [threading.Thread(target=score, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert expected == [found[number] for number in range(16)]


def test_nothing_is_left_when_it_is_closed():
    """No thread; a later call is an error, and closing again does nothing."""
    before = ours()
    gate = scoregate.load(PROFILE)
    gate.score(PICTURES[0], "a")
    gate.close()
    gate.close()

    assert before == ours()
    with pytest.raises(scoregate.ScoregateError, match="closed"):
        gate.score(PICTURES[0], "a")


@pytest.fixture
def made(monkeypatch):
    """The services that are made, each with its portal."""
    made, make = [], local.LocalService.__init__

    def noted(service, given):
        make(service, given)
        made.append((service, service.portals.here()))

    monkeypatch.setattr(local.LocalService, "__init__", noted)
    return made


@pytest.mark.anyio
async def test_a_gate_that_is_opened_when_its_caller_leaves_ends(made):
    """It would be nobody's."""
    loading = asyncio.create_task(scoregate.aload(PROFILE)._loaded())
    await asyncio.sleep(0)  # it begins
    [(service, portal)] = made
    until(lambda: service._gate)  # this loop does not go on meanwhile
    portal.run(nothing())
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading

    await asyncio.to_thread(portal._thread.join, 20)
    assert not portal._thread.is_alive()
    assert service.portals.portal is None


def test_a_gate_whose_caller_is_interrupted_before_it_is_opened_ends(made, monkeypatch):
    """Its task never runs, so nothing within it can clean up."""
    free, opened = threading.Event(), []

    def interrupted(future, timeout=None):
        raise KeyboardInterrupt

    async def opening(service):
        opened.append(service)

    submit = Portal.submit

    def late(portal, work):
        portal.loop.call_soon_threadsafe(free.wait, 60)
        return submit(portal, work)

    with monkeypatch.context() as patch:
        patch.setattr(Future, "result", interrupted)
        patch.setattr(Portal, "submit", late)
        patch.setattr(local.LocalService, "open", opening)
        with pytest.raises(KeyboardInterrupt):
            scoregate.load(PROFILE)
    free.set()

    [(service, portal)] = made
    portal._thread.join(20)
    assert not portal._thread.is_alive()
    assert service.portals.portal is None
    assert [] == opened


@pytest.fixture
def slow(noted):
    """A gate whose batches last until `FREE` is set if a prompt has the word slow."""
    gate = scoregate.load(noted)
    gate.score(PICTURES[0], PROMPTS[0])
    BEGUN.clear()
    FREE.clear()
    yield gate
    FREE.set()
    gate.close()


def interrupts(ready):
    """Start a thread that presses Ctrl-C once a slow batch runs and *ready* is true."""

    def interrupt():
        until(lambda: BEGUN.is_set() and ready())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()


def test_ctrl_c_leaves_a_gate_to_the_batch_that_runs(slow, tmp_path, caplog):
    """The context ends before the batch; no other one begins, and the results until then are in the file."""
    pairs, found, file = [(PICTURES[0], f"slow {number}") for number in range(500)], [], tmp_path / "results"
    thread, service = slow.portals.here()._thread, slow._inner.connection._transport.service
    pools = service._gate._service.runtime.pools

    def score():
        with slow:
            found.extend(slow.score_many([(PICTURES[0], prompt) for prompt in PROMPTS], resume=file))
            interrupts(lambda: len(found) == 2)
            list(slow.score_many(pairs))

    with pytest.raises(KeyboardInterrupt):
        score()
    until(lambda: not any(pool.running for pool in pools))
    running = thread.is_alive()
    FREE.set()
    thread.join(60)

    assert running
    assert not thread.is_alive()
    assert 1 == len(SLOW)
    assert [] == caplog.records
    assert [0, 1] == [json.loads(line)["index"] for line in file.read_text("utf-8").splitlines()]


def test_ctrl_c_while_a_gate_is_closed_leaves_it_to_the_batch_that_runs(slow):
    """It ends all the same, without the caller."""
    thread = slow.portals.here()._thread
    scoring = threading.Thread(target=answer_of, args=(slow.score, (PICTURES[0], "slow")))
    scoring.start()
    until(BEGUN.is_set)
    interrupts(lambda: slow.portals.portal is None)
    with pytest.raises(KeyboardInterrupt):
        slow.close()
    FREE.set()
    thread.join(60)
    scoring.join()

    assert not thread.is_alive()


def test_nothing_is_left_when_it_is_collected():
    """It closes itself."""
    before = ours()
    gate = scoregate.load(PROFILE)
    gate.score(PICTURES[0], "a")
    del gate
    gc.collect()

    until(lambda: before == ours())


@pytest.mark.anyio
async def test_it_works_beside_a_running_loop(gate):
    """As in a notebook, whose cells run in one."""
    assert gate.score(PICTURES[0], "a red square").value == await asyncio.to_thread(
        lambda: gate.score(PICTURES[0], "a red square").value
    )


@pytest.mark.anyio
async def test_the_asynchronous_gate_has_the_methods_of_the_asynchronous_client(gate):
    """With the scores of the other one; whatever loop awaits them."""
    async with scoregate.aload(PROFILE) as other:
        scores = [other.score(PICTURES[0], prompt) for prompt in PROMPTS]
        found = [score.value for score in await asyncio.gather(*scores)]
        matrix = await other.matrix(PICTURES[:1], PROMPTS)
        pairs = [(PICTURES[0], prompt) for prompt in PROMPTS]
        streamed = {result.index: result.scores["vqascore"] async for result in other.stream(pairs)}

    expected = [gate.score(PICTURES[0], prompt).value for prompt in PROMPTS]
    assert expected == found == matrix.tolist()[0] == [streamed[0], streamed[1]]


@pytest.mark.anyio
async def test_a_caller_who_leaves_an_asynchronous_gate_ends_its_work():
    """The service sees no other request of it, and serves on."""
    async with await scoregate.aload(PROFILE) as gate:
        task = asyncio.create_task(gate.score(PICTURES[0], "a"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert (await gate.score(PICTURES[0], "b")).value


def test_it_needs_no_key(tmp_path, monkeypatch):
    """Though the profile names a file of keys: the caller is the process that has loaded it."""
    monkeypatch.setenv("SCOREGATE_SERVER__API_KEYS_FILE", str(tmp_path / "missing.toml"))
    with scoregate.load(PROFILE) as gate:
        assert gate.score(PICTURES[0], "a").value


@pytest.mark.parametrize(
    ("names", "devices", "reason"),
    [
        (["no/such.toml"], "", "no/such.toml: there is no such file"),
        ([PROFILE, "openai/clip-vit-base-patch32"], "", "is a profile"),
        ([PROFILE], "cpu", "is a profile"),
    ],
)
def test_what_cannot_be_loaded_is_an_error_with_the_reason(names, devices, reason):
    """And no thread is left."""
    before = ours()
    with pytest.raises(scoregate.ScoregateError, match=reason) as failed:
        scoregate.load(*names, devices=devices)

    assert "not_loaded" == failed.value.code
    until(lambda: before == ours())


def test_a_name_is_needed():
    """Nothing is loaded by default."""
    with pytest.raises(TypeError, match="demo"):
        scoregate.load()


def test_without_the_server_package_one_line_says_what_to_install(monkeypatch):
    """The client's package alone is small, and does not have it."""
    monkeypatch.setitem(sys.modules, "scoregate_server", None)
    with pytest.raises(ImportError, match="needs the package scoregate-server"):
        scoregate.load("demo")
