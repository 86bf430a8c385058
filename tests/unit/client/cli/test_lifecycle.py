"""`scoregate models`: the changes of models as a command."""

import json

import httpx2 as httpx
import pytest

CHANGE = {"name": "vqa", "state": "offloaded", "device_bytes_before": 9, "device_bytes_after": 0}


@pytest.fixture
def service():
    """A function of requests, which it keeps."""

    def answer(request):
        assert "application/json" == request.headers["content-type"]  # as the operator's port demands
        answer.requests.append((request.method, request.url.path, request.content))
        return httpx.Response(answer.status, json=answer.content)

    answer.requests, answer.status, answer.content = [], 200, CHANGE
    return answer


@pytest.mark.parametrize("action", ["load", "offload", "unload"])
def test_the_answer_of_the_service_is_printed(command, service, action):
    """As JSON, with the memory before and after; the request is JSON, too."""
    status, out, _ = command(service, "models", action, "vqa")

    assert (0, CHANGE) == (status, json.loads(out))
    assert [("POST", f"/models/vqa/{action}", b"{}")] == service.requests


def test_a_load_sends_its_revision(command, service):
    """In the body."""
    status, _, _ = command(service, "models", "load", "vqa", "--revision", "abc")
    [(_, path, body)] = service.requests

    assert (0, "/models/vqa/load", {"revision": "abc"}) == (status, path, json.loads(body))


@pytest.mark.parametrize("action", ["offload", "unload"])
def test_a_revision_belongs_to_a_load(command, service, action):
    """Nothing is sent otherwise."""
    status, _, err = command(service, "models", action, "vqa", "--revision", "abc")

    assert (2, []) == (status, service.requests)
    assert "--revision belongs to load" in err


def test_a_refusal_is_one_line(command, service):
    """With the service's code, and the status of a wrong call."""
    service.status = 409
    service.content = {"status": 409, "code": "conflict", "detail": "models.vqa: unload is under way"}
    status, out, err = command(service, "models", "load", "vqa")

    assert (2, "") == (status, out)
    assert ["scoregate: conflict: models.vqa: unload is under way"] == err.splitlines()
