"""`Reward.awake`: models that are loaded while a trainer needs their scores."""

import httpx
import pytest

from scoregate import NotFound
from scoregate.trainers.reward import Reward


class Service:
    """A service that notes the changes of its models; *missing* are those that it refuses to load."""

    def __init__(self, *missing):
        self.missing, self.changes = missing, []

    def __call__(self, request):
        if request.url.path == "/models":
            metrics = {"dsg": {"direction": "higher is better", "models": ["vqa", "questions"]}}
            return httpx.Response(200, json={"models": [], "metrics": metrics})
        _, _, name, action = request.url.path.split("/")
        self.changes.append((action, name))
        if action == "load" and name in self.missing:
            return httpx.Response(404, json={"status": 404, "code": "not_found", "detail": f"no {name}"})
        return httpx.Response(200, json={"name": name, "state": f"{action}ed"})


@pytest.fixture
def awake():
    """A function: the context of a reward with that service."""
    made = []

    def awake(service, *models):
        made.append(Reward("dsg", base_url="http://test", transport=httpx.MockTransport(service)))
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
    with pytest.raises(NotFound, match="no questions"), awake(service):
        pytest.fail("the context was opened")

    assert [*LOADED, ("offload", "vqa")] == service.changes
