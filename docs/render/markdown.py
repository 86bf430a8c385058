"""Parts of Markdown pages: tables, and the prose and the entries of docstrings."""

import inspect
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

SECTIONS = re.compile(r"^(Attributes|Args|Raises|Returns|Yields):\n", re.MULTILINE)
ENTRY = re.compile(r"^    ([\w., ]+): (.*(?:\n     .*)*)", re.MULTILINE)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """
    Return a table whose last column has sentences; an empty text without rows.

    Columns that are empty in all *rows* are left out.
    """
    lines = [[*map(cell, row[:-1]), capital(cell(row[-1]))] for row in rows]
    shown = [number for number in range(len(heads)) if any(line[number] for line in lines)]
    if not lines:
        return ""
    first, *others = ([line[number] for number in shown] for line in [[*heads], *lines])
    written = [f"| {' | '.join(line)} |" for line in others]
    return "\n".join([f"| {' | '.join(first)} |", "|---" * len(shown) + "|", *written]) + "\n"


def cell(text: str) -> str:
    """Return *text* as a cell: one line, without bars that would end it."""
    return " ".join(text.split()).replace("|", "\\|")


def capital(text: str) -> str:
    """Return *text* with a capital, if it is more than a word."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0].isalpha() and " " in text else text


def code(*names: str) -> str:
    """Return names in code type."""
    return ", ".join(f"`{name}`" for name in names)


def value(content: Any) -> str:
    """Return a value as JSON in code type; "not set" for None, and "empty" for an empty text."""
    if content is None or content == "":
        return "not set" if content is None else "empty"
    return code(json.dumps(content, ensure_ascii=False, default=str))


def join(*parts: str) -> str:
    """Return the parts that are not empty, with an empty line between two."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def prose(text: str | None) -> str:
    """Return a docstring without its sections; each paragraph is one line, but lists and blocks are kept."""
    cleaned = inspect.cleandoc(text or "")
    described = SECTIONS.split(cleaned, maxsplit=1)[0].strip()
    fences = re.split(r"(^```.*?^```$)", described, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else unwrapped(part) for part in fences)


def unwrapped(text: str) -> str:
    """Return *text* with each paragraph and each entry of a list on one line, and one space after a stop."""
    joined = re.sub(r"(?<=\S)\n(?!\n|\* |\d\. |\|| {4,})\s*(?=\S)", " ", text)
    return re.sub(r"(?<=[.:;)])  (?=\S)", " ", joined)


def first_line(text: str | None) -> str:
    """Return the first paragraph of a docstring."""
    return prose(text).partition("\n")[0]


def summary(text: str | None) -> str:
    """Return the first paragraph of a function's docstring, without the errors that it raises."""
    return first_line(text).partition(" Raises `")[0]


def rest(text: str | None) -> str:
    """Return the paragraphs of a docstring after the first one."""
    return prose(text).partition("\n")[2]


def entries(text: str | None) -> dict[str, str]:
    """Return the entries of a docstring's attributes or arguments; one may be about several names."""
    _, *sections = SECTIONS.split(inspect.cleandoc(text or "")) or [""]
    found = dict(zip(sections[::2], sections[1::2], strict=True))
    listed = found.get("Attributes", "") + found.get("Args", "")
    return {
        name.strip(): " ".join(said.split())
        for names, said in ENTRY.findall(listed)
        for name in names.split(",")
    }


def inherited(kind: Any) -> dict[str, str]:
    """Return the entries of a class and of its bases, of which a `TypedDict` remembers the written ones."""
    found: dict[str, str] = {}
    for base in getattr(kind, "__orig_bases__", None) or getattr(kind, "__bases__", None) or ():
        found |= inherited(base)
    return found | entries(kind.__doc__ if isinstance(kind, type) else "")
