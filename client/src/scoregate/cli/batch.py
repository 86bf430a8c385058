"""`scoregate batch`: a whole data set, in a file that the next run continues."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
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
    add_concurrency,
    add_metrics,
    connected,
    metrics_of,
    options_of,
    whole,
)
from scoregate.cli.columns import sweep_of
from scoregate.cli.datasets import Dataset, captions_alone, is_generated
from scoregate.cli.lines import ANY_MODELS, UNREADABLE, Plan
from scoregate.cli.manifest import NAMES, Manifest
from scoregate.cli.results import KINDS, Results
from scoregate.cli.rows import prompt_fault
from scoregate.cli.scoring import score
from scoregate.cli.warnings import kinds_of
from scoregate.records import kind
from scoregate.text import shown

TIMEOUT_S = 600.0  # of a request
REASONS = 5  # why rows cannot be read, on stderr


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_dataset(parser)
    add = parser.add_argument
    add("-o", "--out", type=Path, required=True, help=f"the results, {' or '.join(KINDS)}")
    add_metrics(parser)
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


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments for the data set, its columns and the concurrency."""
    add = parser.add_argument
    add(
        "dataset",
        type=Path,
        metavar="DATASET",
        help="a folder with captions or metadata, or a .jsonl, .csv or .parquet",
    )
    add("--image-column", metavar="NAME", help="default image; file_name in a folder's metadata")
    add("--prompt-column", metavar="NAME", default="prompt", help="default %(default)s")
    add("-p", "--prompt", help="of all pictures of a folder, in place of captions")
    add("--frames-column", metavar="NAME", help="lists of frames or views, in place of one picture")
    add(
        "--option-column",
        action="append",
        default=[],
        metavar="METRIC.OPTION=COLUMN",
        help="a column with an option of each row, such as ocr.text=wanted",
    )
    add(
        "--matrix",
        action="store_true",
        help="score each picture of a row with each of its texts; columns may be lists, or named with commas",
    )
    add(
        "--sweep",
        action="append",
        default=[],
        metavar="METRIC.OPTION=FILE",
        help="score each row with each value of an option, a line of FILE each",
    )
    add("--any-path", action="store_true", help="read pictures outside the data set's folder, too")
    add_concurrency(parser)


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some row lacks a score."""
    dataset = named(arguments)
    check(dataset, arguments.out, arguments.html)
    with scored(arguments, dataset, arguments.out) as (results, dataset, asked):
        complete = tell(results, asked, arguments.out)
        if arguments.html:
            sheet.write(arguments.html, dataset, results, arguments.html_pictures)
    return OK if complete else NO_SCORE


@contextmanager
def scored(
    arguments: argparse.Namespace, dataset: Dataset, file: Path
) -> Iterator[tuple[Results, Dataset, int]]:
    """
    Score the rows without results; yield the results in *file*, the data set, and the number of scored rows.

    Ctrl-C prints how many rows are kept.
    """
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
        dataset = with_options(dataset, served, client)
        with Results(file, plan) as results:
            try:
                with Manifest(arguments.dataset, given_in(arguments), results, served) as run:
                    asked = score(client, dataset, results, arguments.concurrency, run.answered)
            except KeyboardInterrupt:
                kept = len(results.order) + len(results.left_over)
                where = f"{kept} rows are kept in {file}, and the same command goes on from there"
                why = where if kept else "no row was scored yet"
                print(shown(f"scoregate: interrupted: {why}"), file=sys.stderr)
                raise
            yield results, dataset, asked


def given_in(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that say how a data set is read, by name."""
    return {name: getattr(arguments, name) for name in (*NAMES, "sweep")}


def named(arguments: argparse.Namespace) -> Dataset:
    """Return the data set that the arguments name.  Raises as `dataset_of`."""
    return dataset_of(arguments.dataset, metrics_of(arguments), **given_in(arguments))


