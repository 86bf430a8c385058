"""Requests to a server: tries and bounds, and what a table must say of it."""

import gzip

import httpx
import pytest

from models.core.contract import UpstreamError
from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.serving.backends.upstream import MAX_BYTES, MAX_CAUSE, ServerFailed, Upstream, explained
from service.serving.loading import load_models

pytestmark = pytest.mark.anyio


def scripted(*answers):
    """A transport that gives those answers in turn, and the times waited between them."""
    left, waits = list(answers), []

    def answer(request):
        given = left.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    async def sleep(seconds):
        waits.append(seconds)

    upstream = Upstream(
        "http://x/v1", timeout_s=5, max_in_flight=1, transport=httpx.MockTransport(answer), sleep=sleep
    )
    return upstream, waits, left


async def test_what_passes_by_itself_is_tried_again():
    """Refused connections and overload, each wait about twice the last."""
    upstream, waits, left = scripted(
        httpx.ConnectError("refused"), httpx.Response(503), httpx.Response(200, json={"fine": 1})
    )

    assert {"fine": 1} == await upstream.post("chat/completions", {})
    assert [] == left
    assert 0.12 <= waits[0] <= 0.38
    assert 0.25 <= waits[1] <= 0.75
    await upstream.aclose()


async def test_a_server_that_stays_away_is_given_up():
    """After three tries, with the last one's reason."""
    upstream, waits, left = scripted(*[httpx.ConnectError("refused")] * 4)

    with pytest.raises(UpstreamError, match=r"cannot be reached \(ConnectError\)"):
        await upstream.post("chat/completions", {})
    assert (2, 1) == (len(waits), len(left))
    await upstream.aclose()


SAID = "question '0':\n  label 'é' is not one token"


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (400, {"error": {"message": SAID}}, "question '0': label 'é' is not one token"),
        (422, {"object": "error", "message": SAID}, "question '0': label 'é' is not one token"),
        (501, {"error": {"message": "no decisions"}}, "no decisions"),
        (400, {"error": {"message": "a" * 1000}}, "a" * MAX_CAUSE),
        (400, {"error": {"message": 5}}, ""),
        (400, [SAID], ""),
        (400, "not JSON", ""),
        (401, {"error": {"message": "wrong key: sk-1"}}, ""),
        (500, {"error": {"message": "/srv/models/m"}}, ""),
    ],
)
async def test_a_rejection_has_the_servers_message_beside_its_text(status, body, cause):
    """In one line and bounded; what is not about the request stays at the server."""
    content = {"text": body} if isinstance(body, str) else {"json": body}
    upstream, _, _ = scripted(httpx.Response(status, **content))

    with pytest.raises(ServerFailed) as caught:
        await upstream.post("systemone", {})
    text = f"returned status {status}"
    assert (text, cause) == (str(caught.value), caught.value.cause)
    assert (f"{text}: {cause}" if cause else text) == explained(caught.value)
    await upstream.aclose()


def test_an_error_of_another_kind_is_explained_by_its_text():
    assert "returned no logprobs" == explained(UpstreamError("returned no logprobs"))


async def test_an_answer_is_read_up_to_a_bound():
    """A body larger than the bound is no answer."""
    upstream, _, _ = scripted(httpx.Response(200, content=b" " * (MAX_BYTES + 1)))

    with pytest.raises(UpstreamError, match="more than 8 MiB"):
        await upstream.post("chat/completions", {})
    await upstream.aclose()


@pytest.mark.parametrize("method", ["post", "command"])
async def test_a_compressed_answer_is_not_unpacked(method):
    """A few kB can hold gigabytes: the request accepts no encoding, and an answer with one is refused."""
    packed = httpx.Response(
        200, headers={"Content-Encoding": "GZIP, gzip"}, content=gzip.compress(gzip.compress(b"{}"))
    )
    upstream, _, _ = scripted(packed)

    with pytest.raises(ServerFailed, match="with a Content-Encoding"):
        await (upstream.post("systemone", {}) if method == "post" else upstream.command("../sleep"))
    assert "identity" == packed.request.headers["Accept-Encoding"]
    await upstream.aclose()


async def test_the_answer_to_a_command_is_read_up_to_the_same_bound():
    """Nobody needs it, and it is not kept in memory either."""
    upstream, _, _ = scripted(httpx.Response(200, content=b" " * (MAX_BYTES + 1)))

    with pytest.raises(ServerFailed, match="more than 8 MiB"):
        await upstream.command("../sleep")
    await upstream.aclose()


def settings(**table):
    return Settings.model_validate({"models": {"questions": {"family": "openai", **table}}})


@pytest.mark.parametrize(
    "table",
    [
        {"model": "m"},
        {"base_url": "http://x/v1"},
        {"base_url": "x/v1", "model": "m"},
        {"base_url": "http://user:secret@x/v1", "model": "m"},
    ],
)
def test_a_remote_model_needs_an_address_and_a_name(table):
    """And the address holds no secret: keys come from the environment."""
    with pytest.raises(ValueError, match="base_url"):
        settings(**table)


@pytest.mark.parametrize(
    "address",
    [
        "http://x/v1\n",
        "http://x /v1",
        "http://x:99999/v1",
        "http://x:0/v1",
        "http://x:port/v1",
        "http://x/v1?secret=1",
        "http://x/v1#secret",
        "http://secret@x/v1",
        "http://[::1/v1",
        "http://:8000/v1",
        "http:///v1",
        "http://é/v1",
        "http://x/v1\x00",
        "file:///v1",
    ],
)
def test_an_address_that_no_path_can_be_appended_to_is_refused(address):
    """With its form, and without the address: a part of it may be a secret."""
    with pytest.raises(ValueError, match=r"base_url\n.*must be http://HOST") as refused:
        settings(base_url=address, model="m")
    assert "secret" not in str(refused.value)
    assert address not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    ["http://x/v1", "HTTP://x/v1", "https://x.example:65535/a/v1/", "http://[::1]:8000", "http://x/%20"],
)
def test_any_other_address_is_one_that_requests_go_to(address):
    """Whatever the case of its scheme: what the settings accept, the client does."""
    read = settings(base_url=address, model="m").models["questions"]

    Upstream(read.base_url, timeout_s=1, max_in_flight=1)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (None, "is not set"),
        ("", "is not set"),
        ("sk-secret\n", "holds a line break"),
        ("sk-secret secret", "holds a line break, a space"),
        ("sk-sécret", "outside ASCII"),
        ("\tsk-secret", "which no header can carry"),
    ],
)
def test_a_key_that_is_not_there_or_cannot_be_sent_ends_the_start(key, reason, monkeypatch):
    """The variable is named; its value never is."""
    monkeypatch.delenv("LLM_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("LLM_KEY", key)
    with pytest.raises(SettingsError, match=f"LLM_KEY .*{reason}") as refused:
        load_models(settings(base_url="http://x/v1", model="m", api_key_env="LLM_KEY"))
    assert "cret" not in str(refused.value)


def test_a_key_in_place_of_the_name_of_a_variable_is_refused_and_not_quoted():
    """Else the line that says which variable is not set would have it."""
    with pytest.raises(ValueError, match="api_key_env") as refused:
        settings(base_url="http://x/v1", model="m", api_key_env="sk-secret")
    assert "secret" not in str(refused.value)
