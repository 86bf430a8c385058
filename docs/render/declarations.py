"""`declarations.md`: the fields of what packages and operators declare: metrics, families, files."""

import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from itertools import takewhile
from typing import Any, cast

from pydantic import BaseModel

from docs.render.markdown import code, inherited, join, rest, table
from models.core.family import Served, Signs
from service.metrics.rubrics import prompt_files
from service.metrics.rubrics.checklists import Checklist
from service.metrics.rubrics.form import AnswerForm
from service.metrics.rubrics.rubric import Rubric, RubricCall
from service.plugins import Family, Metric

INTRO = """
# Declarations

The fields of a [metric](../add-a-metric.md), of a [family of models](../add-a-model.md), of a
[rubric](../guides/your-own-judge.md), and of a [checklist](../guides/your-own-judge.md#checklists).
"""


def page() -> str:
    """Return the page: a section for each kind."""
    kinds = (Metric, Family, Signs, Served)
    models = (Rubric, RubricCall, AnswerForm, Checklist)
    return join(
        INTRO,
        *(part for kind in (*kinds, *models) for part in section(kind)),
        "## Released reward models",
        rest(prompt_files.__doc__),
        table(["rubric", "score", "files", "about"], released()),
    )


def released() -> Iterator[list[str]]:
    """Yield a row for each rubric of a released model, with its files and its first comment."""
    for name, text in prompt_files.RELEASED_RUBRICS.items():
        tree = tomllib.loads(text)
        about = takewhile(lambda line: line.startswith("#"), text.splitlines())
        files = [call["prompt_file"] for call in tree["calls"]]
        yield [code(name), code(tree["score"]), code(*files), " ".join(line.strip("# ") for line in about)]


def section(kind: type) -> Iterator[str]:
    """Yield the section of a class: its fields with their defaults."""
    yield f"## {kind.__name__}"
    said = inherited(kind)
    rows = sorted(defaults(kind), key=lambda row: row[1] != "required")
    yield table(
        ["field", "default", "meaning"], ([code(name), default, said[name]] for name, default in rows)
    )


def defaults(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the name of each field, and its default as the page writes it."""
    if issubclass(kind, BaseModel):
        for name, info in kind.model_fields.items():
            default = (
                "required" if info.is_required() else written(info.get_default(call_default_factory=True))
            )
            yield name, default
        return
    for field in fields(cast(Any, kind)):
        if field.init and field.name != "_":
            yield field.name, default_of(field)


def default_of(field: Field[Any]) -> str:
    """Return the default of a field of a dataclass as the page writes it."""
    value = field.default if field.default_factory is MISSING else field.default_factory
    return "required" if value is MISSING else written(value)


def written(value: Any) -> str:
    """Return a default in code type; "not set" for None."""
    if value is None:
        return "not set"
    if is_dataclass(value) and not isinstance(value, type):
        return code(f"{type(value).__name__}()")
    return code(str(getattr(value, "__name__", None) or (f'"{value}"' if isinstance(value, str) else value)))
