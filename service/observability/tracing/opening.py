"""The tracer that the settings ask for."""

from service.observability.tracing.tracer import Tracer


def tracer(otlp_endpoint: str) -> Tracer:
    """A tracer that sends to the collector at *otlp_endpoint*, or nowhere where that is empty."""
    if not otlp_endpoint:
        return Tracer()
    from service.observability.tracing.otlp import OtlpTracer

    return OtlpTracer(otlp_endpoint)
