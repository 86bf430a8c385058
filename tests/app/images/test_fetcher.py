"""Pictures fetched from listed hosts, and from nowhere else."""

import socket
from itertools import repeat

import httpcore
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from service.core.concurrency.budget import ByteBudget
from service.core.errors import ImageTooLarge, UrlFailed, UrlNotAllowed
from service.core.settings.sections import Images
from service.images.fetcher import Fetcher, PublicNetwork

pytestmark = pytest.mark.anyio

HOST, OTHER = "pictures.test", "other.test"
PICTURE = b"the bytes of a picture"


@pytest.fixture
def server(httpserver):
    httpserver.expect_request("/a.png").respond_with_data(PICTURE)
    return httpserver


class Names:
    """Every name means this machine; *asked* says which were looked up."""

    def __init__(self, *addresses: str) -> None:
        self.addresses, self.asked = list(addresses or ["127.0.0.1"]), list[str]()

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return self.addresses


async def fetched(server: HTTPServer, url: str = "/a.png", names=None, **more) -> bytes:
    """What comes from an address on the server, whose host is listed."""
    network = more.pop("network", None) or PublicNetwork(names or Names(), allowed=lambda address: True)
    listed = [f"{HOST}:{server.port}", f"{OTHER}:{server.port}"]
    settings = {"allow_urls": True, "allowed_url_hosts": listed, **more}
    fetcher = Fetcher(Images.model_validate(settings), ByteBudget(2**30), network)
    if url.startswith("/"):
        url = f"http://{HOST}:{server.port}{url}"
    try:
        async with fetcher.open(url, urgent=True) as encoded:
            assert len(encoded) <= fetcher._budget.held
        assert 0 == fetcher._budget.held
        return encoded
    finally:
        await fetcher.aclose()


def paths(server: HTTPServer) -> list[str]:
    return [request.path for request, _ in server.log]


async def test_a_picture_comes_as_the_bytes_that_the_host_sends(server):
    """The host sees its own name and nothing of the caller's request."""
    assert PICTURE == await fetched(server)

    [(request, _)] = server.log
    assert f"{HOST}:{server.port}" == request.headers["Host"]
    assert {"Host", "Accept", "Accept-Encoding", "User-Agent"} == {*request.headers.keys()}


async def test_a_name_is_looked_up_once(server):
    """What was checked is what is connected to: a second answer could be another address."""
    names = Names()
    await fetched(server, names=names)

    assert [HOST] == names.asked


