"""Scoregate: the service between the socket and the models."""

import os

__version__ = "0.1.0"

# Read by libraries when they are imported.  A propagator that is not installed ends the process, and the
# folder of another program's metrics would hold ours too.  Spans here follow W3C's `traceparent` only, and
# each process serves its own metrics.
for name in (
    "OTEL_PROPAGATORS",
    "OTEL_PYTHON_CONTEXT",
    "PROMETHEUS_MULTIPROC_DIR",
    "prometheus_multiproc_dir",
):
    os.environ.pop(name, None)
