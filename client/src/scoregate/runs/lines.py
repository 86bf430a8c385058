"""A line of a result of `scoregate batch`: one row of the data set, its scores and its errors."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from scoregate.answers import is_number
from scoregate.data.columns import is_column
from scoregate.data.rows import Row, dumped_options
from scoregate.notices import Notice
from scoregate.records import BadInput

Line = dict[str, Any]
Key = tuple[str | None, str | None, str]
FIELDS = {"row", "image", "prompt", "sha256", "scores", "errors"}
OBJECTS = ("scores", "errors", "models", "options", "own_options", "question_sets", "columns", "details")
LISTS = ("warnings", "lower_is_better", "own_metrics")
UNREADABLE = "unreadable_row"
ANY_MODELS = "--allow-model-change"


@dataclass(frozen=True)
class Plan:
    """
    The parameters of a run.  Results of another plan cannot be reused.

    Attributes:
        uses: the further columns of pictures that its metrics use.
        lower: the metrics whose lower scores are better.
        any_models: reuse lines of other models.
        strict: do not reuse lines with warnings.
        orient: how pictures are rotated; None: as the service is set.
        max_bytes: of a file that the service takes; None if it does not say.
        mixed: rows may have metrics of their own, so that an answer has the models of some.
    """

    metrics: Sequence[str]
    models: Mapping[str, str]  # what may give the scores: `id@revision` by configured name
    options: Mapping[str, Any]
    explain: bool = False
    uses: Sequence[str] = ()
    lower: Sequence[str] = ()
    any_models: bool = False
    strict: bool = False
    orient: str | None = None
    max_bytes: int | None = None
    mixed: bool = False

    def check(self, line: Line, place: str) -> None:
        """Raise `BadInput` if *line*, at *place*, is of another plan: its scores are not comparable."""
        found: Line = {"metrics": sorted({*line["scores"], *line["errors"]})}
        own = [name for name in line.get("own_metrics", ()) if name in self.metrics]
        wanted: Line = {"metrics": sorted(own or self.metrics)}
        found["options"], wanted["options"] = line.get("options", {}), dict(self.options)
        found["orient"], wanted["orient"] = line.get("orient"), self.orient
        if line["scores"] and not self.any_models and self.has_others(line.get("models", {})):
            found["models"], wanted["models"] = line.get("models", {}), dict(self.models)
        for what in found:
            if found[what] != wanted[what]:
                held, now = json.dumps(found[what]), json.dumps(wanted[what])
                raise BadInput(
                    f"{place} was scored with the {what} {held}, now they are {now}: name another file"
                    + f", or give {ANY_MODELS}" * (what == "models")
                )

    def has_others(self, models: Mapping[str, str]) -> bool:
        """Return True if *models*, of an answer, are not those of the plan."""
        if not self.mixed:
            return models != self.models
        return any(self.models.get(name) != label for name, label in models.items())

    def covers(self, line: Line) -> bool:
        """Return True if *line* has all that the plan requires."""
        return not (line["errors"] or self.refuses(line)) and (not self.explain or "details" in line)

    def refuses(self, line: Line) -> bool:
        """Return True if the scores of *line* do not count, for what the service warned about."""
        return self.strict and bool(line.get("warnings"))


def line(
    plan: Plan,
    row: Row,
    sha256: str | None,
    scores: Line,
    errors: Line,
    details: Line | None = None,
    models: Mapping[str, str] | None = None,
    warnings: Iterable[Line] = (),
    question_sets: Mapping[str, str] | None = None,
) -> Line:
    """Return the line of a row; *models* are those that gave the scores."""
    content = {
        "row": row.number,
        "image": row.image,
        "prompt": row.prompt,
        "sha256": sha256,
        "scores": scores,
        "errors": errors,
        "models": dict(models or {}),
    }
    more = {
        "options": dict(plan.options),
        "own_options": dict(row.options),
        "own_metrics": list(row.metrics),
        "question_sets": dict(question_sets or {}),
        "columns": finite(row.columns),
        "details": dict(details or {}),
        "warnings": list(warnings),
        "lower_is_better": list(plan.lower),
        "orient": plan.orient,
    }
    return content | {name: value for name, value in more.items() if value}


def finite(columns: Mapping[str, Any]) -> Line:
    """Replace NaN and infinities by None, also in lists, since JSON has neither."""

    def one(cell: Any) -> Any:
        return None if isinstance(cell, float) and not isfinite(cell) else cell

    return {name: [*map(one, v)] if isinstance(v, list) else one(v) for name, v in columns.items()}


def unreadable(plan: Plan, row: Row, why: str) -> Line:
    """Return the line of a row that was not sent."""
    return without_scores(plan, row, UNREADABLE, why)


def without_scores(plan: Plan, row: Row, code: str, detail: str) -> Line:
    """Return a line with the same error under every metric."""
    error = {"code": code, "detail": detail}
    return line(plan, row, None, {}, dict.fromkeys(row.metrics or plan.metrics, error))


def is_unreadable(line: Line) -> bool:
    """Return True for the line of a row that was not sent."""
    return not line["scores"] and all(error["code"] == UNREADABLE for error in line["errors"].values())


def key(line: Line) -> Key:
    """Return the key of the line's row, as `Row.key`."""
    return line["image"], line["prompt"], dumped_options(line.get("own_options", {}))


def dumped(line: Line) -> bytes:
    """Return *line* as bytes of JSON; non-ASCII text stays readable, lone surrogates are escaped."""
    try:
        return json.dumps(line, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(line).encode() + b"\n"


def loaded(data: bytes, place: str) -> Line:
    """Return the line in *data*.  Raises `BadInput` if it is no result of `scoregate batch`."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        content = None
    return checked(content, place)


def checked(content: Any, place: str) -> Line:
    """Return *content* if it is a valid line.  Raises `BadInput`, which begins with *place*."""
    if not is_line(content):
        raise BadInput(f"{place} is no result of `scoregate batch`: name another file")
    known: Line = content
    if wrong := [metric for metric, score in known["scores"].items() if not is_number(score)]:
        raise BadInput(f"{place}: {wrong[0]} of row {known['row']} is no finite number")
    return known


def is_line(content: Any) -> bool:
    """Return True if *content* has the shape of a line in all fields that the commands use."""
    if not (isinstance(content, dict) and content.keys() >= FIELDS):
        return False
    if not all(isinstance(content.get(name, {}), dict) for name in OBJECTS):
        return False
    if not all(isinstance(content.get(name, []), list) for name in LISTS):
        return False
    return (
        type(content["row"]) is int
        and all(isinstance(content[name], str | None) for name in ("image", "prompt", "sha256"))
        and all(map(is_error, content["errors"].values()))
        and all(
            isinstance(text, str)
            for name in ("models", "question_sets")
            for text in content.get(name, {}).values()
        )
        and all(map(is_column, content.get("columns", {}).values()))
        and all(isinstance(name, str) for name in content.get("lower_is_better", []))
        and isinstance(content.get("orient"), str | None)
        and all(map(is_warning, content.get("warnings", [])))
    )


def is_warning(content: Any) -> bool:
    try:
        return bool(Notice.of_json(content))
    except (LookupError, TypeError, ValueError):
        return False


def is_error(content: Any) -> bool:
    return isinstance(content, dict) and all(
        isinstance(content.get(name), str) for name in ("code", "detail")
    )
