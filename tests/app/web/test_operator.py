"""The operator's port, which has no keys: changes of models come from its own origin alone."""

import httpx
import pytest

from service.web.app import operator_app
from tests.support.app import service_of

pytestmark = pytest.mark.anyio

OWN = "localhost:9090"
JSON = {"Content-Type": "application/json"}
FOREIGN = {
    "an origin of the web": {"Origin": "https://evil.example"},
    "another port of loopback": {"Origin": "http://localhost:3000"},
    "a file": {"Origin": "null"},
    "one of two origins": [("Origin", f"http://{OWN}"), ("Origin", "https://evil.example")],
    "no origin, but a site": {"Sec-Fetch-Site": "cross-site"},
    "a page of the same site": {"Sec-Fetch-Site": "same-site"},
    "a name that points here": {"Host": "evil.example"},
    "another machine's address": {"Host": "192.0.2.1:9090"},
    "no address": {"Host": "[::"},
    "no host": {"Host": ""},
}
OTHER_TYPES = [
    {"Content-Type": "text/plain"},
    {"Content-Type": "application/x-www-form-urlencoded"},
    {"Content-Type": "multipart/form-data; boundary=b"},
    {},
]
OWN_PAGES = {
    "curl": {},
    "its own page": {"Origin": f"http://{OWN}", "Sec-Fetch-Site": "same-origin"},
    "an address of loopback": {"Host": "127.0.0.2:9090"},
    "another one": {"Host": "[::1]:9090"},
    "a listed name": {"Host": "GPU-1.example.org:9090"},
    "a listed address": {"Host": "[2001:db8::1]:9090"},
}


@pytest.fixture
async def operators(serve):
    hosts = ["gpu-1.example.org", "[2001:db8::1]"]
    async with serve(server={"operator_hosts": hosts}) as client:
        app = operator_app(service_of(client), client._transport.app.state.bodies)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{OWN}") as own:
            yield own


def headers(*given):
    """Of a list or a dict each."""
    return [pair for each in given for pair in (each.items() if isinstance(each, dict) else each)]


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize("name", FOREIGN)
async def test_a_page_of_another_origin_cannot_change_models(operators, fakes, name, method):
    """Nor can one whose name was pointed to this address."""
    answer = await operators.request(
        method, "/models/vqa/unload", headers=headers(JSON, FOREIGN[name]), content=b"{}"
    )

    assert 403 == answer.status_code, answer.text
    assert "forbidden" == answer.json()["code"]


@pytest.mark.parametrize("sent", OTHER_TYPES)
async def test_a_type_that_pages_may_send_anywhere_is_refused(operators, sent):
    """A form's types and plain text need no preflight request."""
    answer = await operators.post("/models/vqa/unload", headers=sent, content=b"{}")

    assert 415 == answer.status_code
    assert "application/json" in answer.json()["detail"]


@pytest.mark.parametrize("name", OWN_PAGES)
async def test_loopback_and_listed_hosts_change_models(operators, name):
    answer = await operators.post("/models/vqa/unload", headers=headers(JSON, OWN_PAGES[name]), content=b"{}")

    assert 200 == answer.status_code, answer.text
    assert "unloaded" == answer.json()["state"]


async def test_prometheus_scrapes_by_any_address(operators):
    """Whatever its headers are."""
    answer = await operators.get("/metrics", headers={"Host": "10.0.0.7:9090", "Origin": "https://a.example"})

    assert 200 == answer.status_code
    assert "scoregate_" in answer.text
