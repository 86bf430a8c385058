"""The parsers of all style files, by name."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from service.questions import styles as package
from service.questions.parser import Parser


@cache
def parsers() -> Mapping[str, Parser]:
    """Return every `parser` and `released_parser` that a module of this package declares, by name."""
    modules = [import_module(f"{package.__name__}.{info.name}") for info in iter_modules(package.__path__)]
    declared = [vars(module).get(name) for module in modules for name in ("parser", "released_parser")]
    return {parser.name: parser for parser in declared if isinstance(parser, Parser)}
