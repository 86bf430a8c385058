"""The parts of uvicorn that ours overrides or uses, though uvicorn promises none of them."""

import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http import h11_impl
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

METHODS = [
    *("connection_made", "connection_lost", "pause_writing", "resume_writing"),
    *("data_received", "shutdown", "send_400_response", "timeout_keep_alive_handler"),
]
ATTRIBUTES = [
    *("app", "conn", "connections", "cycle", "loop", "scope", "timeout_keep_alive", "transport"),
    "timeout_keep_alive_task",
]
OF_A_CYCLE = ["keep_alive", "message_event", "more_body", "response_complete"]
OF_A_SERVER = ["capture_signals", "handle_exit", "serve", "shutdown", "startup"]


@pytest.mark.parametrize("name", METHODS)
def test_the_protocol_has_the_methods_that_ours_overrides_or_calls(name):
    """A renamed one would never be called."""
    assert inspect.isfunction(getattr(H11Protocol, name))


@pytest.mark.parametrize("name", OF_A_SERVER)
def test_the_server_has_the_methods_that_ours_overrides(name):
    """Likewise."""
    assert inspect.isfunction(getattr(uvicorn.Server, name))


@pytest.mark.parametrize(
    ("kind", "names"), [(H11Protocol, ATTRIBUTES), (RequestResponseCycle, OF_A_CYCLE)], ids=["both", "cycle"]
)
def test_the_attributes_that_ours_reads_or_sets_exist(kind, names):
    """They are set where the object is made."""
    made = inspect.getsource(kind.__init__)

    assert [] == [name for name in names if f"self.{name}" not in made]


def test_the_rest_is_where_it_was():
    """The header that ends a connection, and the flag that ends a server."""
    assert (b"connection", b"close") == CLOSE_HEADER
    assert "should_exit" in inspect.getsource(uvicorn.Server.__init__)
    assert callable(uvicorn.Config.get_loop_factory)
    assert "flow" in inspect.getsource(h11_impl.H11Protocol.connection_made)


def test_the_minor_version_is_pinned():
    """The installed one is the one that the package asks for."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))["project"]
    [pin] = [each for each in project["dependencies"] if each.startswith("uvicorn")]
    minor = int(version("uvicorn").split(".")[1])

    assert f"uvicorn>=0.{minor},<0.{minor + 1}" == pin
