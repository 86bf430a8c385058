"""Traces are off by default, and a collector that is away costs no answer."""

import subprocess
import sys

import pytest


def test_without_a_collector_opentelemetry_is_not_imported():
    """Neither its SDK nor its exporter, by whatever the service imports to serve."""
    code = (
        "import sys; from service.process import command, launch\n"
        "from service.observability import tracing\n"
        "print(sorted(name for name in sys.modules if name.startswith('opentelemetry.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "opentelemetry.sdk" not in done.stdout
    assert "opentelemetry.exporter" not in done.stdout


OPENING = """
import asyncio, contextlib
from service.core.settings import SettingsError
from service.observability.tracing import open_tracer

async def opened():
    async with open_tracer("http://127.0.0.1:9"):
        print("opened")

try:
    asyncio.run(opened())
except SettingsError as exc:
    print(exc)
"""


@pytest.mark.parametrize(
    ("variable", "found"),
    [
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=x", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT must be a non-negative"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE=99999", "OTEL_*: max_export_batch_size must be less"),
        ("OTEL_PROPAGATORS=b3", "opened"),
    ],
)
def test_a_variable_that_opentelemetry_rejects_is_an_error_of_the_settings(variable, found):
    """Whether it is read at the import or later; propagators have no effect here."""
    command = ["env", variable, sys.executable, "-c", OPENING]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert found in done.stdout
