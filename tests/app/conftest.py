"""The real app around fake models, and a web server in threads."""

from collections.abc import Iterator
from typing import Any

import pytest

from service.web.routes import pages
from tests.support.app import fakes, serve, shared_apps
from tests.support.large_requests import opened
from tests.support.nothing import collected_alone, loaded, nothing_started
from tests.support.web_server import held, make_httpserver

__all__ = ["fakes", "held", "make_httpserver", "opened", "serve", "shared_apps"]


HEAVY = ("torch",)
EARLIER = loaded(HEAVY)  # by another run of pytest in this process, as mutmut starts them


@pytest.fixture(autouse=True, scope="session")
def _collecting_loads_little(request: pytest.FixtureRequest) -> None:
    """Fail where importing the tests of `unit` and `app` alone loads torch, which takes seconds."""
    assert not (collected_alone(request.session, "unit", "app") and loaded(HEAVY) - EARLIER)


@pytest.fixture(autouse=True, scope="module")
def _in_process() -> Iterator[None]:
    """Fail where a process is started or torch is loaded: this tier needs neither."""
    with nothing_started(HEAVY):
        yield


@pytest.fixture(autouse=True, scope="session")
def _described_once() -> Iterator[None]:
    """Build the OpenAPI document of equal apps once: it takes as long as many tests."""
    build, built = pages.openapi, {}

    def once(service: Any, requests: Any, routes: Any) -> dict[str, Any]:
        served = getattr(service, "engine", service).metrics
        parts = [requests, *service.metrics.values(), *routes]
        key = (*map(id, parts), *served, bool(service.settings.server.api_keys_file))
        if key not in built:
            built[key] = build(service, requests, routes), parts  # they stay, and so do their ids
        return built[key][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "openapi", once)
        yield
