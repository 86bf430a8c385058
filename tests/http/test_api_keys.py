"""Who is let in where the operator has listed keys."""

import hashlib

import pytest

from service.http.keys import Keys
from service.settings import SettingsError
from tests.http.refusals import SECRET, refused, request

pytestmark = pytest.mark.anyio


async def test_keys_are_asked_for_on_every_route_but_the_probes(serve, tmp_path):
    """Bearer and X-API-Key open the door; nothing else does, and the key is not echoed."""
    keys = tmp_path / "keys"
    keys.write_text(f"trainer:{hashlib.sha256(SECRET.encode()).hexdigest()}\n")
    async with serve(server={"api_keys_file": keys}) as client:
        for headers in (
            {},
            {"X-API-Key": SECRET[1:]},
            {"Authorization": f"Basic {SECRET}"},
            {"X-API-Key": "\xe9"},
        ):
            coded = {name: value.encode("latin-1") for name, value in headers.items()}
            for path in ("/score", "/health", "/nothing"):
                answer = await client.post(path, json=request(), headers=coded)
                refused(answer, 401, "unauthorized")
                assert "Bearer" == answer.headers["WWW-Authenticate"]
        for headers in ({"X-API-Key": SECRET}, {"Authorization": f"Bearer {SECRET}"}):
            assert 200 == (await client.post("/score", json=request(), headers=headers)).status_code
        assert [200, 200] == [(await client.get(path)).status_code for path in ("/livez", "/readyz")]


@pytest.mark.parametrize("line", ["trainer:{}", "other:" + "0" * 64 + "\ntrainer:{}"])
def test_the_hash_of_an_empty_key_is_refused_at_the_start(line, tmp_path):
    """A script writes it where its variable is not set; the line says whose it is."""
    keys = tmp_path / "keys"
    keys.write_text(line.format(hashlib.sha256(b"").hexdigest()))

    with pytest.raises(SettingsError, match=r"api_keys_file: .*the key of trainer is empty"):
        Keys.read(keys)


def test_an_absent_key_matches_no_hash():
    """Nor does an empty one, whatever the hashes are."""
    keys = Keys({"trainer": hashlib.sha256(b"").digest()})

    for headers in ({}, {"x-api-key": ""}, {"authorization": "Bearer"}, {"authorization": "Bearer  "}):
        assert keys.name_of(headers) is None
