"""The nginx of deploy/nginx.conf, for real, before the service around models that fail on demand."""

import re
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import orjson
import pytest

from demo.process import HOST, url
from service.core.settings.sections import MAX_TIMEOUT_MS, Server
from tests.support.double import TIMEOUT_MS, faulty
from tests.support.nginx_server import CONFIGURATION, nginx_server
from tests.support.pictures import item
from tests.support.raw import calling, head
from tests.support.service import until

ROOM = 8  # calls that one lane holds
COST = 10  # tokens of a fake's call
PROXY_BUFFERS = 8 * 8 * 1024  # what nginx holds of a response in memory
LIMIT = Server().body_limit_mb * 2**20


@pytest.fixture(scope="module")
def double(tmp_path_factory):
    """The service, with short queues."""
    with faulty(tmp_path_factory.mktemp("service"), SCOREGATE_QUEUE__MAX_COST=str(ROOM * COST)) as running:
        yield running


@pytest.fixture(scope="module")
def nginx(double, tmp_path_factory):
    """The port of the nginx before it."""
    with nginx_server(tmp_path_factory.mktemp("nginx"), double.port) as port:
        yield port


@pytest.fixture
def client(nginx):
    with httpx.Client(base_url=url(nginx), timeout=TIMEOUT_MS / 1000, trust_env=False) as client:
        yield client


def directive(name):
    """The value of one that the configuration has once."""
    [value] = re.findall(rf"^ *{name} +([^;]+);", CONFIGURATION.read_text("utf-8"), re.MULTILINE)
    return value


def body(*prompts, **more):
    return {"items": [item(prompt) for prompt in prompts], "metrics": ["vqascore"], **more}


def test_a_score_passes(client, double):
    """The same number as from the service itself."""
    through, direct = client.post("/score", json=body("a red cat")), double.score("a red cat")

    assert 200 == through.status_code
    assert through.json()["results"][0]["scores"] == direct.json()["results"][0]["scores"]


def test_a_body_over_the_limit_is_refused_as_the_service_would(nginx, double):
    """By nginx, before it is sent: the same status and code, as a problem with the request's id."""
    answers = []
    for port in (nginx, double.port):
        with calling(port) as [caller]:
            answers.append(caller.send(head(Content_Length=LIMIT + 1, X_Request_Id="mine")).answer())
    through, direct = answers
    mine, its = orjson.loads(through.body), orjson.loads(direct.body)
    parts = ("type", "title", "status", "code", "request_id")

    assert (413, "too_large") == through.said
    assert {name: mine[name] for name in parts} == {name: its[name] for name in parts}
    assert direct.headers["content-type"] == through.headers["content-type"]


def test_a_body_at_the_limit_reaches_the_service(client):
    """It holds no JSON, and only the service says so."""
    answer = client.post("/score", content=b" " * LIMIT, headers={"Content-Type": "application/json"})

    assert (400, "malformed") == (answer.status_code, answer.json()["code"])


@pytest.mark.parametrize("path", ["/score", "/metrics", "/none"])
def test_the_request_id_of_the_caller_comes_back_once(client, path):
    """Whoever answers."""
    answer = client.get(path, headers={"X-Request-Id": "run-7.b"})

    assert ["run-7.b"] == answer.headers.get_list("x-request-id")


@pytest.mark.parametrize("given", [{}, {"X-Request-Id": 'a "b"'}, {"X-Request-Id": "x" * 129}])
def test_without_a_proper_id_nginx_makes_one_that_the_service_logs(client, double, given):
    """So one id leads through both logs."""
    answer = client.post("/score", json=body("a red cat"), headers=given)
    [made] = answer.headers.get_list("x-request-id")

    assert re.fullmatch(r"[0-9a-f]{32}", made)
    until(lambda: made in double.log.read_text("utf-8"))


def test_a_long_answer_is_not_cut(client, double):
    """Longer than what nginx holds of it in memory."""
    direct = httpx.get(f"{url(double.port)}/openapi.json", timeout=60, trust_env=False)

    assert len(direct.content) > PROXY_BUFFERS
    assert direct.content == client.get("/openapi.json").content


@pytest.mark.parametrize(
    "path",
    ["/metrics", "//metrics", "/%6Detrics", "/./metrics", "/metrics?x", "/metrics/", "/docs/../metrics"],
)
def test_the_instruments_are_not_public(nginx, path):
    """However the path is written."""
    with calling(nginx) as [caller]:
        answer = caller.send(head(path, "GET", Connection="close")).answer()

    assert answer.status in (403, 307, 404)
    assert b"scoregate_" not in answer.body


def test_a_refusal_says_when_to_come_back(client, double):
    """Retry-After is the service's own, and nginx sends nothing a second time."""
    with ThreadPoolExecutor(2 * ROOM + 1) as pool:
        held = pool.submit(client.post, "/score", json=body("held", timeout_ms=TIMEOUT_MS))
        until(double.is_held)
        sent = [
            pool.submit(client.post, "/score", json=body(f"a cat {n}", timeout_ms=TIMEOUT_MS))
            for n in range(2 * ROOM)
        ]
        until(lambda: double.counts()["entries"] == ROOM)
        double.release()
        answers = [each.result() for each in (held, *sent)]
    refused = [answer for answer in answers if answer.status_code == 429]

    assert refused
    assert all(re.fullmatch("[0-9]+", answer.headers["retry-after"]) for answer in refused)
    assert {200, 429} == {answer.status_code for answer in answers}


def test_the_connection_to_the_service_is_kept(tmp_path):
    """Ten requests, one connection; counted by a server in the service's place."""
    opened = []

    class Counted(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            opened.append(self.client_address)
            super().setup()

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer((HOST, 0), Counted)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        with nginx_server(tmp_path, server.server_port) as port:
            statuses = {httpx.get(f"{url(port)}/score", trust_env=False).status_code for _ in range(10)}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    assert {200} == statuses
    assert 1 == len(opened)


def test_its_limits_are_those_of_the_service():
    """Bodies as large, answers as late as the longest timeout, idle connections closed here first."""
    server = Server()

    assert f"{server.body_limit_mb}m" == directive("client_max_body_size")
    assert MAX_TIMEOUT_MS / 1000 < float(directive("proxy_read_timeout").removesuffix("s"))
    assert server.keep_alive_s > float(directive("keepalive_timeout").split("s")[0])
    assert server.body_timeout_s == float(directive("client_body_timeout").removesuffix("s"))
    assert ("on", "off") == (directive("proxy_request_buffering"), directive("proxy_next_upstream"))
