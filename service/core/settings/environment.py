"""Environment variables: overrides of a profile, and the secrets that settings name."""

import os
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from service.core.settings import SettingsError

PREFIX = "SCOREGATE_"

KEY = re.compile(r"[!-~]+")  # what a header can carry: printable ASCII characters without spaces

KeyPath = tuple[str | int, ...]
Variables = dict[KeyPath, str]
"""The variable that set each path of a tree."""


def override(tree: dict[str, Any], environ: Mapping[str, str], tables: Container[str]) -> Variables:
    """
    Set each value of *tree* that a variable names, and whole *tables*.

    Values stay strings here.  `read_json` later parses those that must be tables or lists.

    Raises:
        SettingsError: a variable's name leads through a value, or its table is not JSON.
    """
    variables: Variables = {}
    for name in sorted(environ):  # a table comes before its values
        path = tuple(name.removeprefix(PREFIX).lower().split("__"))
        # Kubernetes adds names like SCOREGATE_PORT to every pod; ours contain a table, or name one.
        if name.startswith(PREFIX) and (len(path) > 1 or path[0] in tables):
            for depth in range(1, len(path)):
                if path[:depth] in variables:
                    read_json(tree, path[:depth], variables)
            table_at(tree, path, name)[path[-1]] = environ[name]
            variables[path] = name
    return variables


def table_at(tree: dict[str, Any], path: Sequence[str], name: str) -> dict[str, Any]:
    """Return the table that contains *path*; create it if it is missing.  Raises `SettingsError`."""
    for table in path[:-1]:
        tree = tree.setdefault(table, {})
        if not isinstance(tree, dict):
            raise SettingsError(f"{name}: {table} is a value, not a table")
    return tree


def read_json(tree: Any, place: KeyPath, variables: Variables) -> None:
    """Replace the string at *place* by its value as JSON.  Raises `SettingsError`."""
    name = variables.pop(place)
    for part in place[:-1]:
        tree = tree[part]
    try:
        tree[place[-1]] = from_json(tree[place[-1]], allow_inf_nan=False)
    except ValueError as exc:
        raise SettingsError(f"{name}: not JSON: {exc}") from exc


def read_secret(variable: str, environ: Mapping[str, str] = os.environ) -> str:
    """
    Return the key in the environment variable that a setting names.

    Raises:
        SettingsError: it is not set, or no header can carry it.  The message never quotes the key.
    """
    key = environ.get(variable)
    if not key:
        raise SettingsError(f"api_key_env: the environment variable {variable} is not set")
    if not KEY.fullmatch(key):
        raise SettingsError(
            f"api_key_env: the environment variable {variable} holds a line break, a space or a character"
            " outside ASCII, which no header can carry"
        )
    return key
