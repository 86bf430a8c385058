"""
All families of models.

Each package of this folder declares its own in `__init__.py`, and nothing else lists them.  Other packages
add theirs by entry points of the group `scoregate.models`.  Declarations need neither weights nor torch.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Any, Protocol, TypeVar

from models import families as package
from models.core.family import Family
from models.core.messages import in_short


class PluginError(Exception):
    """A package's entry point cannot be used; the message is one line that names it."""


class Named(Protocol):
    """A declaration with a name of its own."""

    @property
    def name(self) -> str: ...


D = TypeVar("D", bound=Named)


def with_plugins(own: dict[str, D], group: str, kind: type[D]) -> dict[str, D]:
    """
    Return *own* declarations and those of other packages, by name.

    Args:
        group: of the entry points, `scoregate.metrics` for example.
        kind: required type of the declarations.

    Raises:
        PluginError: an entry point cannot be imported, has another type, or a name that is taken.
    """
    declared = dict(own)
    for entry in sorted(entry_points(group=group)):
        declaration = loaded(entry)
        if not isinstance(declaration, kind):
            raise PluginError(f"{where(entry)}: is a {type(declaration).__name__}, not a {kind.__name__}")
        if declaration.name in declared:
            raise PluginError(f"{where(entry)}: there is a {group} named {declaration.name!r} already")
        declared[declaration.name] = declaration
    return declared


def loaded(entry: EntryPoint) -> Any:
    """Import *entry*.  Raises `PluginError` for any exception of the import."""
    try:
        return entry.load()
    except Exception as exc:  # the code of others
        raise PluginError(f"{where(entry)}: {in_short(exc)}") from exc


def where(entry: EntryPoint) -> str:
    """Return the entry point as its package declares it."""
    package = f" of {entry.dist.name}" if entry.dist else ""
    return f"[{entry.group}] {entry.name} = {entry.value}{package}"


GROUP = "scoregate.models"


def own() -> dict[str, Family]:
    """
    Return the families of this repository by name: every `Family` that a package of this folder declares.

    The order is that of the packages' names, then that of the declarations in a package.
    """
    found = {}
    for info in iter_modules(package.__path__):
        if info.ispkg:
            module = import_module(f"{package.__name__}.{info.name}")
            declared = [value for value in vars(module).values() if isinstance(value, Family)]
            found.update({family.name: family for family in declared})
    return found


@cache
def families() -> Mapping[str, Family]:
    """
    Return every family by name, first those of this repository.

    Raises `PluginError` for an unusable one of another package.
    """
    return with_plugins(own(), GROUP, Family)


@cache
def packages() -> Mapping[str, str]:
    """Return package and version for each family of another package."""
    entries = entry_points(group=GROUP)
    return {loaded(each).name: f"{each.dist.name} {each.dist.version}" for each in entries if each.dist}
