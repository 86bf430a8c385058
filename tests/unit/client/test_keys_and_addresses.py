"""The key and the address of a client: checked where they enter, and never a secret in a text."""

import re
from functools import partial

import httpx2 as httpx
import pytest

from scoregate import AsyncClient, Client
from scoregate.trainers import Reward
from tests.support.answers import scored
from tests.support.pictures import png


def test_the_key_is_sent_and_never_shown(monkeypatch):
    """As it was given, else as the environment has it."""
    keys = []

    def answer(request):
        keys.append(request.headers.get("authorization"))
        return scored(request)

    monkeypatch.setenv("SCOREGATE_API_KEY", "of-the-environment")
    for key in ({"api_key": "given"}, {}, {"api_key": ""}):
        with Client("http://test", transport=httpx.MockTransport(answer), **key) as client:
            client.score(png(), "x")
            assert "given" not in repr(client) + repr(vars(client))

    assert ["Bearer given", "Bearer of-the-environment", None] == keys


def test_the_address_comes_from_the_environment(monkeypatch):
    """If none is given; and it must be one."""
    assert "http://127.0.0.1:8000" == Client().base_url
    monkeypatch.setenv("SCOREGATE_BASE_URL", "https://scores.example/")
    assert "https://scores.example" == Client().base_url
    assert "http://other" == Client("http://other").base_url
    with pytest.raises(ValueError, match="must begin with http"):
        Client("localhost:8000")


@pytest.mark.parametrize("made", [Client, AsyncClient, partial(Reward, "vqascore")])
@pytest.mark.parametrize(
    "key", ["sk-secret\n", "sk-secret\r\n", " sk-secret", "sk-s\u00e9cret", "\u201csecret\u201d"]
)
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(made, key):
    """Where it enters: no request is sent, so none is retried."""
    with pytest.raises(ValueError, match=r"^api_key must have visible ASCII characters only") as raised:
        made(base_url="http://test", api_key=key)

    assert "cret" not in str(raised.value)
    assert raised.value.__context__ is None


def test_a_bad_key_of_the_environment_is_named_by_its_variable(monkeypatch):
    """As a file that is read with its line break sets it."""
    monkeypatch.setenv("SCOREGATE_API_KEY", "sk-secret\n")
    with pytest.raises(ValueError, match=r"^SCOREGATE_API_KEY must have visible ASCII characters only"):
        Client("http://test")
    with pytest.raises(ValueError, match=r"^SCOREGATE_API_KEY must have visible ASCII characters only"):
        Reward(base_url="http://test")([png()], ["x"])


BAD_ADDRESSES = {
    "http://test\n": "must not have spaces or line breaks",
    "http://te st": "must not have spaces or line breaks",
    " http://test": "must begin with http:// or https://",
    "localhost:8000": "must begin with http:// or https://",
    "http://": "must name a host",
    "http://:8000": "must name a host",
    "http://[::1": "is not a valid address",
    "http://test:port": "is not a valid address",
    "http://test:99999": "must have a port from 1 to 65535",
    "http://test:0": "must have a port from 1 to 65535",
    "http://test?x=1": "must not have a query or a fragment",
    "http://test/#a": "must not have a query or a fragment",
}


@pytest.mark.parametrize("made", [Client, Reward])
@pytest.mark.parametrize(("address", "fault"), BAD_ADDRESSES.items())
def test_an_address_that_cannot_be_one_is_refused_in_one_line(monkeypatch, made, address, fault):
    """At once, also if the environment has it."""
    line = f"base_url {fault}, and is {address!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        made(base_url=address)
    monkeypatch.setenv("SCOREGATE_BASE_URL", address)
    with pytest.raises(ValueError, match=f"^SCOREGATE_BASE_URL {re.escape(fault)}"):
        made().lower_is_better() if made is Reward else made()


@pytest.mark.parametrize(
    "address", ["http://me:pa55@test", "http://me:pa/55@test", "http://me:pa55@test:99999"]
)
def test_a_password_in_an_address_is_refused_without_showing_it(address):
    """It would stand in the text of each error that names the service."""
    with pytest.raises(
        ValueError, match=r"^base_url (must not have a user or a password|is not a valid)"
    ) as raised:
        Client(address)

    assert "55" not in str(raised.value)


def test_the_scheme_of_an_address_may_be_written_in_capitals():
    """And certificates are checked nevertheless, by the address that is used."""
    assert "https://Test/prefix" == Client("HTTPS://Test/prefix/").base_url
