"""`scoregate reproduce`: score a data set again, and compare with what a manifest belongs to."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scoregate.cli.arguments import NO_SCORE, OK, add_concurrency, connected
from scoregate.cli.batch import TIMEOUT_S, plan_of
from scoregate.cli.source import dataset_of
from scoregate.data.columns import QUESTION_SET
from scoregate.data.datasets import Dataset
from scoregate.data.rows import Row
from scoregate.records import NoResult
from scoregate.runs import manifest
from scoregate.runs.lines import Line, key
from scoregate.runs.manifest import Sets, absent, ids_of, tell_parts
from scoregate.runs.results import CHANGED, Results, lines_of, pinned, texts_of
from scoregate.runs.scoring import Part, score
from scoregate.settings import finite
from scoregate.text import shown, table

TOLERANCE = 1e-4
SHOWN = 10  # rows that differ


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add(
        "manifest",
        type=Path,
        metavar="MANIFEST",
        help="beside the results of batch and report: *.manifest.json",
    )
    add(
        "--tolerance",
        type=finite,
        default=TOLERANCE,
        metavar="X",
        help="scores within X are equal (default %(default)s)",
    )
    add_concurrency(parser)
    add("--json", action="store_true", help="print everything for programs")


@dataclass
class Comparison:
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
class Outcome:
    """The comparisons by metric, and the rows that differ, each with its metric and both scores."""

    metrics: dict[str, Comparison]
    rows: list[dict[str, Any]] = field(default_factory=list)

    def compare(self, then: Line, now: Line, tolerance: float) -> None:
        """Add the scores of one row."""
        for metric, comparison in self.metrics.items():
            a, b = then["scores"].get(metric), now["scores"].get(metric)
            if a is None and b is None:
                continue
            comparison.compared += 1
            if a is not None and b is not None:
                comparison.largest = max(comparison.largest, abs(a - b))
                if abs(a - b) <= tolerance:
                    continue
            comparison.different += 1
            codes = [line["errors"][metric]["code"] for line in (then, now) if metric in line["errors"]]
            if now["sha256"] and then["sha256"] != now["sha256"]:
                codes.append(CHANGED)
            why = "; ".join(codes)
            row = {"row": then["row"], "image": then["image"], "metric": metric, "then": a, "now": b}
            self.rows.append(row | ({"error": why} if why else {}))


def run(arguments: argparse.Namespace) -> int:
    """Return 0 if every score is reproduced, otherwise 1."""
    content = manifest.read_manifest(arguments.manifest)
    folder = arguments.manifest.resolve().parent
    said, file = content["dataset"], folder / content["results"]
    given = {name: said[name] for name in manifest.NAMES if said.get(name) is not None}
    if "prompts" in given:
        given["prompts"] = folder / given["prompts"]
    given["sweep"] = [
        f"{name}={folder / file}" for name, _, file in map(manifest.parted, said.get("sweep", []))
    ]
    dataset = dataset_of(folder / said["path"], content["metrics"], given)
    then = {key(line): line for line in lines_of(file)}
    with ExitStack() as stack:
        client = stack.enter_context(connected(arguments, TIMEOUT_S))
        served = client.models()
        plan = plan_of(  # a change of models is one of the differences
            served, content["metrics"], content["options"], any_models=True, orient=said.get("orient")
        )
        now = manifest.used(served, plan)
        missing = absent(client, content.get("question_sets", {}), ids_of(then.values()))
        tell_parts(arguments.manifest, then.values(), missing)
        again = Again(replace(dataset, asking=pinned(file), texts=texts_of(file)), then, missing)
        out = Path(stack.enter_context(TemporaryDirectory())) / "again.jsonl"
        results = stack.enter_context(Results(out, plan))
        part = Part(again, results, lambda each: now.update(manifest.resolved(each)))
        score(client, plan, [nullcontext(part)], arguments.concurrency, again.count())
        outcome = Outcome({metric: Comparison() for metric in plan.metrics})
        for line in results.lines():
            if known := again.known.get(line["row"]):
                outcome.compare(known, line, arguments.tolerance)
    changes = list(changed(content, now, dataset.path))
    lost = len(then.keys() - set(map(key, again.known.values())))
    (print_json if arguments.json else print_text)(outcome, changes, lost)
    if not any(each.compared for each in outcome.metrics.values()):
        raise NoResult("nothing was compared: the results have no score of a row of the data set")
    return NO_SCORE if lost or any(each.different for each in outcome.metrics.values()) else OK


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


def changed(
    content: Mapping[str, Any], now: Mapping[str, Any], dataset: Path
) -> Iterator[tuple[str, str, str]]:
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


def print_json(outcome: Outcome, changes: list[tuple[str, str, str]], lost: int) -> None:
    """Print one object."""
    provenance = {name: {"then": before, "now": after} for name, before, after in changes}
    metrics = {name: vars(each) for name, each in outcome.metrics.items()}
    print(json.dumps({"metrics": metrics, "provenance": provenance, "rows": outcome.rows, "lost": lost}))


def print_text(outcome: Outcome, changes: list[tuple[str, str, str]], lost: int) -> None:
    """Print tables: what differs in the provenance, the metrics, and the first rows that differ."""
    if changes:
        print(table(["PROVENANCE", "THEN", "NOW"], changes) + "\n")
    rows = [
        [name, each.compared, each.different, f"{each.largest:.6f}"] for name, each in outcome.metrics.items()
    ]
    heads = ["METRIC", "SCORES", "DIFFERENT", "LARGEST DIFFERENCE"]
    print(table(heads, rows, right=heads[1:]))
    for row in outcome.rows[:SHOWN]:
        then, now = (f"{row[when]:.6g}" if row[when] is not None else "no score" for when in ("then", "now"))
        why = f" ({row['error']})" if "error" in row else ""
        print(shown(f"row {row['row']}, {row['image']}: {row['metric']} was {then} and is {now}{why}"))
    if (more := len(outcome.rows) - SHOWN) > 0:
        print(f"and {more} more")
    if lost:
        print(f"{lost} lines of the results are of no row of the data set", file=sys.stderr)
