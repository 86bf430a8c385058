"""The real app around fake models, whose decoders run in processes."""

from tests.support.app import fakes, serve, shared_apps
from tests.support.web_server import make_httpserver

__all__ = ["fakes", "make_httpserver", "serve", "shared_apps"]
