"""`scoregate batch`: a whole data set, in a file that the next run continues."""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from time import monotonic
from typing import Any

import scoregate
from scoregate.answers import lower_is_better
from scoregate.cli import cluster, sheet
from scoregate.cli.arguments import NO_SCORE, OK, UsageFault, add_metrics, connected, metrics_of, options_of
from scoregate.cli.filter import KEPT, add_filter, check_filter, write_kept, write_shards
from scoregate.cli.source import add_dataset, check, given_in, named
from scoregate.data.datasets import Dataset
from scoregate.progress import say
from scoregate.records import TABLES_OF_TEXT, kind
from scoregate.runs.lines import ANY_MODELS, UNREADABLE, Line, Plan
from scoregate.runs.manifest import Manifest
from scoregate.runs.results import KINDS, Results, files_of, journal_of, lines_of, plan_in
from scoregate.runs.scoring import Part, score
from scoregate.runs.warnings import Kind, kinds_of, merged_kinds
from scoregate.settings import whole
from scoregate.text import shown

TIMEOUT_S = 600.0  # of a request
REASONS = 5  # why rows cannot be read, on stderr


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_dataset(parser)
    add = parser.add_argument
    add("-o", "--out", type=Path, required=True, help=f"the results, {', '.join(KINDS)}; of shards a folder")
    add_metrics(parser)
    add_filter(parser)
    add("--retry", action="store_true", help="score rows with errors again, also in finished shards")
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
    cluster.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some row lacks a score."""
    dataset, out = named(arguments), arguments.out
    check(dataset, out, arguments.html)
    in_folder = bool(dataset.shards) and (out.is_dir() or not out.suffix)
    check_filter(arguments, dataset, in_folder=in_folder)
    if arguments.ray and not in_folder:
        raise UsageFault("--ray: the data set has to be in shards, and the results in a folder")
    complete = (into_folder if in_folder else into_file)(arguments, dataset, out)
    return OK if complete else NO_SCORE


def into_file(arguments: argparse.Namespace, dataset: Dataset, out: Path) -> bool:
    """Score a data set into one file; return True if every row has all its scores."""
    with scored(arguments, dataset, out) as (results, dataset, asked):
        complete = tell(results.lines, asked, out, len(results.left_over))
        if arguments.html:
            sheet.write(arguments.html, dataset, results.plan, results.lines, arguments.html_pictures)
        if arguments.filter:
            write_kept(out.with_name(f"{out.name}.{KEPT}"), arguments.filter, results.lines())
    return complete


def into_folder(arguments: argparse.Namespace, dataset: Dataset, out: Path) -> bool:
    """Score shards into a folder; return True if every row has all its scores."""

    def lines() -> Iterator[Line]:
        every = chain.from_iterable(map(lines_of, files))
        return ({**line, "row": number} for number, line in enumerate(every, 1))

    if arguments.ray:
        files, asked, parts = cluster.score_shards(arguments, dataset, out, session)
        summary = Summary.merged(parts)
    else:
        with session(arguments, dataset) as service:
            files, asked = score_shards(service, out, retry=arguments.retry)
        summary = Summary.of(lines())
    complete = tell_summary(summary, asked, out)
    if arguments.html and files:
        sheet.write(arguments.html, dataset, plan_in(next(iter(files))), lines, arguments.html_pictures)
    if arguments.filter:
        write_kept(out / KEPT, arguments.filter, lines())
    if arguments.kept_shards:
        complete &= write_shards(arguments.kept_shards, arguments.filter, out, files)
    return complete


@contextmanager
def scored(
    arguments: argparse.Namespace, dataset: Dataset, file: Path
) -> Iterator[tuple[Results, Dataset, int]]:
    """Score the rows without results; yield the results in *file*, the data set, and their number."""
    with session(arguments, dataset) as service, Results(file, service.plan) as results:
        with service.part(service.dataset, results) as part:
            asked = service.score([nullcontext(part)], service.dataset.count())
        yield results, service.dataset, asked


@dataclass
class Session:
    """
    A service or models of this process, and what they score, as the arguments *given* say.

    Attributes:
        ended_s: when the last part ended, by the monotonic clock.
    """

    client: scoregate.Client
    served: Mapping[str, Any]
    plan: Plan
    dataset: Dataset
    given: Mapping[str, Any]
    concurrency: int
    ended_s: float = 0.0

    @contextmanager
    def part(self, dataset: Dataset, results: Results) -> Iterator[Part]:
        """
        Yield the rows of *dataset* as a part of a run, which the manifest of the results describes.

        Ctrl-C prints how many rows are kept.
        """
        try:
            with Manifest(dataset, self.given, results, self.served) as run:
                yield Part(dataset, results, run.answered)
                run.begun_s = max(run.begun_s, self.ended_s)  # rows are sent before the last part ends
            self.ended_s = monotonic()
        except KeyboardInterrupt:
            kept = len(results.order) + len(results.left_over)
            place = results.journal if results.whole else results.out
            where = f"{kept} rows are kept in {place}, and the same command goes on from there"
            if kept or not results.whole:
                say(f"scoregate: interrupted: {where if kept else 'no row was scored yet'}")
            raise

    @contextmanager
    def shard(self, shard: Path, file: Path, name: str) -> Iterator[Part]:
        """Yield the rows of a shard, whose results are *file* when all are there; then print *name*."""
        dataset = replace(self.dataset, path=shard, part=True)
        with Results(file, self.plan, whole=True) as results, self.part(dataset, results) as part:
            yield part
        say(f"{name}: {file}")

    def is_finished(self, file: Path, *, retry: bool) -> bool:
        """
        Return True if *file* has the results of a shard; with *retry*, without an error.

        A file with a journal is of a retry that was interrupted.  What is finished is not scored again.

        Raises:
            UsageFault: the file is something else, or has scores of another plan.
        """
        if not file.exists() or journal_of(file).exists():
            return False
        check_finished(self.plan, file)
        return not retry or all(map(self.plan.covers, lines_of(file)))

    def finish(self, shard: Path, file: Path, *, retry: bool) -> "tuple[int, Summary]":
        """Score a shard into *file* unless that is finished; return the number of scored rows, a summary."""
        finished = self.is_finished(file, retry=retry)
        asked = 0 if finished else self.score([self.shard(shard, file, str(shard))])
        return asked, Summary.of(lines_of(file) if file.exists() else ())

    def score(self, parts: Iterable[AbstractContextManager[Part]], count: int | None = None) -> int:
        """Score the rows without results; return their number."""
        return score(self.client, self.plan, parts, self.concurrency, count)


@contextmanager
def session(arguments: argparse.Namespace, dataset: Dataset) -> Iterator[Session]:
    """Yield the service that the arguments name."""
    with connected(arguments, TIMEOUT_S) as client:
        yield session_with(client, arguments, dataset)


def session_with(client: scoregate.Client, arguments: argparse.Namespace, dataset: Dataset) -> Session:
    """Return the session of a client, whatever service the arguments name."""
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
    plan = replace(plan, mixed=dataset.metrics_column is not None)
    check_no_prompt(dataset, served["metrics"], plan.metrics)
    dataset = with_options(dataset, served, client)
    return Session(client, served, plan, dataset, given_in(arguments), arguments.concurrency)


def score_shards(service: Session, folder: Path, *, retry: bool = False) -> tuple[dict[Path, Path], int]:
    """
    Score each shard into a Parquet file in *folder*; return the shard of each, and the number of scored rows.

    Args:
        retry: score the rows with errors of finished shards again.

    Raises:
        UsageFault: a file there is something else, or has scores of another plan.
    """
    files = files_of(service.dataset.shards, folder)
    left = {file for file in files if not service.is_finished(file, retry=retry)}
    if left:
        service.dataset.check_samples()
        folder.mkdir(exist_ok=True)
    parts = (
        service.shard(shard, file, f"shard {number} of {len(files)}")
        for number, (file, shard) in enumerate(files.items(), 1)
        if file in left
    )
    asked = service.score(parts)
    return {file: shard for file, shard in files.items() if file.exists()}, asked  # none without samples


def check_finished(plan: Plan, file: Path) -> None:
    """Raise `UsageFault` if *file* is something else than the results of a shard by *plan*."""
    for line in lines_of(file):
        plan.check(line, str(file))
        if line["scores"]:  # with the models, which all its lines have
            return


def tell(lines: Callable[[], Iterator[Line]], asked: int, out: Path, left_over: int = 0) -> bool:
    """Print a summary to stderr; return True if every row has all its scores."""
    return tell_summary(Summary.of(lines()), asked, out, left_over)


def tell_summary(summary: "Summary", asked: int, out: Path, left_over: int = 0) -> bool:
    """Print *summary* to stderr, as `tell`."""
    for detail in summary.details[:REASONS]:
        say(f"cannot read {detail}")
    if summary.unread > REASONS:
        say(f"and {summary.unread - REASONS} more rows, see {UNREADABLE} in the results")
    for warning in summary.warnings:
        say(f"warning: {warning}" + f" (first: {warning.image})" * bool(warning.image))
    say(f"{summary.text}; {asked} were requested in this run{summary.without}")
    say(str(out))
    if left_over:
        say(f"{left_over} lines are of no row of the data set; they are kept")
    return not summary.incomplete


@dataclass
class Summary:
    """
    The number of rows, and of those without all scores, by code; why the first ones cannot be read; warnings.
    """

    rows: int = 0
    incomplete: int = 0
    unread: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    details: list[str] = field(default_factory=list)
    warnings: list[Kind] = field(default_factory=list)

    @classmethod
    def of(cls, lines: Iterable[Line]) -> "Summary":
        """Return the summary of *lines*."""
        summary = cls()
        summary.warnings = kinds_of(summary.counted(lines))
        return summary

    @classmethod
    def merged(cls, parts: Sequence["Summary"]) -> "Summary":
        """Return the summary of the lines of all *parts*."""
        return cls(
            sum(part.rows for part in parts),
            sum(part.incomplete for part in parts),
            sum(part.unread for part in parts),
            sum((part.codes for part in parts), Counter()),
            [*islice(chain.from_iterable(part.details for part in parts), REASONS)],
            merged_kinds(chain.from_iterable(part.warnings for part in parts)),
        )

    def counted(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield *lines*, which may be many, and count them."""
        for line in lines:
            errors = line["errors"].values()
            self.rows += 1
            self.incomplete += bool(errors)
            self.codes.update({error["code"] for error in errors})
            why = {error["detail"] for error in errors if error["code"] == UNREADABLE}
            self.unread += len(why)
            self.details += why if len(self.details) < REASONS else ()
            yield line

    @property
    def text(self) -> str:
        return f"{self.rows - self.incomplete} of {self.rows} rows have all scores"

    @property
    def without(self) -> str:
        """The codes of the errors, for the end of a sentence."""
        codes = ", ".join(f"{number} {shown(code)}" for code, number in self.codes.most_common())
        return f"; without a score: {codes}" if codes else ""


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


def check_no_prompt(dataset: Dataset, served: Mapping[str, Any], metrics: Sequence[str]) -> None:
    """Raise `UsageFault` if *dataset* is read without prompts, and a metric reads them."""
    reading = [name for name in metrics if served[name].get("reads_prompt", True)]
    if reading and dataset.no_prompt:
        raise UsageFault(f"--no-prompt: {', '.join(reading)} cannot score a picture without its prompt")


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
