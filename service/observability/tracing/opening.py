"""The tracer that the settings ask for."""

from importlib.util import find_spec

from service.observability.tracing.tracer import Tracer

PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def tracer(otlp_endpoint: str) -> Tracer:
    """A tracer that sends to the collector at *otlp_endpoint*, or nowhere where that is empty."""
    if not otlp_endpoint:
        return Tracer()
    from service.observability.tracing.otlp import OtlpTracer

    return OtlpTracer(otlp_endpoint)


def lacks_packages() -> bool:
    """Whether the packages of the extra `otel` are missing."""
    try:
        return any(find_spec(name) is None for name in PACKAGES)
    except ModuleNotFoundError:  # of a package around it
        return True
