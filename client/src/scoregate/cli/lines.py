"""A line of a result of `scoregate batch`: one row of the data set, its scores and its errors."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from scoregate.cli.datasets import Row
from scoregate.cli.exits import UsageFault

Line = dict[str, Any]
Key = tuple[str | None, str | None]
FIELDS = {"row", "image", "prompt", "sha256", "scores", "errors"}
UNREADABLE = "unreadable_row"


@dataclass(frozen=True)
class Plan:
    """
    What a run asks for.  Results of another plan are no results of this one.

    Attributes:
        uses: the columns of pictures that its metrics look at beside a row's own.
    """

    metrics: Sequence[str]
    models: Mapping[str, str]  # what may give the scores: `id@revision` by configured name
    options: Mapping[str, Any]
    explain: bool = False
    uses: Sequence[str] = ()

    def check(self, line: Line, place: str) -> None:
        """Raise `UsageFault` where *line*, at *place*, is of another plan: its scores are not comparable."""
        found = {"metrics": sorted({*line["scores"], *line["errors"]}), "options": line.get("options", {})}
        wanted = {"metrics": sorted(self.metrics), "options": dict(self.options)}
        if line["scores"]:
            found["models"], wanted["models"] = line.get("models", {}), dict(self.models)
        for what in found:
            if found[what] != wanted[what]:
                held, asked = json.dumps(found[what]), json.dumps(wanted[what])
                raise UsageFault(
                    f"{place} was scored with the {what} {held}, now they are {asked}: name another file"
                )

    def covers(self, line: Line) -> bool:
        """Whether *line* holds all that is asked for."""
        return not line["errors"] and (not self.explain or "details" in line)


def line(
    plan: Plan, row: Row, sha256: str | None, scores: Line, errors: Line, details: Line | None = None
) -> Line:
    """What is written of a row."""
    content = {
        "row": row.number,
        "image": row.image,
        "prompt": row.prompt,
        "sha256": sha256,
        "scores": scores,
        "errors": errors,
        "models": dict(plan.models),
    }
    more = {"options": dict(plan.options), "columns": finite(row.columns), "details": dict(details or {})}
    return content | {name: value for name, value in more.items() if value}


def finite(columns: Mapping[str, Any]) -> Line:
    """JSON has no NaN and no infinity: those cells become null."""
    return {name: None if isinstance(v, float) and not isfinite(v) else v for name, v in columns.items()}


def unreadable(plan: Plan, row: Row, why: str) -> Line:
    """A row that was not sent has the same error under every metric."""
    error = {"code": UNREADABLE, "detail": why}
    return line(plan, row, None, {}, dict.fromkeys(plan.metrics, error))


def key(line: Line) -> Key:
    """What finds a row again, wherever it stands in the data set."""
    return line["image"], line["prompt"]


def dumped(line: Line) -> bytes:
    """*line* as bytes of JSON; non-ASCII text stays readable, but for what is no text."""
    try:
        return json.dumps(line, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(line).encode() + b"\n"


def loaded(data: bytes, place: str) -> Line:
    """The line in *data*.  Raises `UsageFault` where it is no result of `scoregate batch`."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        content = None
    if not is_line(content):
        raise UsageFault(f"{place} is no result of `scoregate batch`: name another file")
    known: Line = content
    return known


def is_line(content: Any) -> bool:
    """Whether *content* has the shape of a line."""
    if not (isinstance(content, dict) and content.keys() >= FIELDS):
        return False
    scores, errors = content["scores"], content["errors"]
    return isinstance(scores, dict) and isinstance(errors, dict) and all(map(is_error, errors.values()))


def is_error(content: Any) -> bool:
    return isinstance(content, dict) and all(
        isinstance(content.get(name), str) for name in ("code", "detail")
    )
