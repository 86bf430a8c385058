"""A hostile server for pictures by URL."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from loadtest.attacks.pictures import jpeg

STALL_S = 11  # a second more than the service waits
WRITES = 4000


@dataclass
class Hosts:
    """A server reachable under any name, with its port and the requested paths."""

    port: int
    requested: list[str] = field(default_factory=list)

    def url(self, name: str, path: str) -> str:
        """Return a URL on it."""
        return f"http://{name}.test:{self.port}/{path}"


@contextmanager
def hosts() -> Iterator[Hosts]:
    """Run the server on a free port; each path is a kind of response."""
    picture = jpeg()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found.requested.append(self.path)
            try:
                self.answer(self.path.strip("/").partition("?")[0])
            except OSError:
                self.close_connection = True

        def answer(self, way: str) -> None:
            head = b"HTTP/1.1 200 OK\r\n"
            if way == "good":
                self.wfile.write(head + b"Content-Length: %d\r\n\r\n" % len(picture) + picture)
            elif way == "stops":
                self.wfile.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
                time.sleep(STALL_S)
            elif way == "hangs":
                time.sleep(STALL_S)
            elif way == "bytes":
                self.wfile.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
                self.again(b"1\r\nx\r\n" * 20_000)
            elif way == "interim":
                self.again(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 3000)
            self.close_connection = way != "good"

        def again(self, part: bytes) -> None:
            for _ in range(WRITES):
                self.wfile.write(part)

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 512

    with Server(("127.0.0.1", 0), Handler) as server:
        found = Hosts(server.server_port)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield found
        finally:
            server.shutdown()
