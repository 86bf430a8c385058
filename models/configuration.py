"""Values of a checkpoint's configuration files: what is not implemented is refused, never passed over."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models.base import CheckpointError
from models.checkpoint import in_short


def whole(path: Path, given: Mapping[str, Any], name: str) -> None:
    """Refuse a size that is no size."""
    if type(given.get(name)) is not int or given[name] < 1:
        raise CheckpointError(f"{path}: {name} is {given.get(name)!r}, not a whole number above 0")


def insist(path: Path, given: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    """Refuse a value that asks for what is not implemented."""
    for name, value in fixed.items():
        if name in given and given[name] != value:
            raise CheckpointError(f"{path}: {name} is {given[name]!r}; only {value!r} is implemented")


def built(path: Path, kind: type, given: Mapping[str, Any]) -> Any:
    """transformers' own configuration object, which checks the types of all values."""
    try:
        return kind(**given)
    except Exception as exc:  # transformers raises many kinds
        raise CheckpointError(f"{path}: {in_short(exc)}") from exc
