"""
What a run computes: settings of scores, the plan that they are with a service's models, and lines of results.

A line is one row of the data set, with its scores and its errors.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import TYPE_CHECKING, Any

import scoregate
from scoregate.data.datasets import Dataset
from scoregate.data.rows import Row, dumped_options, is_column
from scoregate.errors import InputError, named
from scoregate.many import change_of, is_complete, models_before
from scoregate.records import PLAIN, TABLES_OF_TEXT, kind
from scoregate.records import Line as Line
from scoregate.results import Notice, is_number, lower_is_better

if TYPE_CHECKING:
    from scoregate.decisions.policies import NamedPolicy
    from scoregate.runs.batch_settings import Scoring

LineKey = tuple[str | None, str | None, str]
FIELDS = {*PLAIN, "scores", "errors"}
OBJECTS = ("scores", "errors", "models", "options", "own_options", "question_sets", "columns", "details")
LINE_LIST_FIELDS = ("warnings", "lower_is_better", "own_metrics")
DECISION_FIELDS = ("policy", "decision", "because")  # a row that a policy decided about has these
UNREADABLE_ROW = "unreadable_row"


@dataclass(frozen=True)
class Plan:
    """
    The parameters of a run.  Results of another plan cannot be reused.

    Attributes:
        uses: the further columns of pictures that its metrics use.
        lower: the metrics whose lower scores are better.
        allow_model_change: reuse lines of other models.
        strict: do not reuse lines with warnings.
        orient: how pictures are rotated; None: as the service is set.
        max_bytes: of a file that the service takes; None if it does not say.
        mixed: rows may have metrics of their own, so that an answer has the models of some.
        policy: decides about each row by its scores, also about those of an earlier run.
    """

    metrics: Sequence[str]
    models: Mapping[str, str]  # what may give the scores: `id@revision` by configured name
    options: Mapping[str, Any]
    explain: bool = False
    uses: Sequence[str] = ()
    lower: Sequence[str] = ()
    allow_model_change: bool = False
    strict: bool = False
    orient: str | None = None
    max_bytes: int | None = None
    mixed: bool = False
    policy: "NamedPolicy | None" = None

    def check(self, line: Line, place: str) -> None:
        """Raise `InputError` if *line*, at *place*, is of another plan: its scores are not comparable."""
        found: Line = {"metrics": sorted({*line["scores"], *line["errors"]})}
        own = [name for name in line.get("own_metrics", ()) if name in self.metrics]
        wanted: Line = {"metrics": sorted(own or self.metrics)}
        found["options"], wanted["options"] = line.get("options", {}), dict(self.options)
        found["orient"], wanted["orient"] = line.get("orient"), self.orient
        if line["scores"] and not self.allow_model_change and self.has_others(line.get("models", {})):
            found["models"], wanted["models"] = line.get("models", {}), dict(self.models)
        for what in found:
            if found[what] != wanted[what]:
                held, now = json.dumps(found[what]), json.dumps(wanted[what])
                raise InputError(
                    f"{place} was scored with the {what} {held}, now they are {now}: name another file"
                    + f", or give {named('allow_model_change')}" * (what == "models")
                )

    def has_others(self, models: Mapping[str, str]) -> bool:
        """Return True if *models*, of an answer, are not those of the plan."""
        return models != self.models and models != models_before(self.models, models, mixed=self.mixed)

    def covers(self, line: Line) -> bool:
        """Return True if *line* has all that the plan requires."""
        return is_complete(line, strict=self.strict) and (not self.explain or "details" in line)

    def line(self, row: Row, answer: Line, known: Line) -> Line:
        """
        Return the line of a row.

        A score of an earlier run stays if there is no new one and it is from the same models.

        Args:
            answer: a result, as JSON.
            known: the line of an earlier run; empty without one.

        Raises:
            InputError: the models are not those of the plan, which does not allow for others.
        """
        models, given = answer["models"], answer["scores"]
        if given and self.has_others(models) and not self.allow_model_change:
            before = models_before(self.models, models, mixed=self.mixed)
            raise InputError(
                f"the service has other models now: {change_of(before, models)}. Name another file and"
                f" start anew, or give {named('allow_model_change')}: each line then says which models gave"
                " its scores"
            )
        other = known.get("own_metrics", []) != list(row.metrics)
        warned = self.strict and known.get("warnings")
        if other or warned or (given and known.get("models", {}) != models):
            known = {}
        scores, noted = known.get("scores", {}) | given, answer["warnings"]
        return self.content(
            row,
            scores,
            {metric: error for metric, error in answer["errors"].items() if metric not in scores},
            models=known.get("models", {}) if known.get("scores") and not given else models,
            question_sets=known.get("question_sets", {}) | answer["question_sets"],
            details=known.get("details", {}) | answer["details"],
            warnings=[each for each in known.get("warnings", []) if each not in noted] + noted,
        )

    def unreadable(self, row: Row, why: str) -> Line:
        """Return the line of a row that was not sent."""
        return self.without_scores(row, UNREADABLE_ROW, why)

    def without_scores(self, row: Row, code: str, detail: str) -> Line:
        """Return a line with the same error under every metric."""
        error = {"code": code, "detail": detail}
        return self.content(row, {}, dict.fromkeys(row.metrics or self.metrics, error))

    def content(
        self, row: Row, scores: Line, errors: Line, models: Mapping[str, str] | None = None, **more: Any
    ) -> Line:
        """Return a line; *more* are its fields of a row, which may be empty."""
        content = {
            "row": row.number,
            "image": row.image,
            "prompt": row.prompt,
            "sha256": row.sha256,
            "scores": scores,
            "errors": errors,
            "models": dict(models or {}),
        }
        every = {
            "options": dict(self.options),
            "own_options": dict(row.options),
            "own_metrics": list(row.metrics),
            "question_sets": more.get("question_sets"),
            "columns": finite(row.columns),
            "details": more.get("details"),
            "warnings": more.get("warnings"),
            "lower_is_better": list(self.lower),
            "orient": self.orient,
        }
        return self.decided(content | {name: value for name, value in every.items() if value})

    def decided(self, line: Line) -> Line:
        """Return *line* with the decision of the plan's policy; as it is without one."""
        policy = self.policy
        if policy is None:
            return line
        if is_unreadable(line):
            made: tuple[str, ...] = (policy.rules.unreadable, f"unreadable: {UNREADABLE_ROW}")
        else:
            codes = {metric: error["code"] for metric, error in line["errors"].items()}
            outcome = policy.decide(line["scores"], codes)
            made = outcome.decision, outcome.because
        return line | dict(zip(DECISION_FIELDS, (policy.id, *made), strict=True))

    def decides_as(self, line: Line) -> bool:
        """Return True if *line* has a decision of the plan's policy, or there is none."""
        return self.policy is None or line.get("policy") == self.policy.id


