"""Images by URL, as a caller sees them."""

import pytest

from tests.support.pictures import b64, item, png
from tests.support.web_server import this_machine

pytestmark = pytest.mark.anyio

HOST = "pictures.test"


@pytest.fixture
def server(httpserver):
    httpserver.expect_request("/a.png").respond_with_data(png("blue"))
    return httpserver


@pytest.fixture
def parts():
    return {"network": this_machine()}


@pytest.fixture
def images(server):
    """Settings that allow the server's host, whose name means this machine."""
    return {"allow_urls": True, "allowed_url_hosts": [f"{HOST}:{server.port}"]}


def url(server, path="/a.png", host=HOST):
    return {"url": f"http://{host}:{server.port}{path}"}


async def test_without_the_setting_nothing_is_connected_to(serve, server):
    """Every metric's error, and the neighbour is scored."""
    async with serve() as client:
        items = [item(image=url(server, host="127.0.0.1")), item()]
        answer = await client.post("/score", json={"items": items})
    refused, scored = answer.json()["results"]

    assert 200 == answer.status_code
    assert "url_not_allowed" == refused["errors"]["vqascore"]["code"]
    assert "vqascore" in scored["scores"]
    assert [] == server.log


async def test_an_image_by_url_scores_as_its_bytes_do(serve, server, images):
    """The digest is that of the bytes, so that one answers for the other in the caches."""
    async with serve(images=images) as client:
        sent = await client.post("/score", json={"items": [item(image=b64(png("blue")))]})
        named = await client.post("/score", json={"items": [item(image=url(server))]})
    [one], [two] = sent.json()["results"], named.json()["results"]

    assert one["scores"] == two["scores"]
    assert {"vqascore": "hit"} == two["cache"]


async def test_a_url_that_many_items_name_is_fetched_once(serve, server, images):
    """And what is wrong with it is found once."""
    server.expect_request("/none").respond_with_data(status=404)
    wanted = [item(f"a {n}", url(server, path)) for n in range(20) for path in ("/a.png", "/none")]
    async with serve(images=images) as client:
        results = (await client.post("/score", json={"items": wanted})).json()["results"]

    assert {"url_failed"} == {result["errors"]["vqascore"]["code"] for result in results[1::2]}
    assert all("vqascore" in result["scores"] for result in results[::2])
    assert ["/a.png", "/none"] == sorted(request.path for request, _ in server.log)


async def test_a_url_beside_many_texts_of_a_dialect_is_fetched_once(serve, server, images):
    """Each text has the score of its own."""
    texts = [f"a {n}" for n in range(20)]
    async with serve(images=images, dialects={"enabled": ["rerank"]}) as client:
        body = {"text_1": texts, "text_2": [url(server)["url"]] * 20}
        several = (await client.post("/v1/score", json=body)).json()["data"]
        body = {"text_1": texts, "text_2": url(server)["url"]}
        single = (await client.post("/v1/score", json=body)).json()["data"]
        named = await client.post("/score", json={"items": [item(text, b64(png("blue"))) for text in texts]})

    scores = [result["scores"]["vqascore"] for result in named.json()["results"]]
    assert scores == [pair["score"] for pair in several] == [pair["score"] for pair in single]
    assert ["/a.png"] * 2 == [request.path for request, _ in server.log]


async def test_an_image_by_url_keeps_the_limits_of_the_others(serve, server, images):
    """Bytes, pixels and formats."""
    server.expect_request("/text").respond_with_data(b"no image")
    server.expect_request("/large").respond_with_data(png(size=(400, 400)))
    server.expect_request("/bytes").respond_with_data(bytes(10_000))
    limits = {**images, "max_pixels": 100_000, "max_bytes": 5_000}
    wanted = [item(image=url(server, path)) for path in ("/text", "/large", "/bytes")]
    async with serve(images=limits) as client:
        results = (await client.post("/score", json={"items": wanted})).json()["results"]

    codes = [result["errors"]["vqascore"]["code"] for result in results]
    assert ["image_undecodable", "image_too_large", "image_too_large"] == codes


async def test_a_url_that_takes_longer_than_the_request_is_over_with_it(serve, server, images, held):
    """The deadline is the request's."""
    body = {"items": [item(image=url(server, held))], "timeout_ms": 100}
    async with serve(images=images) as client:
        answer = await client.post("/score", json=body)

    assert (504, "deadline_exceeded") == (answer.status_code, answer.json()["code"])


@pytest.mark.parametrize("parts", [{}])  # the network of a process
async def test_a_listed_host_on_this_machine_is_not_connected_to(serve, server):
    """A list is no leave for what lies behind the firewall."""
    images = {"allow_urls": True, "allowed_url_hosts": [f"127.0.0.1:{server.port}"]}
    async with serve(images=images) as client:
        answer = await client.post("/score", json={"items": [item(image=url(server, host="127.0.0.1"))]})

    assert "url_not_allowed" == answer.json()["results"][0]["errors"]["vqascore"]["code"]
    assert [] == server.log


async def test_grids_of_pictures_by_url_never_wait_for_one_another(serve, server, images):
    """Together they want more bytes than may be held; more than one may hold is refused at once."""
    files = [png((n, 0, 0)) for n in range(9)]
    for n, file in enumerate(files):
        server.expect_request(f"/{n}.png").respond_with_data(file)
    images["max_bytes"] = max(map(len, files))
    asked = {"options": {"vqascore": {"frames": "grid"}}, "timeout_ms": 20_000}
    eight = [url(server, f"/{n}.png") for n in range(8)]
    items = [item(f"a {n}", eight[n:] + eight[:n]) for n in range(8)]
    async with serve(images=images) as client:
        answer = await client.post("/score", json={"items": items, **asked})
        nine = item(image=[url(server, f"/{n}.png") for n in range(9)])
        [refused] = (await client.post("/score", json={"items": [nine], **asked})).json()["results"]

    assert not answer.json()["partial"]
    assert "at most 8" in refused["errors"]["vqascore"]["detail"]
