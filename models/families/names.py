"""
The settings of a model by its name: a hub id, a directory, a name of open_clip, a demo model, or one behind
an OpenAI-compatible API.

A checkpoint is recognised by its configuration, never by code in it.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from models.checkpoints.files import CONFIG, FETCHED_FIRST, read_json
from models.checkpoints.locate import HUB_ID, download, locate
from models.core.contract import CheckpointError
from models.core.family import Family, Signs
from models.core.settings import http_address
from models.families.clip import FAMILY as OPEN_CLIP
from models.families.openai import released
from models.families.registry import families, own

Table = dict[str, Any]

DEMO = "demo:"
SERVED_PREFIX = "openai:"
QUICKGELU_SUFFIX = "-quickgelu"  # open_clip's architectures with this activation end so
NAME_AT_URL = re.compile(r"(?P<model>.+?)@(?P<url>https?://.*)", re.IGNORECASE | re.DOTALL)
# What a served model's name says of its role, the first that fits.
ROLE_WORDS = (
    (re.compile(r"(?i)rerank"), "reranker"),
    (re.compile(r"(?i)embedding|(?<![a-z])(clip|siglip2?)(?![a-z])"), "clip"),
    (re.compile(r"(?i)(?<![a-z])(vl|vlm|vision|llava|internvl|pixtral|molmo|omni)(?![a-z])"), "vqa"),
)


def accepted() -> str:
    """Return the forms of a model's name, in words; roles are those of this repository's families."""
    return (
        "a hub id (owner/name), a directory, a name of open_clip (NAME:TAG), a metric that has weights of its"
        " own, demo:NAME, or [ROLE=]openai:NAME@URL with a ROLE of "
        + ", ".join(served_families(own().values()))
    )


def served_families(declared: Iterable[Family]) -> dict[str, Family]:
    """Return those of the *declared* families that are named `ROLE=openai:NAME@URL`, by role."""
    listed = [family for family in declared if family.served]
    return first_of((name, family) for family in listed for name in filter(None, (family.role, family.short)))


def first_of(pairs: Iterable[tuple[str, Family]]) -> dict[str, Family]:
    """Return the first family for each key: a package cannot take what a family of this repository has."""
    found = dict[str, Family]()
    for key, family in pairs:
        found.setdefault(key, family)
    return found


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
    return by_open_clip_name(name)


def served(name: str, role: str) -> Table:
    """Return the table of `NAME@URL`, a model behind an API; by default its name suggests the *role*."""
    found = NAME_AT_URL.fullmatch(name)
    if found is None:  # the rest may hold a password
        raise CheckpointError(
            f"{SERVED_PREFIX}{name.partition('@')[0]}: must be {SERVED_PREFIX}NAME@URL, such as {SERVED_PREFIX}qwen@http://127.0.0.1:8001"
        )
    model, url = found["model"], found["url"]
    try:
        path = urlsplit(http_address(url)).path
    except ValueError as exc:
        raise CheckpointError(f"{SERVED_PREFIX}{model}@URL: the URL {exc}") from exc
    role = role or suggested(model)
    known = served_families(families().values())
    if role not in known:
        raise CheckpointError(f"{role}={SERVED_PREFIX}{model}: the role must be one of {', '.join(known)}")
    base = url.rstrip("/") + ("" if path.strip("/") else "/v1")
    family = known[role]
    return tabled(family, base_url=base, model=model, **released(family, model))


def suggested(model: str) -> str:
    """Return the role that the name of a served model suggests."""
    return next((role for words, role in ROLE_WORDS if words.search(model)), "questions")


def by_open_clip_name(name: str) -> Table:
    """Return the table of open_clip's `NAME:TAG`; without a tag it is `openai`, if there is one."""
    import open_clip  # takes a second

    model, _, tag = name.partition(":")
    tags = open_clip.list_pretrained_tags_by_model(model)
    tag = tag or ("openai" if "openai" in tags else "")
    if model not in open_clip.list_models():
        raise CheckpointError(f"--model {name}: is not {accepted()}")
    if tag not in tags:
        raise CheckpointError(
            f"--model {name}: add one of open_clip's tags, {model}:TAG; it has {', '.join(tags)}"
        )
    check_activation(name, model, tag)
    return tabled(OPEN_CLIP, model=model, pretrained=tag)


def check_activation(name: str, model: str, tag: str) -> None:
    """Reject weights of another activation; open_clip warns after their download."""
    import open_clip

    quick = bool(open_clip.get_pretrained_cfg(model, tag).get("quick_gelu"))
    if quick == bool((open_clip.get_model_config(model) or {}).get("quick_gelu")):
        return
    other = f"{model}{QUICKGELU_SUFFIX}" if quick else model.removesuffix(QUICKGELU_SUFFIX)
    use = f"; use {other}:{tag}" if other in open_clip.list_models() else ""
    raise CheckpointError(
        f"--model {name}: the weights {tag} were trained {'with' if quick else 'without'} QuickGELU, unlike"
        f" this architecture{use}"
    )


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

    if found := first(lambda signs: any((directory / file).is_file() for file in signs.files)):
        return found, {}
    config = read_json(directory / CONFIG)
    kind = str(config.get("model_type"))
    found = (
        first(lambda signs: any(key in config for key in signs.keys))
        or first(lambda signs: kind in signs.model_types)
        or by_architecture(config.get("architectures") or [])
    )
    if found is None:
        raise CheckpointError(f"--model {name}: no family loads a checkpoint of model_type {kind!r}")
    return found, config


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
