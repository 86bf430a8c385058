"""Configuration files of a checkpoint: a setting that is not implemented is an error."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models.core.contract import CheckpointError
from models.core.messages import in_short


def read_json(path: Path) -> dict[str, Any]:
    """Read the JSON object in *path*.  Raises `CheckpointError` if it is missing or not an object."""
    value = read_any(path)
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: not a JSON object")
    return value


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Read the list of JSON objects in *path*.  Raises `CheckpointError` as `read_json`."""
    value = read_any(path)
    if not (isinstance(value, list) and all(isinstance(each, dict) for each in value)):
        raise CheckpointError(f"{path}: not a list of JSON objects")
    return value


def read_any(path: Path) -> Any:
    """Read the JSON in *path*.  Raises `CheckpointError`."""
    if not path.is_file():
        raise CheckpointError(f"{path}: missing")
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise CheckpointError(f"{path}: {exc}") from exc


def check_model_type(path: Path, given: Mapping[str, Any], *implemented: str) -> str:
    """Return the `model_type` of a configuration.  Raises `CheckpointError` if it is not *implemented*."""
    found = given.get("model_type")
    if found not in implemented:
        raise CheckpointError(f"{path}: model_type is {found!r}, not {' or '.join(map(repr, implemented))}")
    return str(found)


def check_size(path: Path, given: Mapping[str, Any], name: str) -> None:
    """Raise `CheckpointError` unless the size *name* is a whole number above 0."""
    if type(given.get(name)) is not int or given[name] < 1:
        raise CheckpointError(f"{path}: {name} is {given.get(name)!r}, not a whole number above 0")


def check_fixed(path: Path, given: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    """Raise `CheckpointError` for a value other than the *fixed* one, the only one implemented."""
    for name, value in fixed.items():
        if name in given and given[name] != value:
            raise CheckpointError(f"{path}: {name} is {given[name]!r}; only {value!r} is implemented")


def built(path: Path, kind: type, given: Mapping[str, Any]) -> Any:
    """Build a configuration object of transformers, which checks the types of all values."""
    try:
        return kind(**given)
    except Exception as exc:  # transformers raises many kinds
        raise CheckpointError(f"{path}: {in_short(exc)}") from exc
