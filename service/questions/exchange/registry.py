"""All file formats of question sets, one module each in this package."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from service.questions import exchange as package
from service.questions.exchange.contract import Format


@cache
def formats() -> Mapping[str, Format]:
    """Return every format by name: the `format` of each module."""
    modules = [import_module(f"{package.__name__}.{info.name}") for info in iter_modules(package.__path__)]
    declared = [vars(module).get("format") for module in modules]
    return {found.name: found for found in declared if isinstance(found, Format)}
