"""The deprecated file of keys, with one key per line; to be removed in version 0.2."""

import re
from typing import Any

LINE = re.compile(r"([\w.-]{1,64}):([0-9a-f]{64})((?:\s+\w+=\S+)*)")
FORMAT = "NAME:SHA256-OF-THE-KEY, optionally followed by lanes=LANE,LANE and quota=NUMBER"


def tables_of_lines(text: str) -> dict[str, dict[str, Any]]:
    """Parse the lines into the tables of the TOML format.  Raises `ValueError`, which quotes no line."""
    tables = {}
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        matched = LINE.fullmatch(line)
        if not matched:
            raise ValueError(f"a line is not {FORMAT}")
        fields = [f"sha256={matched[2]}", *matched[3].split()]
        table: dict[str, Any] = dict(field.split("=", 1) for field in fields)
        if len(table) < len(fields):
            raise ValueError(f"a right of {matched[1]} is given twice; a line is {FORMAT}")
        if "lanes" in table:
            table["lanes"] = table["lanes"].split(",")
        if table.get("quota", "").isdecimal():
            table["quota"] = int(table["quota"])
        tables[matched[1]] = table
    if not tables:
        raise ValueError(f"it has no line {FORMAT}")
    return tables
