# One image for gateways, for Ray's workers, and for the commands.  docs/operations/containers.md explains it.
# Targets: `cuda`, the default, and `cpu`, with PyTorch's smaller wheels, whose index is TORCH_INDEX_URL.  Without
# PIP_INDEX_URL pip uses its own.
ARG BASE=docker.io/library/python:3.11-slim-bookworm

# The service's own wheel.
FROM ${BASE} AS wheel
ARG PIP_INDEX_URL
WORKDIR /source
COPY requirements.lock ./
RUN python3 -m venv /opt/build && /opt/build/bin/pip install --no-deps $(grep '^setuptools==' requirements.lock)
COPY LICENSE README.md pyproject.toml scoregate_server.py ./
COPY deploy/profiles deploy/profiles
COPY models models
COPY service service
# For the provenance of scores: docker build --build-arg COMMIT=$(git rev-parse HEAD)
ARG COMMIT
RUN echo "$COMMIT" > service/COMMIT
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

# What both targets have: how a container of this image runs.  Any user id works.
FROM ${BASE} AS runtime
RUN python3 -m venv /opt/scoregate && install -d -o 10001 -g 10001 /cache /models
WORKDIR /opt/scoregate
COPY requirements.lock requirements-ray.lock ./
# /tmp is the one place that can be written to.  Downloads would fill it, so they have a volume.
ENV PATH=/opt/scoregate/bin:$PATH HOME=/tmp USER=scoregate HF_HUB_CACHE=/models/hub
# These go before a profile's, since the health check and the published port depend on them.
ENV SCOREGATE_SERVER__HOST=0.0.0.0 SCOREGATE_SERVER__PORT=8000
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20m CMD ["python", "-c", "import os; from http.client import HTTPConnection as To; to = To('127.0.0.1', int(os.environ['SCOREGATE_SERVER__PORT']), timeout=4); to.request('GET', '/readyz'); raise SystemExit(to.getresponse().status != 200)"]
# No shell around it, so SIGTERM reaches the server.
CMD ["scoregate-server", "serve"]

FROM runtime AS cpu
ARG PIP_INDEX_URL
ARG TORCH_INDEX_URL
RUN PIP_INDEX_URL="${TORCH_INDEX_URL:?must be the index of the wheels of PyTorch for CPUs}" pip install --no-deps --no-cache-dir $(grep -E '^torch(vision)?==' requirements.lock)
RUN pip install --no-deps --no-cache-dir $(grep -hvE '^(#|cuda|nvidia|torch|triton)' requirements.lock requirements-ray.lock | sort -u)
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels pip install --no-deps --no-cache-dir /wheels/*.whl
USER 10001:10001

# The last stage is what a build without --target makes.
FROM runtime AS cuda
ARG PIP_INDEX_URL
# Several layers: the first ones are the largest, and change least.
RUN pip install --no-deps --no-cache-dir $(grep -E '^(cuda|nvidia)' requirements.lock)
RUN pip install --no-deps --no-cache-dir $(grep -E '^(torch|triton)' requirements.lock)
RUN pip install --no-deps --no-cache-dir -r requirements.lock -r requirements-ray.lock
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels pip install --no-deps --no-cache-dir /wheels/*.whl
USER 10001:10001