def plan_of(served: Mapping[str, Any], scoring: "Scoring") -> Plan:
    """Return the plan of a run by an answer of `GET /models`.  Raises `InputError` for an unknown metric."""
    known, metrics = served["metrics"], scoring.names
    if unknown := [metric for metric in metrics if metric not in known]:
        raise InputError(f"no metric {', '.join(unknown)}; the service has {', '.join(known)}")
    ids = {model["name"]: label_of(model) for model in served["models"]}
    used = chain.from_iterable(known[metric]["models"] for metric in metrics)
    uses = chain.from_iterable(known[metric].get("uses", ()) for metric in metrics)
    return Plan(
        metrics,
        {name: ids[name] for name in sorted(set(used))},
        scoring.options,
        scoring.explain,
        sorted(set(uses)),
        [name for name in metrics if lower_is_better(known[name])],
        scoring.allow_model_change,
        scoring.strict,
        scoring.orient,
        served.get("limits", {}).get("max_image_bytes"),
    )


def check_no_prompt(dataset: Dataset, served: Mapping[str, Any], metrics: Sequence[str]) -> None:
    """Raise `InputError` if *dataset* is read without prompts, and a metric reads them."""
    reading = [name for name in metrics if served[name].get("reads_prompt", True)]
    if reading and dataset.no_prompt:
        raise InputError(
            f"{named('no_prompt')}: {', '.join(reading)} cannot score a picture without its prompt"
        )


def label_of(model: Mapping[str, str]) -> str:
    """Return the name that answers give a model of `GET /models`."""
    plain = f"{model['id']}@{model['revision']}" if model["revision"] else model["id"]
    return model.get("label") or plain


def with_options(dataset: Dataset, served: Mapping[str, Any], client: scoregate.Client) -> Dataset:
    """Return *dataset* with the facts of the service that its columns of options are read by."""
    asking = [name for name in dataset.metrics if served["metrics"].get(name, {}).get("style")]
    texts = set[str]()
    if dataset.table is not None and kind(dataset.table) in TABLES_OF_TEXT:
        with suppress(scoregate.errors.NotFoundError):  # behind a gateway that has no such path
            texts = texts_in(client.openapi())
    return dataset.read_with(asking, texts)


def texts_in(document: Mapping[str, Any]) -> set[str]:
    """Return the options of an OpenAPI document that are texts, by `METRIC.OPTION`."""
    schemas = document.get("components", {}).get("schemas", {})

    def properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
        found = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
        return found.get("properties") or {}

    return {
        f"{metric}.{option}"
        for metric, schema in (schemas.get("Options", {}).get("properties") or {}).items()
        for option, each in properties(schema).items()
        if {kind.get("type") for kind in each.get("anyOf", [each])} - {"null"} == {"string"}
    }


# --- lines of results ----------------------------------------------------------------------------


def finite(columns: Mapping[str, Any]) -> Line:
    """Replace NaN and infinities by None, also in lists, since JSON has neither."""

    def one(cell: Any) -> Any:
        return None if isinstance(cell, float) and not isfinite(cell) else cell

    return {name: [*map(one, v)] if isinstance(v, list) else one(v) for name, v in columns.items()}


def is_unreadable(line: Line) -> bool:
    """Return True for the line of a row that was not sent."""
    return not line["scores"] and all(error["code"] == UNREADABLE_ROW for error in line["errors"].values())


def key(line: Line) -> LineKey:
    """Return the key of the line's row, as `Row.key`."""
    return line["image"], line["prompt"], dumped_options(line.get("own_options", {}))


def loaded(data: bytes, place: str) -> Line:
    """Return the line in *data*.  Raises `InputError` if it is no result of `scoregate batch`."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        content = None
    return checked(content, place)


def checked(content: Any, place: str) -> Line:
    """Return *content* if it is a valid line.  Raises `InputError`, which begins with *place*."""
    if not is_line(content):
        raise InputError(f"{place} is no result of `scoregate batch`: name another file")
    known: Line = content
    if wrong := [metric for metric, score in known["scores"].items() if not is_number(score)]:
        raise InputError(f"{place}: {wrong[0]} of row {known['row']} is no finite number")
    return known


def is_line(content: Any) -> bool:
    """Return True if *content* has the shape of a line in all fields that the commands use."""
    if not (isinstance(content, dict) and content.keys() >= FIELDS):
        return False
    if not all(isinstance(content.get(name, {}), dict) for name in OBJECTS):
        return False
    if not all(isinstance(content.get(name, []), list) for name in LINE_LIST_FIELDS):
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
        and all(isinstance(content.get(name), str | None) for name in ("orient", *DECISION_FIELDS))
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
