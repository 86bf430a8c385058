"""Reward(watch=…): what the watch does in the background, and what it must not do to the reward."""

import asyncio
import json
import logging
import pickle
import re
import threading
from collections import Counter
from concurrent.futures import Future
from types import SimpleNamespace

import httpx2 as httpx
import pytest

from loadtest.watch import FRESH, USUAL, hacked
from scoregate import AsyncClient, Item, ScoregateError
from scoregate.trainers import Reward, flow_grpo
from scoregate.trainers import watch as work
from scoregate.trainers.trl import reward_function
from scoregate.trainers.watch import Watch
from tests.support.pages import page
from tests.support.pauses import Unpaused
from tests.support.pictures import png
from tests.unit.client.trainers.conftest import settle

WATCHED = "artifact"
PROMPTS = [str(number) for number in range(1, 9)]


class Service:
    """
    Rewards are the numbers that the prompts are; the watch has the scores that the test gives it.

    Attributes:
        requests: of the watch.
        free: cleared to hold the requests of the watch.
    """

    def __init__(self, watched=lambda prompt: {WATCHED: -float(prompt)}, direction="higher is better"):
        self.watched, self.requests, self.free = watched, [], threading.Event()
        self.entries = {WATCHED: {"direction": direction}, "vqascore": {"range": [0, 1]}}
        self.transport = Unpaused(self.answer)
        self.free.set()

    async def answer(self, request):
        if request.url.path == "/models":
            return httpx.Response(200, json={"models": [], "metrics": self.entries})
        asked = json.loads(re.search(rb"\r\n\r\n(\{.*?\})\r\n--", request.content, re.DOTALL)[1])
        if asked["metrics"][0].startswith("vqascore"):
            return answered(asked, lambda prompt: {"vqascore": float(prompt)})
        self.requests.append(asked)
        while not self.free.is_set():
            await asyncio.sleep(0)
        return answered(asked, self.watched)


def answered(asked, scores_of):
    """Scores by prompt, of which texts are codes of errors."""
    results = []
    for index, item in enumerate(asked["items"]):
        found = scores_of(item["prompt"])
        errors = {name: {"code": one, "detail": "as told"} for name, one in found.items() if type(one) is str}
        scores = {name: one for name, one in found.items() if name not in errors}
        results.append({"index": index, "scores": scores, "errors": errors})
    return httpx.Response(200, json={"request_id": "r", "results": results, "models": {}})


@pytest.fixture
def made():
    """A reward with a watch of all pictures, by default, and its service."""
    rewards = []

    def make(service=None, **settings):
        service = service or Service()
        given = {"metrics": [WATCHED], "share": 1.0, **settings}
        rewards.append(Reward(transport=service.transport, logit=False, watch=Watch(**given)))
        return rewards[-1], service

    yield make
    for each in rewards:
        each.close()


def watched(figures):
    return {name.removeprefix(work.NAME): value for name, value in figures.items() if work.NAME in name}


def test_a_sample_is_scored_in_the_bulk_lane_and_the_rewards_stay_as_they_are(made):
    """By the metrics and options of the watch; the rewards have only parts of their own."""
    reward, service = made(share=0.25, options={WATCHED: {"kind": "x"}})
    rewards = reward([png()] * 8, PROMPTS)
    settle(reward)

    assert list(map(float, PROMPTS)) == rewards
    assert {"vqascore": rewards} == rewards.parts
    assert 2 == sum(len(asked["items"]) for asked in service.requests)
    for asked in service.requests:
        assert ([WATCHED], "bulk", {WATCHED: {"kind": "x"}}) == (
            asked["metrics"],
            asked["priority"],
            asked["options"],
        )


