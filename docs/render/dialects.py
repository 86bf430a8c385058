"""`dialects.md`: the wire formats of other projects, with their paths and the fields that they read."""

import inspect
import sys
from collections.abc import Callable, Iterator
from importlib import import_module

from fastapi.routing import APIRoute
from pydantic import BaseModel

from docs.render.markdown import code, inherited, join, prose, summary, table
from docs.render.schema import default, words
from service.core.settings.dialects import OVER_HTTP, Timeouts
from service.web import dialects as package
from service.web.dialects.registry import Dialect, dialects
from service.web.dialects.wire import Loose

INTRO = """
# Dialects

Wire formats of trainers and rerankers, whose clients only need another address.
[Settings](configuration.md#dialects) switch them on. Unknown fields are ignored.
"""
HEADS = ("dialect", "for", "paths", "timeout, s")
OTHER_PORT = " on the dialects' own port"


def page() -> str:
    """Return the page: what all dialects have in common, and a section for each."""
    found = dialects()
    in_order = [found[name] for name in OVER_HTTP]
    return join(
        INTRO,
        table(HEADS, [[*map(str, row(each)), timeout(each.name)] for each in in_order]),
        "## Common rules",
        prose(package.__doc__),
        *(part for each in in_order for part in section(each)),
        *(part for each in found.values() if each.app for part in section_of_port(each, each.app)),
    )


def row(dialect: Dialect) -> list[str]:
    """Return the first cells of a dialect."""
    return [f"[`{dialect.name}`](#{dialect.name})", dialect.clients, code(*routes(dialect))]


def timeout(name: str) -> str:
    """Return the default timeout of a dialect in seconds."""
    return f"{Timeouts.model_fields[name].default:g}"


def routes(dialect: Dialect) -> dict[str, str]:
    """Return the first line of each path's endpoint, by method and path."""
    found = {}
    for router, where in ((dialect.router, ""), (dialect.on_own_port, OTHER_PORT)):
        for route in router.routes if router else ():
            assert isinstance(route, APIRoute)
            path = f"{'/'.join(route.methods or ())} {route.path}{where}"
            found[path] = summary(route.endpoint.__doc__)
    return found


def section(dialect: Dialect) -> Iterator[str]:
    """Yield the section of a dialect: its paths, what its module says, and the fields of its bodies."""
    module = f"{package.__name__}.{dialect.name}"
    yield f"## {dialect.name}"
    yield prose(import_module(module).__doc__)
    yield table(("path", "answer"), ([code(path), said] for path, said in routes(dialect).items()))
    for kind in bodies(module):
        yield f"**{kind.__name__}**: {prose(kind.__doc__)}"
        yield fields(kind)


def section_of_port(dialect: Dialect, app: Callable[..., object]) -> Iterator[str]:
    """Yield the section of a dialect that has an *app* on a port of its own: what its package says."""
    yield f"## {dialect.name}"
    yield f"On a port of its own, `dialects.{dialect.name}_port`; the timeout is {timeout(dialect.name)} s."
    yield prose(sys.modules[app.__module__.rpartition(".")[0]].__doc__)


def bodies(module: str) -> list[type[BaseModel]]:
    """Return the classes of the bodies that a module or package declares, in the order of its lines."""
    found = [
        each for each in kinds(Loose) if each.__module__ == module or each.__module__.startswith(f"{module}.")
    ]
    return sorted(found, key=place)


def kinds(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield all classes below *base*."""
    for each in base.__subclasses__():
        yield each
        yield from kinds(each)


def place(kind: type[BaseModel]) -> tuple[str, int]:
    """Return the file and the line of a class."""
    return kind.__module__, inspect.getsourcelines(kind)[1]


def fields(kind: type[BaseModel]) -> str:
    """Return the table of a body's fields."""
    schema, about = kind.model_json_schema(), inherited(kind)
    required = schema.get("required", ())
    rows = [
        [code(name), default(field, name in required), words(field, code), about.get(name, "")]
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("field", "default", "value", "meaning"), rows)
