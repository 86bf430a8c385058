"""
The settings of a model by its name: a hub id, a directory, a name of open_clip, a demo model, or one behind
an OpenAI-compatible API.

A checkpoint is recognised by its configuration, never by code in it.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from models.checkpoints.files import CONFIG, FETCHED_FIRST, read_json
from models.checkpoints.locate import HUB_ID, download, locate
from models.core.contract import CheckpointError
from models.core.family import Family, Served, Signs, found
from models.core.settings import http_address
from models.families.registry import families, own

Table = dict[str, Any]
T = TypeVar("T")

DEMO = "demo:"
SERVED_PREFIX = "openai:"
NAME_AT_URL = re.compile(r"(?P<model>.+?)@(?P<url>https?://.*)", re.IGNORECASE | re.DOTALL)
SERVED_ROLE = "questions"  # the role of a served model whose name suggests no other


def accepted() -> str:
    """Return the forms of a model's name, in words; libraries and roles are of this repository's families."""
    libraries = [f"a name of {family.name} (NAME:TAG)" for family in own().values() if family.library]
    roles = ", ".join(served_families(own().values()))
    forms = ["a hub id (owner/name)", "a directory", *libraries, "a metric that has weights of its own"]
    return f"{', '.join(forms)}, demo:NAME, or [ROLE=]openai:NAME@URL with a ROLE of {roles}"


def exact_roles() -> list[str]:
    """Return the roles of those families of this repository that have float32 on a GPU by default."""
    return sorted({family.role for family in own().values() if family.exact})


def served_families(declared: Iterable[Family]) -> dict[str, tuple[Family, Served]]:
    """Return those of the *declared* families that are named `ROLE=openai:NAME@URL`, by role."""
    listed = [(family, family.served) for family in declared if family.served]
    return first_of((name, each) for each in listed for name in (each[0].role, each[1].short) if name)


def first_of(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Return the first value for each key: a package cannot take what a family of this repository has."""
    firsts = dict[str, T]()
    for key, value in pairs:
        firsts.setdefault(key, value)
    return firsts


def table_of(name: str) -> Table:
    """
    Return the table of the model *name*, with its `role` and `family`.

    The configuration of a hub id that is not known is downloaded.

    Raises:
        CheckpointAway: the hub can't be reached now.
        CheckpointError: *name* is not a model, or one of a kind that no family loads.
    """
    role, is_served, rest = name.partition(SERVED_PREFIX)
    if is_served and (not role or role.endswith("=")):
        return served(rest, role.removesuffix("="))
    if table := published(name):
        return table
    if name.startswith(DEMO) or Path(name).expanduser().is_dir():
        return recognised(name, locate(name).directory)
    if HUB_ID.fullmatch(name):
        return recognised(name, download(name, "", FETCHED_FIRST))
    return of_library(name)


def served(name: str, role: str) -> Table:
    """Return the table of `NAME@URL`, a model behind an API; by default its name suggests the *role*."""
    parts = NAME_AT_URL.fullmatch(name)
    if parts is None:  # the rest may hold a password
        raise CheckpointError(
            f"{SERVED_PREFIX}{name.partition('@')[0]}: must be {SERVED_PREFIX}NAME@URL, such as {SERVED_PREFIX}qwen@http://127.0.0.1:8001"
        )
    model, url = parts["model"], parts["url"]
    try:
        path = urlsplit(http_address(url)).path
    except ValueError as exc:
        raise CheckpointError(f"{SERVED_PREFIX}{model}@URL: the URL {exc}") from exc
    known = served_families(families().values())
    role = role or next((each for each, (_, names) in known.items() if names.fits(model)), SERVED_ROLE)
    if role not in known:
        raise CheckpointError(f"{role}={SERVED_PREFIX}{model}: the role must be one of {', '.join(known)}")
    base = url.rstrip("/") + ("" if path.strip("/") else "/v1")
    family, names = known[role]
    return tabled(family, base_url=base, model=model, **names.settings_of(model))


def of_library(name: str) -> Table:
    """Return the table of the model that a family's library has by *name*.  Raises `CheckpointError`."""
    for family in families().values():
        if family.library and (settings := found(family.library)(name)) is not None:
            return tabled(family, **settings)
    raise CheckpointError(f"--model {name}: is not {accepted()}")


def recognised(name: str, directory: Path) -> Table:
    """Return the table of the checkpoint *name*, whose configuration is in *directory*."""
    family, config = family_of(name, directory)
    if family.signs.refusal and (reason := family.signs.refusal(config)):
        raise CheckpointError(f"--model {name}: {reason}")
    return tabled(family, checkpoint=name)


def family_of(name: str, directory: Path) -> tuple[Family, Table]:
    """
    Return the family of the checkpoint *name*, by the signs of all families, and its `config.json`.

    The latter is empty where a file is the sign: there may be none.  Raises `CheckpointError`.
    """

    def first(fits: Callable[[Signs], bool]) -> Family | None:
        return next((family for family in families().values() if fits(family.signs)), None)

    if family := first(lambda signs: any((directory / file).is_file() for file in signs.files)):
        return family, {}
    config = read_json(directory / CONFIG)
    kind = str(config.get("model_type"))
    family = (
        first(lambda signs: any(key in config for key in signs.keys))
        or first(lambda signs: kind in signs.model_types)
        or by_architecture(config.get("architectures") or [])
    )
    if family is None:
        raise CheckpointError(f"--model {name}: no family loads a checkpoint of model_type {kind!r}")
    return family, config


def by_architecture(names: Sequence[Any]) -> Family | None:
    """Return the family with the longest end of any of *names*."""
    ends = first_of((end, family) for family in families().values() for end in family.signs.architectures)
    fitting = [end for end in ends if any(str(name).endswith(end) for name in names)]
    return ends[max(fitting, key=len)] if fitting else None


def published(name: str) -> Table | None:
    """Return the table of a published model; None for any other *name*."""
    family = next((each for each in families().values() if name in each.repositories), None)
    if family is None:
        return None
    more = family.repositories[name]
    return tabled(family, **more) if "model" in more else tabled(family, **more, checkpoint=name)


def tabled(family: Family, **settings: Any) -> Table:
    """Return a table of *family* with *settings*."""
    return {"role": family.role, "family": family.name, **settings}
