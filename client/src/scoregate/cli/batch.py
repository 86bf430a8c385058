"""`scoregate batch`: a whole data set, in a file that the next run continues."""

import argparse
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import scoregate
from scoregate.cli import sheet
from scoregate.cli.arguments import add_metrics, connected, metrics_of, options_of, whole
from scoregate.cli.datasets import Dataset, Row, captions_alone, digest
from scoregate.cli.exits import NO_SCORE, OK, UsageFault
from scoregate.cli.lines import ANY_MODELS, Plan, line, unreadable
from scoregate.cli.results import KINDS, Results
from scoregate.cli.signatures import kind_of
from scoregate.cli.text import shown
from scoregate.cli.warned import kinds_of
from scoregate.direction import lower_is_better
from scoregate.many import change_of
from scoregate.progress import Progress

HELP = "score a data set; run it again to continue, and to retry rows with errors"
TIMEOUT_S = 600.0  # of a request
ITEMS = 16  # of a request; the pictures of several requests are in memory


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
    add("--any-path", action="store_true", help="read pictures outside the data set's folder, too")
    add(
        "--concurrency",
        type=whole,
        default=8,
        metavar="N",
        help="requests at the same time (default %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some row lacks a score."""
    dataset = dataset_of(arguments)
    check(dataset, arguments.out, arguments.html)
    with connected(arguments, TIMEOUT_S) as client:
        served = client.models()
        plan = plan_of(arguments, served)
        with Results(arguments.out, plan) as results:
            asked = score(client, dataset, results, arguments.concurrency)
            complete = tell(results, asked, arguments.out)
            if arguments.html:
                sheet.write(arguments.html, dataset, results, arguments.html_pictures)
    return OK if complete else NO_SCORE


def dataset_of(arguments: argparse.Namespace) -> Dataset:
    """Return the data set that was named."""
    named = arguments.dataset, arguments.image_column, arguments.prompt_column
    return Dataset(*named, any_path=arguments.any_path)


def check(dataset: Dataset, out: Path, page: Path | None) -> None:
    """Raise `UsageFault` for what would otherwise be found when all is scored."""
    table = dataset.table
    for path, what in ((out, "results"), (page, "page")):
        if path and table is not None and path.resolve() == table.resolve():
            raise UsageFault(f"{path}: the {what} would overwrite the data set")
        if path and not path.parent.is_dir():
            raise UsageFault(f"{path}: there is no folder {path.parent}")
    if page and page.resolve() == out.resolve():
        raise UsageFault(f"{page}: the page would overwrite the results")
    if table is None and (alone := captions_alone(dataset.path)):
        named = ", ".join(alone[:5]) + ", …" * (len(alone) > 5)
        print(
            shown(f"text files without a picture of the same name: {len(alone)} ({named})"), file=sys.stderr
        )


def plan_of(arguments: argparse.Namespace, served: dict[str, Any]) -> Plan:
    """Return the plan: options and models.  Raises `UsageFault` for an unknown metric."""
    metrics = metrics_of(arguments)
    if unknown := [metric for metric in metrics if metric not in served["metrics"]]:
        raise UsageFault(f"no metric {', '.join(unknown)}; the service has {', '.join(served['metrics'])}")
    ids = {model["name"]: label_of(model) for model in served["models"]}
    used = chain.from_iterable(served["metrics"][metric]["models"] for metric in metrics)
    models = {name: ids[name] for name in sorted(set(used))}
    uses = chain.from_iterable(served["metrics"][metric].get("uses", ()) for metric in metrics)
    return Plan(
        metrics,
        models,
        options_of(arguments),
        arguments.explain,
        sorted(set(uses)),
        [name for name in metrics if lower_is_better(served["metrics"][name])],
        arguments.any_models,
        arguments.strict,
    )


def label_of(model: Mapping[str, str]) -> str:
    """Return the name that answers give a model of `GET /models`."""
    plain = f"{model['id']}@{model['revision']}" if model["revision"] else model["id"]
    return model.get("label") or plain


def score(
    client: scoregate.Client,
    dataset: Dataset,
    results: Results,
    concurrency: int,
    seen: Callable[[scoregate.Result], object] = id,
) -> int:
    """
    Score the rows without a complete line, and call *seen* with each result.

    Raises:
        UsageFault: a score is from other models than those of the plan, which does not allow for it.
    """
    sent: deque[tuple[Row, str]] = deque()
    asked = 0
    progress = Progress(len(dataset), leave=False)
    answers = client.score_many(
        unscored(dataset, results, sent, progress),
        results.plan.metrics,
        options=results.plan.options,
        explain=results.plan.explain,
        concurrency=concurrency,
        batch=ITEMS,
        allow_model_change=True,  # `keep` compares with the plan
    )
    try:
        for answer in answers:
            row, sha256 = sent.popleft()
            keep(results, row, sha256, answer)
            asked += 1
            seen(answer)
            progress.step(failed=bool(answer.errors))
    finally:
        progress.close()
    return asked


def unscored(
    dataset: Dataset, results: Results, sent: deque[tuple[Row, str]], progress: Progress
) -> Iterator[scoregate.Item]:
    """Yield the rows to send, noted in *sent*.  All others get their lines here."""
    for row in dataset:
        why, related = row.fault, dict[str, list[bytes]]()
        try:
            data = b"" if why else row.read()
            if not why:
                related = {column: row.read_related(column) for column in results.plan.uses}
        except OSError as exc:
            why = f"row {row.number}, {row.image}: {exc.strerror or exc}"
        except ValueError as exc:
            why = f"row {row.number}, {row.image}: {exc}"
        if not why and (other := no_picture(data, related)):
            why = f"row {row.number}, {row.image}: {other}"
        if why or row.prompt is None:
            results.add(row, unreadable(results.plan, row, why))
            progress.step(failed=True, resumed=True)
            continue
        references, source = related.get("references", []), related.get("source", [])
        sha256 = digest(data, *references, *source)
        known = results.earlier(row, sha256)
        if known and results.plan.covers(known):
            results.keep(row, known)
            progress.step(resumed=True)
            continue
        sent.append((row, sha256))
        yield scoregate.Item(row.prompt, data, references=references, source=next(iter(source), None))


def no_picture(data: bytes, related: Mapping[str, list[bytes]]) -> str:
    """Return why a row's files are not sent; "" if all are pictures by their first bytes."""
    if not data:
        return "the picture is empty"
    if not kind_of(data):
        return "the file is no picture by its first bytes"
    wrong = [column for column, files in related.items() if not all(map(kind_of, files))]
    return f"column {wrong[0]}: a file is no picture by its first bytes" if wrong else ""


def keep(results: Results, row: Row, sha256: str, answer: scoregate.Result) -> None:
    """
    Write the answer's line, with the models and the warnings of the answer.

    A score of an earlier run stays if there is no new one and it is from the same models.

    Raises:
        UsageFault: the models are not those of the plan, which does not allow for others.
    """
    plan, models = results.plan, dict(answer.models)
    if answer.scores and models != plan.models and not plan.any_models:
        raise UsageFault(
            f"the service has other models now: {change_of(plan.models, models)}. Name another file and"
            f" start anew, or give {ANY_MODELS}: each line then says which models gave its scores"
        )
    known = results.earlier(row, sha256) or {}
    if plan.refuses(known) or (answer.scores and known.get("models", {}) != models):
        known = {}
    scores = known.get("scores", {}) | dict(answer.scores)
    errors = {
        metric: {"code": error.code, "detail": error.detail}
        for metric, error in answer.errors.items()
        if metric not in scores
    }
    details = known.get("details", {}) | dict(answer.details)
    noted = [notice.as_json() for notice in answer.warnings]
    earlier = [each for each in known.get("warnings", []) if each not in noted]
    if known.get("scores") and not answer.scores:
        models = known.get("models", {})
    results.add(row, line(plan, row, sha256, scores, errors, details, models, [*earlier, *noted]))


def tell(results: Results, asked: int, out: Path) -> bool:
    """Print a summary to stderr; return True if every row has all its scores."""
    codes: Counter[str] = Counter()
    rows = incomplete = 0
    for each in results.lines():
        rows += 1
        incomplete += bool(each["errors"])
        codes.update({error["code"] for error in each["errors"].values()})
    text = f"{rows - incomplete} of {rows} rows have all scores; {asked} were requested in this run"
    if incomplete:
        text += "; without a score: " + ", ".join(f"{n} {shown(code)}" for code, n in codes.most_common())
    for kind in kinds_of(results.lines()):
        print(shown(f"warning: {kind}"), file=sys.stderr)
    print(f"{text}\n{shown(out)}", file=sys.stderr)
    if results.left_over:
        print(f"{len(results.left_over)} lines are of no row of the data set; they are kept", file=sys.stderr)
    return not incomplete
