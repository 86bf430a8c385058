"""What a run computes: settings of scores, and the plan that they are with a service's metrics and models."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import scoregate
from scoregate.answers import lower_is_better
from scoregate.data.datasets import Dataset
from scoregate.data.rows import Row
from scoregate.records import TABLES_OF_TEXT, BadInput, kind
from scoregate.runs.lines import UNREADABLE, Line, finite
from scoregate.settings import CONCURRENCY, METRIC, ORIENT, setting, whole

ANY_MODELS = "--allow-model-change"


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Settings of the scores of a data set."""

    metrics: Sequence[str] = setting(
        f"may be given several times (default {METRIC})",
        "-m",
        "--metric",
        default=(),
        metavar="METRIC",
        several=True,
    )
    options: Mapping[str, Mapping[str, Any]] = setting("of the metrics, by metric", default={}, option=False)
    orient: str | None = setting(
        "rotate pictures as their EXIF data says, or not (default: as the service is set)",
        default=None,
        choices=ORIENT,
    )
    strict: bool = setting("a score that the service warns about is an error", default=False)
    any_models: bool = setting("go on where other models answer", ANY_MODELS, default=False)
    explain: bool = setting("keep what each score is made of", default=False)
    concurrency: int = setting(
        "requests at the same time (default %(default)s)", default=CONCURRENCY, metavar="N", parse=whole
    )

    @property
    def names(self) -> list[str]:
        """The metrics in the order given, each once."""
        return list(dict.fromkeys(self.metrics or [METRIC]))


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
        self,
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
            "options": dict(self.options),
            "own_options": dict(row.options),
            "own_metrics": list(row.metrics),
            "question_sets": dict(question_sets or {}),
            "columns": finite(row.columns),
            "details": dict(details or {}),
            "warnings": list(warnings),
            "lower_is_better": list(self.lower),
            "orient": self.orient,
        }
        return content | {name: value for name, value in more.items() if value}

    def unreadable(self, row: Row, why: str) -> Line:
        """Return the line of a row that was not sent."""
        return self.without_scores(row, UNREADABLE, why)

    def without_scores(self, row: Row, code: str, detail: str) -> Line:
        """Return a line with the same error under every metric."""
        error = {"code": code, "detail": detail}
        return self.line(row, None, {}, dict.fromkeys(row.metrics or self.metrics, error))


def plan_of(served: Mapping[str, Any], scoring: Scoring) -> Plan:
    """Return the plan of a run by an answer of `GET /models`.  Raises `BadInput` for an unknown metric."""
    known, metrics = served["metrics"], scoring.names
    if unknown := [metric for metric in metrics if metric not in known]:
        raise BadInput(f"no metric {', '.join(unknown)}; the service has {', '.join(known)}")
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
        scoring.any_models,
        scoring.strict,
        scoring.orient,
        served.get("limits", {}).get("max_image_bytes"),
    )


def check_no_prompt(dataset: Dataset, served: Mapping[str, Any], metrics: Sequence[str]) -> None:
    """Raise `BadInput` if *dataset* is read without prompts, and a metric reads them."""
    reading = [name for name in metrics if served[name].get("reads_prompt", True)]
    if reading and dataset.no_prompt:
        raise BadInput(f"--no-prompt: {', '.join(reading)} cannot score a picture without its prompt")


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
    return replace(dataset, asking=asking, texts=texts)


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
