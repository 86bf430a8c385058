"""
Loading of the settings: a TOML profile with overrides from the environment, checked against the metrics.

Every value can be overridden by `SCOREGATE_` and its path joined by `__` in upper case, for example
`SCOREGATE_SERVER__PORT=9000` or `SCOREGATE_MODELS__VQA__CHECKPOINT=/path`.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from service.core.fields import first_fault
from service.core.settings import SettingsError
from service.core.settings.dialects import Dialects
from service.core.settings.environment import KeyPath, Variables, override, read_json
from service.core.settings.tree import Settings
from service.metrics.common.composites import composites
from service.metrics.common.contract import Metric
from service.metrics.common.registry import (
    Assignment,
    assign,
    check_rewards,
    chosen_models,
    configured,
    metrics,
    styled,
)
from service.scoring.policies import served_policies

# Error types for values of another kind.
TABLES_AND_LISTS = {"model_type", "dict_type", "list_type", "tuple_type", "set_type", "frozen_set_type"}

PROFILES = Path(__file__).parent / "profiles"  # a checkout has a link to deploy/profiles here
DEMO_PROFILE = PROFILES / "demo.toml"


def load_settings(
    profile: Path | None, environ: Mapping[str, str] = os.environ, over: Mapping[str, str] | None = None
) -> Settings:
    """
    Load *profile* (by default the demo profile) with *environ*'s overrides.

    A name of a profile in the package, such as `gpu-24gb`, stands for its file.

    Args:
        over: variables in place of the environment's, from the command line.

    Raises:
        SettingsError: an unreadable file, an unknown setting, or a value out of range.
        PluginError: another package's metric or family of models cannot be used.
    """
    path = file_of(profile or DEMO_PROFILE)
    return settings_of(tree_of(path), path, {**environ, **(over or {})})


def tree_of(file: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.  Raises `SettingsError`."""
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except FileNotFoundError as exc:
        names = profile_names()
        there = f"there is no such file, and no profile of this name; there are {', '.join(names)}"
        raise SettingsError(f"{file}: {there}{meant(str(file), names)}") from exc
    except OSError as exc:
        raise SettingsError(f"{file}: {exc.strerror or exc}") from exc
    except (ValueError, RecursionError) as exc:
        raise SettingsError(f"{file}: {exc}") from exc


def profile_names() -> list[str]:
    """Return the names of the package's profiles."""
    return sorted(file.stem for file in PROFILES.glob("*.toml"))


def meant(name: str, names: Sequence[str]) -> str:
    """Return a question about the one of *names* that is most like *name*; empty if none is."""
    folded = {each.casefold(): each for each in names}
    close = get_close_matches(name.casefold(), folded, 1)
    return f"; did you mean {folded[close[0]]}?" if close else ""


def file_of(profile: Path) -> Path:
    """Return *profile*, or the file of the package's profile that it names."""
    shipped = PROFILES / f"{profile}.toml"
    return shipped if shipped.is_file() and not profile.is_file() else profile


def settings_of(
    tree: dict[str, Any],
    source: Path | str,
    environ: Mapping[str, str] = os.environ,
    defaults: Mapping[str, str] | None = None,
) -> Settings:
    """
    Return the settings of *tree*, read from *source*, with *environ*'s overrides.

    Args:
        defaults: variables that *environ* may replace.

    Raises:
        SettingsError, PluginError: as `load_settings`.
    """
    environ = {**(defaults or {}), **environ}
    variables: Variables = {}
    try:
        variables = override(tree, environ, Settings.model_fields)
        settings = validated(tree, dict(variables))
        known, assigned = declared(settings)
        check_rewards(known, assigned, settings.dialects)
        served_policies(known, assigned, settings.policies)
    except ValidationError as exc:
        culprit = setter(exc.errors()[0]["loc"], variables) or source
        raise SettingsError(f"{culprit}: {first_fault(exc)}") from exc
    except SettingsError as exc:
        raise SettingsError(f"{source}: {exc}") from exc
    return settings


def declared(settings: Settings) -> tuple[dict[str, Metric], Assignment]:
    """Return every metric of the settings by name, and the models of their roles.  Raises `SettingsError`."""
    plain = configured(metrics(), settings)
    assigned = assign(plain, settings)
    asking = styled(plain, settings)
    return {**asking, **composites(asking, settings, assigned)}, assigned


def for_metrics(settings: Settings, options: Mapping[str, Mapping[str, Any]]) -> Settings:
    """
    Return *settings* with the models alone that some metrics may use, and without policies and dialects.

    Args:
        options: of each of these metrics.

    Raises:
        SettingsError: a metric is unknown or lacks a model, or its options are wrong.
    """
    known, assigned = declared(settings)
    used, parts = set[str](), set[str]()
    for name, given in options.items():
        if name not in known:
            raise SettingsError(no_such("metric", name, known))
        check_options(known[name], given)
        for part in known[name].asks(known[name].options()):
            if lacking := [role for role in known[part].roles if (part, role) not in assigned]:
                raise SettingsError(f"{name} is not served here: no model has the role {', '.join(lacking)}")
            used |= {assigned[part, role] for role in known[part].all_roles if (part, role) in assigned}
            parts.add(part.partition(".")[0])  # an output has the models of its metric
    tables = {name: table for name, table in settings.metrics.items() if name in parts}
    for name in tables:
        used.update(chosen_models(known, name, settings).values())
    return settings.model_copy(
        update={
            "models": {name: table for name, table in settings.models.items() if name in used},
            "metrics": tables,
            "composites": {name: each for name, each in settings.composites.items() if name in options},
            "policies": {},
            "dialects": Dialects(),
        }
    )


def check_options(metric: Metric, given: Mapping[str, Any]) -> None:
    """Raise `SettingsError` for options that *metric* does not have, or whose values it does not take."""
    fields = metric.options.model_fields
    for option in given.keys() - fields.keys():
        raise SettingsError(no_such("option", option, fields, f"{metric.name} has "))
    try:
        metric.options.model_validate(given)
    except ValidationError as exc:
        raise SettingsError(first_fault(exc, metric.name)) from exc


def no_such(kind: str, name: str, known: Iterable[str], who: str = "there are ") -> str:
    """Return one line for a name that is not known: the nearest one, and all of them."""
    names = [*known]
    return f"no {kind} {name}{meant(name, names) or ';'} {who}{', '.join(names) or 'none'}"


def setter(place: KeyPath, variables: Variables) -> str:
    """Return the variable that set a place, or the table around it; empty if none did."""
    around = (place[:depth] for depth in range(len(place), 0, -1))
    return next((variables[each] for each in around if each in variables), "")


def validated(tree: dict[str, Any], variables: Variables) -> Settings:
    """Validate *tree*.  For a table or a list, the text of a variable is read as JSON."""
    while True:
        try:
            return Settings.model_validate(tree)
        except ValidationError as exc:
            texts = [error["loc"] for error in exc.errors() if error["type"] in TABLES_AND_LISTS]
            found = [place for place in texts if place in variables]
            if not found:
                raise
            for place in found:
                read_json(tree, place, variables)
