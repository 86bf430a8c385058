"""The app that the chart's probes ask."""

from tests.app.docs.conftest import app

__all__ = ["app"]
