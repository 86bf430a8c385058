"""An OpenTelemetry collector on a real socket, which keeps what it is sent."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class Received:
    """A span; its ids are in hexadecimal, and times in nanoseconds since 1970."""

    name: str
    trace: str
    id: str
    parent: str
    began: int
    ended: int
    attributes: dict[str, Any]
    links: tuple[tuple[str, str], ...]
    failed: bool


class Collector:
    """
    Takes `POST /v1/traces`.

    Attributes:
        spans: everything received, in the order of their ends.
        services: the names of the services that sent it.
        bodies: the requests themselves.
        status: what it answers with.
    """

    def __init__(self) -> None:
        self.spans: list[Received] = []
        self.services: set[str] = set()
        self.bodies: list[bytes] = []
        self.status = 200
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def named(self, name: str) -> list[Received]:
        """The spans of that name."""
        return [span for span in self.spans if span.name == name]

    def take(self, body: bytes) -> None:
        """Decode one request."""
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services.add(attributes(resource.resource)["service.name"])
            for scope in resource.scope_spans:
                self.spans += map(received, scope.spans)

    @contextmanager
    def running(self) -> Iterator["Collector"]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def received(span: Any) -> Received:
    """A span of the protocol."""
    return Received(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        attributes=attributes(span),
        links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        failed=span.status.code == span.status.STATUS_CODE_ERROR,
    )


def attributes(of: Any) -> dict[str, Any]:
    """Attributes by name."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of.attributes}


def handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    """The request handler of *collector*."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert "/v1/traces" == self.path
            collector.take(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(collector.status)
            self.send_header("content-type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