async def test_the_environment_names_no_proxy(server, monkeypatch):
    """Nobody but the host is asked."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert PICTURE == await fetched(server)


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["::ffff:10.0.0.1"], ["8.8.8.8", "169.254.169.254"]])
async def test_a_listed_host_with_an_address_of_ours_is_not_connected_to(server, addresses):
    """Not even where another of its addresses is public."""
    network = PublicNetwork(Names(*addresses))
    with pytest.raises(UrlNotAllowed, match="not public"):
        await fetched(server, network=network)

    assert [] == server.log


@pytest.mark.parametrize(
    "url",
    [
        "http://unlisted.test/a.png",
        f"http://{HOST}/a.png",
        f"http://user:password@{HOST}/a.png",
        "file:///etc/passwd",
        "ftp://pictures.test/a.png",
        "http://",
        "http://[::1",
        "http://a b/",
        "\ud800",
        "a",
    ],
)
async def test_nothing_is_looked_up_for_a_url_of_no_listed_host(server, url):
    """Whatever is wrong with it."""
    names = Names()
    with pytest.raises(UrlNotAllowed):
        await fetched(server, url, names)

    assert ([], []) == (names.asked, server.log)


async def test_a_redirect_leads_to_listed_hosts_only(server):
    """Each step is checked as the first was."""
    for path, status, location in (
        ("/near", 302, "/a.png"),
        ("/far", 308, f"http://{OTHER}:{server.port}/near"),
        ("/away", 302, "http://169.254.169.254/latest"),
        ("/file", 302, "file:///etc/passwd"),
        ("/round", 302, "/round"),
    ):
        server.expect_request(path).respond_with_data(status=status, headers={"Location": location})
    server.expect_request("/nowhere").respond_with_data(status=302)

    assert PICTURE == await fetched(server, "/far")
    for path in ("/away", "/file"):
        with pytest.raises(UrlNotAllowed):
            await fetched(server, path)
    for path in ("/round", "/nowhere"):
        with pytest.raises(UrlFailed, match="redirects"):
            await fetched(server, path)
    assert ["/far", "/near", "/a.png"] == paths(server)[:3]


async def test_cookies_are_neither_kept_nor_sent(server):
    """Not even from one step of a redirect to the next."""
    headers = {"Location": "/a.png", "Set-Cookie": "a=b"}
    server.expect_request("/cookie").respond_with_data(status=302, headers=headers)
    await fetched(server, "/cookie")

    assert not any("Cookie" in request.headers for request, _ in server.log)


@pytest.mark.parametrize(
    ("response", "error", "detail"),
    [
        (Response(b"x" * 101), ImageTooLarge, "101 bytes; at most 100"),
        (Response(repeat(b"x" * 60)), ImageTooLarge, "more than 100 bytes"),
        (Response(b"none", 404), UrlFailed, "returned status 404"),
        (Response(repeat(b"x")), UrlFailed, "very small chunks"),
        (Response(b"packed", headers={"Content-Encoding": "gzip"}), UrlFailed, "Content-Encoding"),
    ],
    ids=["declared", "in chunks without an end", "an error", "byte by byte", "packed"],
)
async def test_what_is_no_picture_within_the_limits_is_refused(server, response, error, detail):
    """Before it is read, where the host says how much it is, and else as soon as it is too much."""
    server.expect_request("/page").respond_with_response(response)
    most = 10_000 if "small" in detail else 100
    with pytest.raises(error, match=detail):
        await fetched(server, "/page", max_bytes=most)


async def test_a_host_that_does_not_answer_is_given_up(server, held):
    """After `images.url_timeout_s`, whatever time the request has left."""
    with pytest.raises(UrlFailed, match=r"more than 0\.05 seconds"):
        await fetched(server, held, url_timeout_s=0.05)


async def test_a_host_that_is_not_there_is_an_error_of_the_picture(server):
    """Whether it has no address or nobody listens."""

    async def nowhere(host: str, port: int) -> list[str]:
        raise socket.gaierror

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listed = [f"{HOST}:{free.getsockname()[1]}"]

    async def nameless(host: str, port: int) -> list[str]:
        raise UnicodeError

    for names in (Names(), nowhere, nameless):
        with pytest.raises(UrlFailed, match="cannot be reached"):
            await fetched(server, f"http://{listed[0]}/", names, allowed_url_hosts=listed)


async def test_an_address_that_takes_no_connection_is_not_the_last(server):
    """A host's other addresses are tried."""
    assert PICTURE == await fetched(server, names=Names("127.0.0.2", "127.0.0.1"))


async def test_tls_is_told_the_name_and_not_the_address():
    """The certificate is the name's."""
    told = []

    class Stream(httpcore.AsyncNetworkStream):
        async def start_tls(self, ssl_context, server_hostname=None, timeout=None):  # noqa: ASYNC109 (httpcore's)
            told.append((ssl_context.check_hostname, server_hostname))
            raise httpcore.ConnectError

        async def aclose(self):
            pass

    class Network(httpcore.AsyncNetworkBackend):
        async def connect_tcp(self, host, *args, **options):
            return Stream()

    settings = Images.model_validate({"allow_urls": True, "allowed_url_hosts": [HOST]})
    fetcher = Fetcher(settings, ByteBudget(2**30), Network())
    with pytest.raises(UrlFailed):
        async with fetcher.open(f"https://{HOST}/a.png", urgent=True):
            pass
    await fetcher.aclose()

    assert [(True, HOST)] == told
