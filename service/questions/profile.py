"""The question styles of a profile, from its files, and the parsers that they may name."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from service.core.settings import SettingsError
from service.core.settings.questions import StyleSettings
from service.questions import styles as package
from service.questions.style import Parser, Style


@cache
def parsers() -> Mapping[str, Parser]:
    """Return every parser that a module of `service.questions.styles` declares, by name."""
    modules = [import_module(f"{package.__name__}.{info.name}") for info in iter_modules(package.__path__)]
    declared = [value for module in modules for value in vars(module).values() if isinstance(value, Parser)]
    return {parser.name: parser for parser in declared}


def styles_of(tables: Mapping[str, StyleSettings], taken: set[str]) -> dict[str, dict[str, Style]]:
    """
    Return the styles of a profile, by name, below the name of the style whose metrics can use them.

    Args:
        tables: `questions.styles`.
        taken: names of metrics and of their styles.

    Raises:
        SettingsError: a name is taken, there is no such parser, or a file is missing, empty or for no call.
    """
    found: dict[str, dict[str, Style]] = {}
    for name, table in tables.items():
        place = f"questions.styles.{name}"
        if name in taken:
            raise SettingsError(f"{place}: there is a metric or a style of that name")
        parser = parsers().get(table.parser)
        if parser is None:
            known = ", ".join(parsers())
            raise SettingsError(f"{place}.parser: there is no parser {table.parser!r}; there are {known}")
        texts = texts_of(f"{place}.instructions", table.instructions, parser)
        if table.examples is not None:
            examples = texts_of(f"{place}.examples", table.examples, parser)
            texts = {call: f"{text}\n\n{examples[call]}" for call, text in texts.items()}
        found.setdefault(parser.base.name, {})[name] = parser.make(name, texts)
    return found


def texts_of(place: str, files: Path | Mapping[str, Path], parser: Parser) -> dict[str, str]:
    """Return the text of the file of each call, without newlines at the end.  Raises `SettingsError`."""
    by_call = {"": files} if isinstance(files, Path) else files
    if by_call.keys() != set(parser.calls):
        needed = "one file" if parser.calls == ("",) else f"a table with {', '.join(parser.calls)}"
        raise SettingsError(f"{place}: this parser needs {needed}")
    texts = {}
    for call in parser.calls:
        key = f"{place}.{call}" if call else place
        try:
            texts[call] = by_call[call].read_text("utf-8-sig").rstrip("\n")
        except (OSError, ValueError) as exc:
            raise SettingsError(f"{key}: {exc}") from exc
        if not texts[call].strip():
            raise SettingsError(f"{key}: {by_call[call]} is empty")
    return texts
