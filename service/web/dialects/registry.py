"""The declaration of a dialect over HTTP, and all that the modules of this folder declare."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from fastapi import APIRouter
from fastapi.routing import APIRoute

from service.web import dialects as package


@dataclass(frozen=True, slots=True)
class Dialect:
    """
    A dialect over HTTP, as `dialect` in its module or package.

    Attributes:
        name: in the setting `dialects.enabled`, and of its timeout in `dialects.timeouts_s`.
        router: its routes.
        clients: what sends it requests, in words.
        on_own_port: routes for the dialects' own port alone, whose paths the public API has on the main one.
    """

    name: str
    router: APIRouter
    on_own_port: APIRouter | None = None
    clients: str = ""

    @property
    def takes_any_path(self) -> bool:
        """True if a path may begin with any metric, so that it may be another dialect's, too."""
        return any(isinstance(each, APIRoute) and each.path.startswith("/{") for each in self.router.routes)


@cache
def dialects() -> Mapping[str, Dialect]:
    """Return every dialect by name, in the order of their modules, those that take any path last."""
    modules = [import_module(f"{package.__name__}.{info.name}") for info in iter_modules(package.__path__)]
    declared = [vars(module).get("dialect") for module in modules]
    found = [each for each in declared if isinstance(each, Dialect)]
    return {each.name: each for each in sorted(found, key=lambda each: each.takes_any_path)}


def routers(enabled: Iterable[str], *, own_port: bool = False) -> Iterator[APIRouter]:
    """Yield the routers of the *enabled* dialects; an *own_port* has more routes than the main one."""
    chosen = set(enabled)
    for dialect in dialects().values():
        if dialect.name in chosen:
            yield dialect.router
            if own_port and dialect.on_own_port:
                yield dialect.on_own_port
