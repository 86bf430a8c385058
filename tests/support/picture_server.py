"""A web server on loopback that serves pictures, well or badly."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HELD_S = 10  # at most, so that a test that fails ends


@dataclass
class Page:
    """An answer; without a *length* it is sent in chunks until the reader leaves."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    length: bool = True


@dataclass
class PictureServer:
    """
    Attributes:
        pages: by path; a path that is not there is held until the test is over.
        seen: path and headers of each request.
    """

    port: int
    pages: dict[str, Page] = field(default_factory=dict)
    seen: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def picture_server() -> Iterator[PictureServer]:
    """A server on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found.seen.append((self.path, dict(self.headers)))
            page = found.pages.get(self.path)
            if page is None:
                found.over.wait(HELD_S)
                self.close_connection = True
                return
            self.send_response(page.status)
            for name, value in page.headers.items():
                self.send_header(name, value)
            if page.length:
                self.send_header("Content-Length", str(len(page.body)))
            else:
                self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            if page.length:
                self.wfile.write(page.body)
            else:
                self.send_chunks(page.body)

        def send_chunks(self, body: bytes) -> None:
            try:
                while not found.over.is_set():
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
            except OSError:
                self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = PictureServer(server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            found.over.set()
            server.shutdown()
            thread.join()
