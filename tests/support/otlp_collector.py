"""An OpenTelemetry collector on the server of pytest-httpserver, which keeps what it is sent."""

from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response


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

    def __init__(self, server: HTTPServer) -> None:
        self.spans: list[Received] = []
        self.services: set[str] = set()
        self.bodies: list[bytes] = []
        self.status = 200
        self.url = f"http://{server.host}:{server.port}"
        server.expect_request("/v1/traces", "POST").respond_with_handler(self.take)

    def named(self, name: str) -> list[Received]:
        """The spans of that name."""
        return [span for span in self.spans if span.name == name]

    def take(self, request: Request) -> Response:
        """Decode one request."""
        self.bodies.append(request.data)
        for resource in ExportTraceServiceRequest.FromString(request.data).resource_spans:
            self.services.add(attributes(resource.resource)["service.name"])
            for scope in resource.scope_spans:
                self.spans += map(received, scope.spans)
        reply = ExportTraceServiceResponse().SerializeToString()
        return Response(reply, self.status, content_type="application/x-protobuf")


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
