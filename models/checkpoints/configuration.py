"""A checkpoint's configuration files: what is not implemented is refused, never passed over."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models.core.contract import CheckpointError
from models.core.reason import in_short


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in *path*.  Raises `CheckpointError` where it is missing or something else."""
    if not path.is_file():
        raise CheckpointError(f"{path}: missing")
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise CheckpointError(f"{path}: {exc}") from exc
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: not a JSON object")
    return value


def check_size(path: Path, given: Mapping[str, Any], name: str) -> None:
    """Refuse a size that is not a whole number above 0.  Raises `CheckpointError`."""
    if type(given.get(name)) is not int or given[name] < 1:
        raise CheckpointError(f"{path}: {name} is {given.get(name)!r}, not a whole number above 0")


def check_fixed(path: Path, given: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    """Refuse a value other than the *fixed* one, which alone is implemented.  Raises `CheckpointError`."""
    for name, value in fixed.items():
        if name in given and given[name] != value:
            raise CheckpointError(f"{path}: {name} is {given[name]!r}; only {value!r} is implemented")


def built(path: Path, kind: type, given: Mapping[str, Any]) -> Any:
    """transformers' own configuration object, which checks the types of all values."""
    try:
        return kind(**given)
    except Exception as exc:  # transformers raises many kinds
        raise CheckpointError(f"{path}: {in_short(exc)}") from exc