def test_the_sample_is_that_of_the_seed(made):
    """In the order of the pictures, whatever the size of a call."""

    def prompts(seed, calls):
        reward, service = made(share=0.25, seed=seed)
        for start in range(0, 40, 40 // calls):
            chosen = [str(number) for number in range(start, start + 40 // calls)]
            reward([png()] * len(chosen), chosen)
        settle(reward)
        return sorted(int(item["prompt"]) for asked in service.requests for item in asked["items"])

    assert 10 == len(prompts(1, 1))
    assert prompts(1, 1) == prompts(1, 5) != prompts(2, 1)


def test_a_step_ends_at_the_statistics_and_has_its_figures_when_it_is_scored(made):
    """At the next call; each step once."""
    reward, service = made()
    service.free.clear()
    reward([png()] * 4, ["1", "2", "3", "6"])
    assert {} == watched(reward.statistics())
    service.free.set()
    settle(reward)

    figures = watched(reward.statistics())
    assert (3.0, -3.0, 0.0, 0.0) == tuple(
        figures[n] for n in ("reward", f"{WATCHED}/mean", "failed", "skipped")
    )
    assert -1.0 == pytest.approx(figures[f"{WATCHED}/correlation"])
    assert 0.0 == figures[f"{WATCHED}/divergence"]
    assert {} == watched(reward.statistics())


def test_the_shares_of_a_step_are_logged(made):
    """Of pictures whose prompt quotes no text, of rewards at the end of their range, of equal pictures."""
    reward, _ = made(Service(lambda prompt: {WATCHED: "no_text" if prompt == "0.5" else 1.0}))
    reward([png((9, 9, 9))] * 4, ["0.5", "1", "1", "1"])
    settle(reward)
    figures = watched(reward.statistics())

    assert (0.25, 0.75, 0.0) == tuple(figures[name] for name in ("no_text", "saturated", "failed"))
    assert 1.0 == figures["duplicates"]


def test_a_watch_that_hangs_delays_no_reward(made):
    """All is scored later."""
    reward, service = made()
    service.free.clear()
    for _ in range(5):
        assert list(map(float, PROMPTS)) == reward([png()] * 8, PROMPTS)
    reward.statistics()
    service.free.set()
    settle(reward)

    assert 0 == watched(reward.statistics())["skipped"]
    assert 40 == sum(len(asked["items"]) for asked in service.requests)


class Later:
    """A portal whose work begins when it is told to."""

    def __init__(self):
        self.work = []

    def submit(self, work):
        self.work.append(work)
        return Future()

    def begin(self):
        async def every():
            await asyncio.gather(*self.work)

        asyncio.run(every())


@pytest.mark.parametrize(
    ("limit", "room"), [({"most": 3}, 3), ({"most_bytes": 4 * len(png()) - 1}, 3), ({}, 8)]
)
def test_the_queue_has_a_limit_of_pictures_and_of_their_bytes(limit, room):
    """What finds no room is counted."""
    service, portal = Service(), Later()
    sender = SimpleNamespace(client=AsyncClient("http://test", transport=service.transport), options={})
    watching = work.Watching(Watch(WATCHED, share=1.0), Counter(), **limit)
    items = [Item(prompt=prompt, image=png()) for prompt in PROMPTS]
    watching.observe(items, [ScoregateError("of the reward")] * 8, sender, portal)
    watching.figures()  # ends the step
    portal.begin()

    assert 8 - room == watched(watching.figures())["skipped"]
    assert room == len(service.requests)


def test_a_metric_that_the_service_lacks_is_left_out(made, caplog):
    """It is logged once; the others have scores, and the service gets no options of it."""
    reward, service = made(metrics=[WATCHED, "artefact"], options={"artefact": {"kind": "x"}})
    reward([png()] * 2, ["1", "2"])
    settle(reward)
    figures = watched(reward.statistics())

    assert (-1.5, 1.0) == (figures[f"{WATCHED}/mean"], figures["failed"])
    assert [([WATCHED], None)] * 2 == [(each["metrics"], each.get("options")) for each in service.requests]
    [message] = caplog.messages
    assert "artefact has no score: unknown_metric: the service has no metric 'artefact'" in message


@pytest.mark.parametrize("code", ["model_fault", "timeout"])
def test_a_watch_that_fails_is_logged_once_and_counted(made, caplog, code):
    """And every reward is there."""
    reward, _ = made(Service(lambda prompt: {WATCHED: code}))
    for _ in range(3):
        assert list(map(float, PROMPTS)) == reward([png()] * 8, PROMPTS)
        settle(reward)
    reward.statistics()

    assert [f"the watch goes on without it: {WATCHED} has no score: {code}: as told"] == caplog.messages


def test_a_service_that_refuses_the_watch_is_no_fault_of_the_reward(made, caplog):
    """The whole request fails; so does a service whose answer has no form."""

    def refused(prompt):
        raise httpx.ConnectError("nobody listens")

    reward, service = made(Service(refused))
    assert [1.0] == reward([png()], ["1"])
    settle(reward)
    service.entries = None
    other, _ = made(service)
    assert [1.0] == other([png()], ["1"])
    settle(other)

    assert [1.0, 1.0] == [watched(each.statistics())["failed"] for each in (reward, other)]
    assert 2 == len(caplog.messages)
    assert "connection_failed" in caplog.text


def test_a_fault_of_the_watch_itself_is_logged(made, caplog):
    """Whatever it is."""

    class Faulty(int):
        def __bool__(self):
            raise ZeroDivisionError

    reward, _ = made(every=Faulty(1))

    assert [1.0] == reward([png()], ["1"])
    assert "scoregate/mean" in reward.statistics()
    assert ["the watch has a fault"] * 2 == caplog.messages


@pytest.mark.parametrize(("direction", "sign"), [("higher is better", 1), ("lower is better", -1)])
def test_a_hacked_run_is_warned_about_once(made, caplog, direction, sign):
    """The metric gets worse, in its own direction; the warning is counted, and each step logs the test."""
    rewards, scores = hacked(FRESH, 0.5, USUAL, change=100, steps=140)
    current = SimpleNamespace(score=0.0)
    reward, _ = made(Service(lambda prompt: {WATCHED: current.score}, direction))
    closeness = []
    for gained, score in zip(rewards, scores, strict=True):
        current.score = sign * score
        reward([png()], [str(gained)])
        settle(reward)
        closeness.append(watched(reward.statistics()).get(f"{WATCHED}/divergence", 0.0))

    first = next(step for step, value in enumerate(closeness) if value >= 1)
    assert 100 < first <= 120
    [message] = caplog.messages
    assert f"the reward rises while {WATCHED} gets worse" in message
    assert "(at most 5 % of clean runs of 1000 steps" in message
    assert {f"watch: {WATCHED}": 1} == reward.warned


def test_a_step_of_a_number_of_pictures_is_logged_by_itself(made, caplog):
    """For trainers whose script does not log the reward."""
    reward, _ = made(every=4)
    with caplog.at_level(logging.INFO, "scoregate.watch"):
        for _ in range(3):
            reward([png()] * 3, ["1", "2", "3"])
            settle(reward)
        reward([png()] * 3, ["1", "2", "3"])
        settle(reward)

    assert ["step 0: ", "step 1: "] == [message[:8] for message in caplog.messages]
    assert "scoregate/watch/reward 2, scoregate/watch/artifact/mean -2" in caplog.messages[0]
    assert 2.0 == reward.statistics()["scoregate/watch/reward"]


def test_a_reward_that_is_closed_leaves_no_work(made):
    """Neither what is under way nor what waits; a later call is watched again."""
    reward, service = made()
    service.free.clear()
    reward([png()] * 8, PROMPTS)
    reward.close()
    service.free.set()
    held = reward._watcher._here()
    assert (0, 0, 0) == (len(held._queue), held._bytes, len(held._workers))

    service.requests.clear()
    reward([png()], ["1"])
    settle(reward)
    assert 1 == len(service.requests)


def test_pictures_without_a_reward_are_watched_without_it(made):
    """They have scores; one that cannot be sent has none."""
    reward, service = made()
    reward.outcomes([png(), b""], ["1", "2"])
    settle(reward)

    assert ["1"] == [item["prompt"] for asked in service.requests for item in asked["items"]]


def test_a_reward_by_domain_is_watched_by_the_metrics_of_the_watch():
    """In all domains."""
    service = Service()
    with_domains = Reward(
        transport=service.transport, logit=False, by_domain={"a": {"vqascore": 1.0}}, watch=WATCHED
    )
    with_domains([png()] * 20, ["1"] * 20, domains=["a"] * 20)
    settle(with_domains)
    with_domains.close()

    assert [[WATCHED]] * 2 == [asked["metrics"] for asked in service.requests]
    assert all("metrics" not in item for asked in service.requests for item in asked["items"])


def test_a_trainer_of_trl_gets_the_figures_in_its_log():
    """Those of the step before."""
    service, logged = Service(), {}
    function = reward_function(transport=service.transport, watch={"metrics": [WATCHED], "share": 1.0})
    for _ in range(2):
        function(["1", "2"], completions=[], pictures=[png()] * 2, log_metric=logged.__setitem__)
        settle(function.args[0])

    assert (1.5, -1.5) == (logged["scoregate/watch/reward"], logged[f"scoregate/watch/{WATCHED}/mean"])
    function.args[0].close()


def test_the_rewards_of_flow_grpo_have_the_figures_of_their_watch():
    """Where the page says that they are."""
    made = flow_grpo.factory(watch=WATCHED), flow_grpo.multi_score("cuda", {"vqascore": 1.0}, watch=WATCHED)

    assert [{}, {}] == [made[0].reward.statistics(), made[1].args[0].statistics()]
    text = page("trainers/flow-grpo.md")
    assert "`made.reward.statistics()`" in text
    assert "`reward_fn.args[0].statistics()`" in text


def test_a_watch_is_pickled_with_its_reward():
    """And given in three forms."""
    forms = (WATCHED, [WATCHED], {"metrics": WATCHED}, Watch(WATCHED))
    copies = [pickle.loads(pickle.dumps(Reward(watch=form))) for form in forms]

    assert list(forms) == [each.watch for each in copies]
    assert hash(Watch(("a",), options={"a": {}})) == hash(Watch(("a",)))  # verl-omni's are keys of a cache
    assert {(WATCHED,)} == {tuple(each._watcher._watch.names) for each in copies}


@pytest.mark.parametrize(
    ("watch", "why"),
    [
        ({"metrics": []}, "at least one metric"),
        (["ocr", "ocr"], "none twice"),
        ({"metrics": "ocr", "share": 0.0}, "above 0 and at most 1, not 0.0"),
        ({"metrics": "ocr", "share": float("nan")}, "not nan"),
        ({"metrics": "ocr", "every": 0}, "at least one picture, not 0"),
        ({"metrics": "ocr", "alarms": 0.5}, "is 0.002 to 0.1 for each metric, not 0.5"),
        ({"metrics": ["ocr", "dsg"], "alarms": 0.002}, "is 0.002 to 0.1 for each metric, not 0.001"),
    ],
)
def test_settings_that_make_no_sense_are_refused(watch, why):
    """Where the reward is made."""
    with pytest.raises(ValueError, match=why):
        Reward(watch=watch)
