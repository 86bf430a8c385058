"""The app that the chart's probes ask."""

from tests.docs.conftest import app

__all__ = ["app"]
