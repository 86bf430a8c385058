"""Settings, keys and logs: read once, checked, and silent about what they must not say."""

import json
import logging

import pytest

from service.observability.logs import JsonLines
from tests.support.fake_service import key_table
from tests.support.pictures import item


@pytest.fixture
def keys_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text(key_table("team-a", "secret"))
    return path


@pytest.mark.anyio
async def test_every_route_but_the_probes_asks_for_a_key(serve, keys_file):
    """401 with WWW-Authenticate; /livez and /readyz stay open."""
    async with serve(server={"api_keys_file": str(keys_file)}) as client:
        paths = ("/models", "/metrics", "/health", "/openapi.json", "/nothing")
        closed = [await client.get(path) for path in paths]
        probes = [(await client.get(path)).status_code for path in ("/livez", "/readyz")]
        opened = await client.get("/models", headers={"X-API-Key": "secret"})

    assert [401] * 5 == [answer.status_code for answer in closed]
    assert "Bearer" == closed[0].headers["WWW-Authenticate"]
    assert [200, 200, 200] == [*probes, opened.status_code]


@pytest.mark.anyio
async def test_logs_are_json_lines_that_hold_no_content(serve, fakes, caplog):
    """Request id, route, code, times and counts; never a prompt, image or question."""
    caplog.set_level(logging.INFO)
    async with serve() as client:
        fakes["vqa"].fault = lambda call: RuntimeError(f"saw {call.question}")
        secret = item("a confidential unicorn")
        body = {"items": [secret], "metrics": ["vqascore", "dsg"]}
        await client.post("/score", json=body, headers={"X-Request-Id": "abc"})

    ours = [record for record in caplog.records if record.name.startswith("scoregate")]
    lines = [JsonLines().format(record) for record in ours]
    access = [line for line in map(json.loads, lines) if line["logger"] == "scoregate.access"]
    assert not any("unicorn" in line or secret["image"] in line for line in lines)
    assert [("abc", "/score", 200, 1)] == [
        (line["request_id"], line["route"], line["code"], line["items"]) for line in access
    ]
    assert any("RuntimeError" == json.loads(line).get("exception") for line in lines)
