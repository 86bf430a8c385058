"""`figures.md`: what `scoregate evaluate` computes, and what each class of settings says of it."""

from collections.abc import Iterator
from pathlib import Path

from docs.render.markdown import join, rest
from scoregate.evaluation.figures import FIGURES, Figure

EXAMPLES = Path(__file__).with_name("examples")
INTRO = """
# Figures of scoregate evaluate

[How far to trust scores](../evaluation.md) says which figure answers which question, and
[the command](cli.md#evaluate) what is common to all: intervals, and rows that are left out. The examples use
tables of `tests/golden/evaluation` and of `tests/golden/examples`.
"""


def page() -> str:
    """Return the page: a section for each figure."""
    return join(INTRO, *(part for name, figure in FIGURES.items() for part in section(name, figure)))


def section(name: str, figure: Figure) -> Iterator[str]:
    """Yield the section of a figure: what it is, its example, and what the docstring of its settings says."""
    yield f"## {name}"
    yield f"{figure.help[:1].upper()}{figure.help[1:]}."
    yield console("evaluate", name)
    yield rest(figure.settings.__doc__)


def console(command: str, name: str) -> str:
    """Return the example of a command with what it prints."""
    return f"```console\n{(EXAMPLES / command / name).with_suffix('.txt').read_text('utf-8')}```"
