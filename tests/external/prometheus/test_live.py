"""A real Prometheus scrapes the running service under load: the dashboard and the rules show something."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from math import isnan
from time import monotonic

import httpx
import pytest

from demo.process import url
from tests.external.prometheus.files import RULES, expressions, soon
from tests.support.double import TIMEOUT_MS, faulty
from tests.support.pictures import item
from tests.support.prometheus_server import EVERY, prometheus_server
from tests.support.service import until

MAY_BE_EMPTY = {
    "panel GPU memory, A": "the tests have no GPU",
}
WITHIN_S = 90
ROOM = 8  # calls that one lane holds
COST = 10  # tokens of a fake's call

new = count()  # words that no request had before, so that no cache has the answer


@pytest.fixture(scope="module")
def double(tmp_path_factory):
    """The service around models that fail on demand, with short queues and a cache of scores."""
    settings = {"SCOREGATE_QUEUE__MAX_COST": str(ROOM * COST), "SCOREGATE_CACHE__SCORES": "memory"}
    settings |= {"SCOREGATE_POLICIES__SHOW__ACCEPT": "vqascore >= 0"}
    with faulty(tmp_path_factory.mktemp("service"), **settings) as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(double, tmp_path_factory):
    """It looks often: groups that are evaluated every few minutes, too."""
    rules = soon(RULES.read_text("utf-8")).replace("interval: 5m", f"interval: {EVERY}")
    assert EVERY in rules
    with prometheus_server(tmp_path_factory.mktemp("prometheus"), double.port, rules) as running:
        until(lambda: bool(running.query("scoregate_build_info")))
        yield running


def load(double):
    """A round of requests of every kind: both lanes, repeated, refused, failing, out of memory, malformed."""
    everything = ["vqascore", "clipscore", "dsg"]
    with ThreadPoolExecutor(2 * ROOM + 1) as pool:
        held = pool.submit(double.score, f"held {next(new)}")
        until(double.is_held)
        waiting = [pool.submit(double.score, f"large {next(new)}") for _ in range(2 * ROOM)]
        until(lambda: double.counts()["entries"] == ROOM)
        double.release()
        statuses = [answer.result().status_code for answer in (held, *waiting)]
    assert {200, 429} == set(statuses)
    for lane in ("interactive", "bulk"):
        assert 200 == double.score("a red cat", metrics=everything, priority=lane).status_code
    decided = {"policy": "show", "items": [item("a dog")], "timeout_ms": TIMEOUT_MS}
    assert 200 == double.client.post("/decide", json=decided).status_code
    assert double.score("poisoned", metrics=["vqascore"]).json()["results"][0]["errors"]
    assert 422 == double.score("a cat", metrics=["none"]).status_code
    assert 404 == httpx.get(f"{url(double.port)}/none", trust_env=False).status_code


def shows(prometheus, expression):
    """Whether there is a number."""
    return any(not isnan(float(series["value"][1])) for series in prometheus.query(expression))


@pytest.fixture(scope="module")
def empty(double, prometheus):
    """The expressions that show nothing, however long the load goes on."""
    left = dict(expressions())
    assert len(left) > 50

    deadline = monotonic() + WITHIN_S
    while not left.keys() <= MAY_BE_EMPTY.keys() and monotonic() < deadline:
        load(double)
        left = {name: each for name, each in left.items() if not shows(prometheus, each)}
    return left


def test_every_expression_of_dashboard_and_rules_shows_a_number(empty):
    """But for those that cannot, each with a reason."""
    assert MAY_BE_EMPTY.keys() == empty.keys()


def test_the_batch_that_ran_out_of_memory_is_an_alert(empty, prometheus):
    """It needs no time to fire; nothing of it is missing for Alertmanager."""
    until(lambda: any(alert["alertname"] == "ScoregateOutOfMemory" for alert in prometheus.firing()))
    [alert] = [alert for alert in prometheus.firing() if alert["alertname"] == "ScoregateOutOfMemory"]

    assert ("ticket", "vqa", "tests") == (alert["severity"], alert["model"], alert["namespace"])


def test_a_service_that_works_raises_no_alarm_of_another_kind(empty, prometheus):
    """It is up, it did not restart, and no device stalls."""
    firing = {alert["alertname"] for alert in prometheus.firing()}

    assert not {"ScoregateDown", "ScoregateRestarts", "ScoregateStalled"} & firing
