"""`Reward.awake`: models that are loaded while a trainer needs their scores."""

from collections import Counter

import httpx2 as httpx
import pytest

from scoregate.errors import ConflictError, NotFoundError
from scoregate.trainers.reward import Reward
from tests.support.pauses import Unpaused


class Service:
    """
    A service that notes the changes of its models.

    *missing* are those that it refuses to load.  The first *conflicts* changes of each kind are refused:
    another one is under way.
    """

    def __init__(self, *missing, conflicts=0):
        self.missing, self.changes = missing, []
        self.conflicts = Counter(load=conflicts, offload=conflicts)

    def __call__(self, request):
        if request.url.path == "/models":
            metrics = {"dsg": {"direction": "higher is better", "models": ["vqa", "questions"]}}
            return httpx.Response(200, json={"models": [], "metrics": metrics})
        _, _, name, action = request.url.path.split("/")
        if self.conflicts[action]:
            self.conflicts[action] -= 1
            return httpx.Response(409, json={"status": 409, "code": "conflict", "detail": "under way"})
        self.changes.append((action, name))
        if action == "load" and name in self.missing:
            return httpx.Response(404, json={"status": 404, "code": "not_found", "detail": f"no {name}"})
        return httpx.Response(200, json={"name": name, "state": f"{action}ed"})


@pytest.fixture
def awake():
    """A function: the context of a reward with that service."""
    made = []

    def awake(service, *models, **settings):
        transport = Unpaused(service)
        made.append(Reward("dsg", base_url="http://test", transport=transport, **settings))
        return made[-1].awake(*models)

    yield awake
    for reward in made:
        reward.close()


LOADED = [("load", "vqa"), ("load", "questions")]
OFFLOADED = [("offload", "questions"), ("offload", "vqa")]


def test_the_models_of_the_metric_are_there_while_the_context_is_open(awake):
    """And offloaded afterwards, the last one first."""
    service = Service()
    with awake(service):
        assert LOADED == service.changes

    assert LOADED + OFFLOADED == service.changes


def test_models_are_offloaded_after_an_exception(awake):
    """Which is the trainer's own."""
    service = Service()
    with pytest.raises(ZeroDivisionError), awake(service):
        raise ZeroDivisionError

    assert OFFLOADED == service.changes[2:]


def test_models_may_be_named(awake):
    """No others are changed."""
    service = Service()
    with awake(service, "vqa"):
        pass

    assert [("load", "vqa"), ("offload", "vqa")] == service.changes


def test_a_model_that_cannot_be_loaded_is_the_error(awake):
    """Those that were loaded are offloaded, the others are not touched."""
    service = Service("questions")
    with pytest.raises(NotFoundError, match="no questions"), awake(service):
        pytest.fail("the context was opened")

    assert [*LOADED, ("offload", "vqa")] == service.changes


def test_a_change_by_another_rank_is_waited_for(awake):
    """It is a conflict until it has ended."""
    service = Service(conflicts=3)
    with awake(service):
        assert LOADED == service.changes

    assert OFFLOADED == service.changes[2:]


def test_a_change_that_does_not_end_is_the_error(awake):
    """When the time is up."""
    with pytest.raises(ConflictError), awake(Service(conflicts=99), timeout_s=0.01):
        pytest.fail("the context was opened")