def dataset_of(
    path: Path,
    metrics: Sequence[str],
    *,
    image_column: str | None = None,
    prompt_column: str = "prompt",
    frames_column: str | None = None,
    option_column: Sequence[str] = (),
    matrix: bool = False,
    sweep: Sequence[str] = (),
    any_path: bool = False,
    prompt: str | None = None,
) -> Dataset:
    """
    Return a data set.

    Args:
        option_column, sweep: in the form of their arguments.

    Raises:
        UsageFault: arguments have another form, or do not go together.
    """
    if matrix and frames_column:
        raise UsageFault("--matrix and --frames-column: give one of them")
    if prompt is not None:
        check_prompt(path, prompt)
    renamed = dict[str, str]()
    for text in option_column:
        name, _, column = text.partition("=")
        if not column or not all(name.partition(".")):
            raise UsageFault(f"--option-column {shown(text)}: it has the form METRIC.OPTION=COLUMN")
        renamed[name] = column
    sweeps = [sweep_of(text) for text in sweep]
    if wrong := [
        each for each in (*renamed, *(s.name for s in sweeps)) if each.partition(".")[0] not in metrics
    ]:
        raise UsageFault(f"{shown(wrong[0])}: this metric is not scored, see --metric")
    return Dataset(
        path,
        image_column,
        prompt_column,
        any_path,
        frames_column,
        renamed,
        matrix,
        sweeps,
        metrics,
        prompt=prompt,
    )


def check_prompt(folder: Path, prompt: str) -> None:
    """Raise `UsageFault` if *folder* has prompts of its own, or the service would reject this one."""
    if Dataset(folder).table is not None or is_generated(folder):
        raise UsageFault(f"--prompt is for a folder of pictures alone: {folder} has prompts of its own")
    if fault := prompt_fault(prompt):
        raise UsageFault(f"--prompt {fault}")


def check(dataset: Dataset, out: Path, page: Path | None) -> None:
    """Raise `UsageFault` for what would otherwise be found when all is scored."""
    table = dataset.table
    if table is None and (given := about_columns(dataset)):
        raise UsageFault(f"{given[0]}: this folder has no table, but a text file for each picture")
    for path, what in ((out, "results"), (page, "page")):
        if path and table is not None and path.resolve() == table.resolve():
            raise UsageFault(f"{path}: the {what} would overwrite the data set")
        if path and not path.parent.is_dir():
            raise UsageFault(f"{path}: there is no folder {path.parent}")
    if page and page.resolve() == out.resolve():
        raise UsageFault(f"{page}: the page would overwrite the results")
    if table is None and dataset.prompt is None and (alone := captions_alone(dataset.path)):
        named = ", ".join(alone[:5]) + ", …" * (len(alone) > 5)
        print(
            shown(f"text files without a picture of the same name: {len(alone)} ({named})"), file=sys.stderr
        )


def about_columns(dataset: Dataset) -> list[str]:
    """Return the arguments that need a table."""
    given = {
        "--image-column": dataset.image_column,
        "--prompt-column": dataset.prompt_column != Dataset.prompt_column,
        "--frames-column": dataset.frames_column,
        "--option-column": dataset.option_columns,
        "--matrix": dataset.matrix,
    }
    return [argument for argument, value in given.items() if value]


def tell(results: Results, asked: int, out: Path) -> bool:
    """Print a summary to stderr; return True if every row has all its scores."""
    codes: Counter[str] = Counter()
    rows, incomplete, unread = 0, 0, list[str]()
    for each in results.lines():
        rows += 1
        incomplete += bool(each["errors"])
        codes.update({error["code"] for error in each["errors"].values()})
        unread += {error["detail"] for error in each["errors"].values() if error["code"] == UNREADABLE}
    text = f"{rows - incomplete} of {rows} rows have all scores; {asked} were requested in this run"
    if incomplete:
        text += "; without a score: " + ", ".join(f"{n} {shown(code)}" for code, n in codes.most_common())
    for why in unread[:REASONS]:
        print(shown(f"cannot read {why}"), file=sys.stderr)
    if len(unread) > REASONS:
        print(f"and {len(unread) - REASONS} more rows, see {UNREADABLE} in the results", file=sys.stderr)
    for warning in kinds_of(results.lines()):
        print(
            shown(f"warning: {warning}" + f" (first: {warning.image})" * bool(warning.image)), file=sys.stderr
        )
    print(f"{text}\n{shown(out)}", file=sys.stderr)
    if results.left_over:
        print(f"{len(results.left_over)} lines are of no row of the data set; they are kept", file=sys.stderr)
    return not incomplete


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
