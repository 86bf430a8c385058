"""Traces are off by default, and a collector that is away costs no answer."""

import subprocess
import sys


def test_without_a_collector_opentelemetry_is_not_imported():
    """Neither its SDK nor its exporter, by whatever the service imports to serve."""
    code = (
        "import sys; from service.process import command, launch\n"
        "from service.observability.tracing import span, tracer\n"
        "print(sorted(name for name in sys.modules if name.startswith('opentelemetry.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "opentelemetry.sdk" not in done.stdout
    assert "opentelemetry.exporter" not in done.stdout
