"""`models.md`: the families of models, their published checkpoints, and what their packages say."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from docs.render.configuration import SHARED
from docs.render.markdown import code, join, prose, table, value
from models.core.family import Family
from models.families.registry import own

INTRO = """
# Families of models

Each table under [`models`](configuration.md#modelsname) names a family. [Models](../models.md) helps to
choose, and [a package can add a family](../add-a-model.md). No code from a checkpoint is run: weights are
safetensors, and for `open_clip` and `clip_flant5` also `pytorch_model.bin`, read with `weights_only`.
"""
HEADS = ("family", "role", "loads or calls", "published checkpoints", "settings")
SIGNS = """
## Checkpoints by name

`--model` takes any checkpoint of the hub or the disk. Its files decide on the family:
"""


def page() -> str:
    """Return the page: all families, how a checkpoint is recognised, and a section for each package."""
    families = own().values()
    signs = [[f"`{each.name}`", "; ".join(signs_of(each))] for each in families]
    return join(
        INTRO,
        table(HEADS, map(row, sorted(families, key=lambda each: each.role or "~"))),
        SIGNS,
        table(("family", "sign"), [each for each in signs if each[1]]),
        *sections(own()),
    )


def row(family: Family) -> list[str]:
    """Return the row of a family."""
    return [
        f"[`{family.name}`](#{section_of(package_of(family))})",
        code(family.role) if family.role else "any",
        family.loads,
        ", ".join(published(name, more) for name, more in family.repositories.items()) + base(family),
        ", ".join(settings(family)),
    ]


def published(name: str, more: Mapping[str, Any]) -> str:
    """Return a repository of the hub, with the settings that it needs."""
    needs = ", ".join(f"{setting} = {value(given).strip('`')}" for setting, given in more.items())
    return code(name) + (f" (`{needs}`)" if needs else "")


def base(family: Family) -> str:
    """Return the model whose files are downloaded with a family's repositories; empty without one."""
    return f", with files of {code(family.base)}" if family.base else ""


def settings(family: Family) -> Iterator[str]:
    """Yield the tables of the settings that a family has, the most special one first."""
    for kind in family.settings.__mro__:
        if kind in SHARED:
            anchor = SHARED[kind].lower().replace(" ", "-")
            yield f"[{SHARED[kind]}](configuration.md#{anchor})"
        elif kind is family.settings:
            yield f"[Its own](configuration.md#{family.name})"


def signs_of(family: Family) -> Iterator[str]:
    """Yield the signs of a family's checkpoints."""
    signs = family.signs
    if signs.files:
        yield f"a file {code(*signs.files)}"
    if signs.keys:
        yield f"a key {code(*signs.keys)} in `config.json`"
    if signs.model_types:
        yield f"the `model_type` {code(*signs.model_types)}"
    if signs.architectures:
        yield f"a name in `architectures` that ends in {code(*signs.architectures)}"


def section_of(package: str) -> str:
    """Return the heading of a package's section."""
    return package.rpartition(".")[2]


def package_of(family: Family) -> str:
    """Return the package that declares a family."""
    return family.loader.partition(":")[0].rpartition(".")[0]


def sections(families: Mapping[str, Family]) -> Iterator[str]:
    """Yield what each package says of its families."""
    packages: dict[str, list[str]] = {}
    for family in families.values():
        packages.setdefault(package_of(family), []).append(family.name)
    for package, names in packages.items():
        yield f"## {section_of(package)}"
        yield f"Families: {code(*names)}."
        yield prose(sys.modules[package].__doc__)
