"""`scoregate batch`: a whole data set, in a file that the next run continues."""

import argparse
import operator
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import scoregate
from scoregate.answers import lower_is_better
from scoregate.cli import sheet
from scoregate.cli.arguments import (
    NO_SCORE,
    OK,
    UsageFault,
    add_metrics,
    connected,
    finite,
    metrics_of,
    options_of,
    whole,
)
from scoregate.cli.lines import ANY_MODELS, UNREADABLE, Line, Plan
from scoregate.cli.manifest import Manifest
from scoregate.cli.results import KINDS, Results, lines_of
from scoregate.cli.scoring import score
from scoregate.cli.source import add_dataset, check, given_in, named
from scoregate.cli.warnings import kinds_of
from scoregate.data.datasets import Dataset
from scoregate.data.shards import stem
from scoregate.records import kind
from scoregate.text import shown

TIMEOUT_S = 600.0  # of a request
REASONS = 5  # why rows cannot be read, on stderr

SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
CONDITION = re.compile(r"\s*([^\s<>=]+)\s*(>=|>|<=|<)\s*(\S+)\s*")
KEPT = "kept.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_dataset(parser)
    add = parser.add_argument
    add(
        "-o", "--out", type=Path, required=True, help=f"the results, {' or '.join(KINDS)}; of shards a folder"
    )
    add_metrics(parser)
    add(
        "--filter",
        type=condition,
        metavar="'METRIC >= X'",
        help=f"write the names of the rows that pass to {KEPT}; also >, <= and <",
    )
    add(ANY_MODELS, dest="any_models", action="store_true", help="go on where other models answer")
    add("--explain", action="store_true", help="keep what each score is made of")
    add("--html", type=Path, metavar="FILE", help="write a page of pictures, the worst first")
    add(
        "--html-pictures",
        type=whole,
        default=500,
        metavar="N",
        help="pictures on that page at most (default %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some row lacks a score."""
    dataset, out = named(arguments), arguments.out
    check(dataset, out, arguments.html)
    if arguments.filter and arguments.filter.metric not in metrics_of(arguments):
        raise UsageFault(f"--filter {arguments.filter}: this metric is not scored, see --metric")
    in_folder = dataset.shards and (out.is_dir() or not out.suffix)
    complete = (into_folder if in_folder else into_file)(arguments, dataset, out)
    return OK if complete else NO_SCORE


def into_file(arguments: argparse.Namespace, dataset: Dataset, out: Path) -> bool:
    """Score a data set into one file; return True if every row has all its scores."""
    with scored(arguments, dataset, out) as (results, dataset, asked):
        complete = tell(results.lines, asked, out, len(results.left_over))
        if arguments.html:
            sheet.write(arguments.html, dataset, results, arguments.html_pictures)
        if arguments.filter:
            write_kept(out.with_name(f"{out.name}.{KEPT}"), arguments.filter, results.lines())
    return complete


def into_folder(arguments: argparse.Namespace, dataset: Dataset, out: Path) -> bool:
    """Score shards into a folder; return True if every row has all its scores."""
    if arguments.html:
        raise UsageFault("--html is about one file of results, and these are a folder")
    with session(arguments, dataset) as service:
        files, asked = score_shards(service, out)

    def lines() -> Iterator[Line]:
        return chain.from_iterable(map(lines_of, files))

    complete = tell(lines, asked, out)
    if arguments.filter:
        write_kept(out / KEPT, arguments.filter, lines())
    return complete


@contextmanager
def scored(
    arguments: argparse.Namespace, dataset: Dataset, file: Path
) -> Iterator[tuple[Results, Dataset, int]]:
    """Score the rows without results; yield the results in *file*, the data set, and their number."""
    with (
        session(arguments, dataset) as service,
        service.scored(service.dataset, file) as (results, asked),
    ):
        yield results, service.dataset, asked


@dataclass(frozen=True)
class Session:
    """A service or models of this process, and what they score, as the arguments *given* say."""

    client: scoregate.Client
    served: Mapping[str, Any]
    plan: Plan
    dataset: Dataset
    given: Mapping[str, Any]
    concurrency: int

    @contextmanager
    def scored(self, dataset: Dataset, file: Path, *, whole: bool = False) -> Iterator[tuple[Results, int]]:
        """
        Score the rows of *dataset* without results; yield the results in *file*, and their number.

        Ctrl-C prints how many rows are kept.
        """
        with Results(file, self.plan, whole=whole) as results:
            try:
                with Manifest(dataset.path, self.given, results, self.served) as run:
                    asked = score(self.client, dataset, results, self.concurrency, run.answered)
            except KeyboardInterrupt:
                kept = len(results.order) + len(results.left_over)
                place = results.journal if whole else file
                where = f"{kept} rows are kept in {place}, and the same command goes on from there"
                say(f"scoregate: interrupted: {where if kept else 'no row was scored yet'}")
                raise
            yield results, asked


@contextmanager
def session(arguments: argparse.Namespace, dataset: Dataset) -> Iterator[Session]:
    """Yield the service that the arguments name."""
    with connected(arguments, TIMEOUT_S) as client:
        served = client.models()
        plan = plan_of(
            served,
            metrics_of(arguments),
            options_of(arguments),
            explain=arguments.explain,
            any_models=arguments.any_models,
            strict=arguments.strict,
            orient=arguments.orient,
        )
        check_prompted(dataset, served["metrics"], plan.metrics)
        dataset = with_options(dataset, served, client)
        yield Session(client, served, plan, dataset, given_in(arguments), arguments.concurrency)


def score_shards(service: Session, folder: Path) -> tuple[list[Path], int]:
    """
    Score each shard into a Parquet file in *folder*; return these, and the number of scored rows.

    A shard with a file is finished, and not scored again.

    Raises:
        UsageFault: a file there is something else, or has scores of another plan.
    """
    files = {folder / f"{stem(shard)}.parquet": shard for shard in service.dataset.shards}
    finished, asked = set(filter(Path.exists, files)), 0
    for file in sorted(finished):
        check_finished(service.plan, file)
    if len(finished) < len(files):
        service.dataset.check_samples()
        folder.mkdir(exist_ok=True)
    for number, (file, shard) in enumerate(files.items(), 1):
        if file not in finished:
            part = replace(service.dataset, path=shard, part=True)
            with service.scored(part, file, whole=True) as (_, sent):
                asked += sent
            say(f"shard {number} of {len(files)}: {file}")
    return list(filter(Path.exists, files)), asked  # a shard without samples has no file


def check_finished(plan: Plan, file: Path) -> None:
    """Raise `UsageFault` if *file* is something else than the results of a shard by *plan*."""
    for line in lines_of(file):
        plan.check(line, str(file))
        if line["scores"]:  # with the models, which all its lines have
            return


def say(text: str) -> None:
    """Print a line to stderr."""
    print(shown(text), file=sys.stderr)


def tell(lines: Callable[[], Iterator[Line]], asked: int, out: Path, left_over: int = 0) -> bool:
    """Print a summary to stderr; return True if every row has all its scores."""
    codes: Counter[str] = Counter()
    rows, incomplete, unread, details = 0, 0, 0, list[str]()
    for each in lines():
        rows += 1
        incomplete += bool(each["errors"])
        codes.update({error["code"] for error in each["errors"].values()})
        why = {error["detail"] for error in each["errors"].values() if error["code"] == UNREADABLE}
        unread += len(why)
        details += why if len(details) < REASONS else ()
    text = f"{rows - incomplete} of {rows} rows have all scores; {asked} were requested in this run"
    if incomplete:
        text += "; without a score: " + ", ".join(f"{n} {shown(code)}" for code, n in codes.most_common())
    for detail in details[:REASONS]:
        say(f"cannot read {detail}")
    if unread > REASONS:
        say(f"and {unread - REASONS} more rows, see {UNREADABLE} in the results")
    for warning in kinds_of(lines()):
        say(f"warning: {warning}" + f" (first: {warning.image})" * bool(warning.image))
    say(text)
    say(str(out))
    if left_over:
        say(f"{left_over} lines are of no row of the data set; they are kept")
    return not incomplete


@dataclass(frozen=True)
class Filter:
    """A condition on the score of a metric."""

    metric: str
    sign: str
    number: float

    def passes(self, line: Line) -> bool:
        """Return True if the row's score passes; one with an error never does, whatever has the error."""
        return not line["errors"] and SIGNS[self.sign](line["scores"][self.metric], self.number)

    def __str__(self) -> str:
        return f"{self.metric} {self.sign} {self.number:g}"


def condition(text: str) -> Filter:
    """Return the filter in an argument.  Raises `argparse.ArgumentTypeError`."""
    if not (found := CONDITION.fullmatch(text)):
        raise argparse.ArgumentTypeError(f"{text!r} has not the form of METRIC >= NUMBER, or >, <=, <")
    metric, sign, number = found.groups()
    return Filter(metric, sign, finite(number))


def write_kept(file: Path, wanted: Filter, lines: Iterable[Line]) -> None:
    """Write the names of the rows that pass to *file*, one in each line, and print how many they are."""
    rows = kept = failed = 0
    written = file.with_name(f"{file.name}.new")
    with written.open("w", encoding="utf-8") as names:
        for line in lines:
            rows += 1
            failed += bool(line["errors"])
            if wanted.passes(line):
                kept += 1
                names.write(f"{shown(line['image'])}\n")
    os.replace(written, file)
    more = f", and {failed} with errors are not" if failed else ""
    say(f"{kept} of {rows} rows are kept by {wanted}{more}: {file}")


def plan_of(
    served: Mapping[str, Any],
    metrics: Sequence[str],
    options: Mapping[str, Any],
    *,
    explain: bool = False,
    any_models: bool = False,
    strict: bool = False,
    orient: str | None = None,
) -> Plan:
    """Return the plan of a run by an answer of `GET /models`.  Raises `UsageFault` for an unknown metric."""
    known = served["metrics"]
    if unknown := [metric for metric in metrics if metric not in known]:
        raise UsageFault(f"no metric {', '.join(unknown)}; the service has {', '.join(known)}")
    ids = {model["name"]: label_of(model) for model in served["models"]}
    used = chain.from_iterable(known[metric]["models"] for metric in metrics)
    uses = chain.from_iterable(known[metric].get("uses", ()) for metric in metrics)
    return Plan(
        metrics,
        {name: ids[name] for name in sorted(set(used))},
        options,
        explain,
        sorted(set(uses)),
        [name for name in metrics if lower_is_better(known[name])],
        any_models,
        strict,
        orient,
        served.get("limits", {}).get("max_image_bytes"),
    )


def check_prompted(dataset: Dataset, served: Mapping[str, Any], metrics: Sequence[str]) -> None:
    """Raise `UsageFault` if *dataset* is read without prompts, and a metric reads them."""
    reading = [name for name in metrics if served[name].get("reads_prompt", True)]
    if reading and not dataset.prompted:
        raise UsageFault(f"--no-prompt: {', '.join(reading)} cannot score a picture without its prompt")


def label_of(model: Mapping[str, str]) -> str:
    """Return the name that answers give a model of `GET /models`."""
    plain = f"{model['id']}@{model['revision']}" if model["revision"] else model["id"]
    return model.get("label") or plain


def with_options(dataset: Dataset, served: Mapping[str, Any], client: scoregate.Client) -> Dataset:
    """Return *dataset* with the facts of the service that its columns of options are read by."""
    asking = [name for name in dataset.metrics if served["metrics"].get(name, {}).get("style")]
    texts = set[str]()
    if dataset.table is not None and kind(dataset.table) == ".csv":
        with suppress(scoregate.NotFound):  # behind a gateway that has no such path
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
