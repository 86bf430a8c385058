"""The environment: what overrides a profile, and the secrets that settings name."""

import os
from collections.abc import Mapping
from typing import Any

from service.settings import SettingsError

PREFIX = "SCOREGATE_"


def override(tree: dict[str, Any], environ: Mapping[str, str]) -> None:
    """Set each value of *tree* that a variable names."""
    for name, value in environ.items():
        # Kubernetes puts names like SCOREGATE_PORT into every pod; ours all have a table.
        if name.startswith(PREFIX) and "__" in name:
            override_one(tree, name, value)


def override_one(tree: dict[str, Any], name: str, value: str) -> None:
    """Set one value of *tree* from the variable *name*.  Raises `SettingsError`."""
    *tables, key = name.removeprefix(PREFIX).lower().split("__")
    for table in tables:
        tree = tree.setdefault(table, {})
        if not isinstance(tree, dict):
            raise SettingsError(f"{name}: {table} is a value, not a table")
    tree[key] = value


def read_secret(variable: str, environ: Mapping[str, str] = os.environ) -> str:
    """The value of an environment variable that the settings name.  Raises `SettingsError`."""
    if not environ.get(variable):
        raise SettingsError(f"api_key_env: the environment variable {variable} is not set")
    return environ[variable]
