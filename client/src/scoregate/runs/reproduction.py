"""A data set scored again as a manifest says, and compared with the results that the manifest belongs to."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

import scoregate
from scoregate.data.datasets import Dataset
from scoregate.data.rows import QUESTION_SET, Row
from scoregate.local import Service
from scoregate.runs import manifest
from scoregate.runs.batch import Part, scored_rows
from scoregate.runs.batch_settings import Scoring, dataset_of
from scoregate.runs.manifest import Sets, absent, ids_of, source_in, tell_parts
from scoregate.runs.plan import Line, key, plan_of
from scoregate.runs.results import CHANGED, Results, lines_of, pinned, texts_of
from scoregate.settings import CONCURRENCY, Concurrency, Setting, finite
from scoregate.text import say_outage

FIGURE_TOLERANCE = 1e-4
FieldChange = tuple[str, str, str]  # a field of the provenance: its name, then and now


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Settings of a difference."""

    manifest: Annotated[
        Path,
        Setting(
            "written next to the results of batch and report: *.manifest.json",
            positional=True,
            metavar="MANIFEST",
        ),
    ]
    tolerance: Annotated[
        float, Setting("scores within X are equal (default %(default)s)", metavar="X", parse=finite)
    ] = FIGURE_TOLERANCE
    concurrency: Concurrency = CONCURRENCY


@dataclass
class MetricDifference:
    """
    The scores of one metric, then and now.

    Attributes:
        different: those that differ by more than the tolerance, or are missing on one side.
        largest: the largest difference of two scores.
    """

    compared: int = 0
    different: int = 0
    largest: float = 0.0


@dataclass
class Differences:
    """
    The differences of a run and its repetition.

    Attributes:
        rows: that differ, each with its metric and both scores.
        changes: of the provenance.
        lost: lines of the results that are of no row of the data set.
    """

    metrics: dict[str, MetricDifference]
    rows: list[dict[str, Any]] = field(default_factory=list)
    changes: list[FieldChange] = field(default_factory=list)
    lost: int = 0

    @property
    def compared(self) -> int:
        """The number of scores."""
        return sum(each.compared for each in self.metrics.values())

    @property
    def same(self) -> bool:
        """Whether every score is reproduced."""
        return not (self.lost or any(each.different for each in self.metrics.values()))

    def compare(self, then: Line, now: Line, tolerance: float) -> None:
        """Add the scores of one row."""
        for metric, difference in self.metrics.items():
            a, b = then["scores"].get(metric), now["scores"].get(metric)
            if a is None and b is None:
                continue
            difference.compared += 1
            if a is not None and b is not None:
                difference.largest = max(difference.largest, abs(a - b))
                if abs(a - b) <= tolerance:
                    continue
            difference.different += 1
            codes = [line["errors"][metric]["code"] for line in (then, now) if metric in line["errors"]]
            if now["sha256"] and then["sha256"] != now["sha256"]:
                codes.append(CHANGED)
            why = "; ".join(codes)
            row = {"row": then["row"], "image": then["image"], "metric": metric, "then": a, "now": b}
            self.rows.append(row | ({"error": why} if why else {}))


def reproduce(settings: Reproduction, service: Service) -> Differences:
    """
    Score again, and compare.  The service is opened when all files are read.

    Raises:
        InputError: the manifest, its data set or its results cannot be read.
        ScoregateError: a request failed as a whole.
    """
    content = manifest.read_manifest(settings.manifest)
    file = settings.manifest.resolve().parent / content["results"]
    dataset = dataset_of(source_in(settings.manifest, content), content["metrics"])
    then = {key(line): line for line in lines_of(file)}
    dataset.check()
    with service.client(outage=say_outage) as client:
        return repeated(settings, client, content, dataset, file, then)


def repeated(
    settings: Reproduction,
    client: scoregate.Client,
    content: Mapping[str, Any],
    dataset: Dataset,
    file: Path,
    then: Mapping[Any, Line],
) -> Differences:
    """Score the rows of the lines *then* of *file* again, and compare."""
    served = client.models(content["metrics"])
    scoring = Scoring(  # a change of models is one of the differences
        metrics=content["metrics"],
        options=content["options"],
        allow_model_change=True,
        orient=content["dataset"].get("orient"),
    )
    plan = plan_of(served, scoring)
    now = manifest.used(served, plan)
    missing = absent(client, content.get("question_sets", {}), ids_of(then.values()))
    tell_parts(settings.manifest, then.values(), missing)
    again = Again(replace(dataset, asking=pinned(file), texts=texts_of(file)), then, missing)
    found = Differences({metric: MetricDifference() for metric in plan.metrics})
    with TemporaryFile() as file_of_now:
        results = Results(plan, file_of_now)
        part = Part(again, results, lambda each: now.update(manifest.resolved(each)))
        scored_rows(client, plan, [nullcontext(part)], settings.concurrency, again.count())
        for line in results.lines():
            if known := again.known.get(line["row"]):
                found.compare(known, line, settings.tolerance)
    found.changes = list(changed(content, now, dataset.path))
    found.lost = len(then.keys() - set(map(key, again.known.values())))
    return found


class Again:
    """
    The rows of a data set that have results, each with the question sets of these.

    Args:
        sets: those whose questions are sent along, since the service does not have them.

    Attributes:
        known: the line of the results, by the number of the row.
    """

    def __init__(self, dataset: Dataset, then: Mapping[Any, Line], sets: Sets) -> None:
        self._dataset, self._then, self._sets = dataset, then, sets
        self.known: dict[int, Line] = {}

    def count(self) -> int | None:
        return self._dataset.count()

    def __iter__(self) -> Iterator[Row]:
        for row in self._dataset:
            if line := self._then.get(row.key):
                self.known[row.number] = line
                yield replace(row, options=with_sets(row, line, self._sets))


def with_sets(row: Row, line: Line, sets: Sets) -> dict[str, dict[str, Any]]:
    """Return the row's options, with the ids or questions of its sets; parts of composites get none."""
    options = {metric: dict(own) for metric, own in row.options.items()}
    for metric, id in line.get("question_sets", {}).items():
        if "." not in metric:
            options.setdefault(metric, {}).setdefault(QUESTION_SET, id)
    for own in options.values():
        id = own.get(QUESTION_SET)
        if isinstance(id, str) and id in sets and sets[id]["prompt"] == row.prompt:
            own[QUESTION_SET] = sets[id]["questions"]
    return options


def changed(content: Mapping[str, Any], now: Mapping[str, Any], dataset: Path) -> Iterator[FieldChange]:
    """Yield what differs in the provenance: its name, then and now."""
    then = content["runs"][-1] if content["runs"] else {}
    now = {name: facts for name, facts in now.items() if name != "options" or name in then}
    before, after = flat({name: then.get(name, {}) for name in now}), flat(now)
    if (known := content["dataset"].get("sha256")) and known != (found := manifest.digest_of(dataset)):
        yield "dataset", known[:12], found[:12]
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield name, before.get(name, "–"), after.get(name, "–")


def flat(facts: Mapping[str, Any], place: str = "") -> dict[str, str]:
    """Return nested facts by their dotted names."""
    found: dict[str, str] = {}
    for name, fact in facts.items():
        if isinstance(fact, Mapping):
            found |= flat(fact, f"{place}{name}.")
        else:
            found[f"{place}{name}"] = str(fact)
    return found
