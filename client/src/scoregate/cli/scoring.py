"""Scoring of a data set, row by row, into its results."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol

import scoregate
from scoregate.cli.arguments import UsageFault
from scoregate.cli.lines import ANY_MODELS, Plan, line, unreadable
from scoregate.cli.manifest import keep_sets
from scoregate.cli.results import Results
from scoregate.data.rows import Row, digest, kind_of
from scoregate.many import Progress, change_of

ITEMS = 16  # of a request; the pictures of several requests are in memory


class Rows(Protocol):
    """The rows of a data set, iterated once for a run."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Row]: ...


def score(
    client: scoregate.Client,
    dataset: Rows,
    results: Results,
    concurrency: int,
    seen: Callable[[scoregate.Result], object] = id,
) -> int:
    """
    Score the rows without a complete line, and call *seen* with each result; then keep the question sets.

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
    keep_sets(client, results)
    return asked


def unscored(
    dataset: Rows, results: Results, sent: deque[tuple[Row, str]], progress: Progress
) -> Iterator[scoregate.Item]:
    """Yield the rows to send, noted in *sent*.  All others get their lines here."""
    for row in dataset:
        why, files, related = row.fault, list[bytes](), dict[str, list[bytes]]()
        try:
            if not why:
                files = row.read_frames()
                related = {column: row.read_related(column) for column in results.plan.uses}
        except OSError as exc:
            why = f"{row.place}: {exc.strerror or exc}"
        except ValueError as exc:
            why = f"{row.place}: {exc}"
        if not why and (other := no_picture(files, related) or too_large(files, related, results.plan)):
            why = f"{row.place}: {other}"
        if why:
            results.add(row, unreadable(results.plan, row, why))
            progress.step(failed=True, resumed=True)
            continue
        references, source = related.get("references", []), related.get("source", [])
        sha256 = digest(*files, *references, *source)
        known = results.earlier(row, sha256)
        if known and results.plan.covers(known):
            results.keep(row, known)
            progress.step(resumed=True)
            continue
        sent.append((row, sha256))
        yield scoregate.Item(
            row.prompt,
            files if row.frames else files[0],
            options=row.options,
            references=references,
            source=next(iter(source), None),
            orient=results.plan.orient,
        )


def no_picture(files: Sequence[bytes], related: Mapping[str, list[bytes]]) -> str:
    """Return why a row's files are not sent; "" if all are pictures by their first bytes."""
    if not all(files):
        return "the picture is empty"
    if not all(map(kind_of, files)):
        return "the file is no picture by its first bytes"
    wrong = [column for column, files in related.items() if not all(map(kind_of, files))]
    return f"column {wrong[0]}: a file is no picture by its first bytes" if wrong else ""


def too_large(files: Sequence[bytes], related: Mapping[str, list[bytes]], plan: Plan) -> str:
    """Return why a row's files are not sent: the service would reject the whole request."""
    largest = max(map(len, [*files, *chain.from_iterable(related.values())]))
    if plan.max_bytes is None or largest <= plan.max_bytes:
        return ""
    return f"a file has {largest} bytes, and the service takes {plan.max_bytes}"


def keep(results: Results, row: Row, sha256: str, answer: scoregate.Result) -> None:
    """
    Write the answer's line, with the models and the answer's warnings about this row.

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
    sets = known.get("question_sets", {}) | dict(answer.question_sets)
    noted = [notice.as_json() for notice in answer.warnings]
    earlier = [each for each in known.get("warnings", []) if each not in noted]
    if known.get("scores") and not answer.scores:
        models = known.get("models", {})
    results.add(row, line(plan, row, sha256, scores, errors, details, models, [*earlier, *noted], sets))
