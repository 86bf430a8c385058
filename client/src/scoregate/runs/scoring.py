"""Scoring of a data set, row by row, into its results."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from itertools import chain
from typing import NamedTuple

import scoregate
from scoregate.data.rows import Row, digest, kind_of
from scoregate.many import change_of
from scoregate.progress import Progress
from scoregate.records import BadInput
from scoregate.runs.manifest import keep_sets
from scoregate.runs.plan import ANY_MODELS, Plan
from scoregate.runs.results import Results

ITEMS = 16  # of a request; the pictures of several requests are in memory


class Part(NamedTuple):
    """Rows, read once, and the results that get a line for each; *seen* is called with each answer."""

    rows: Iterable[Row]
    results: Results
    seen: Callable[[scoregate.Result], object] = id


class Request(NamedTuple):
    """A row that was sent, and the hash of its pictures."""

    part: Part
    row: Row
    sha256: str


class End(NamedTuple):
    """The end of a part: it is left when the rows before it have their answers."""

    part: Part
    opened: ExitStack


Sent = deque[Request | End]


def scored_rows(
    client: scoregate.Client,
    plan: Plan,
    parts: Iterable[AbstractContextManager[Part]],
    concurrency: int,
    count: int | None = None,
) -> int:
    """
    Score the rows of all parts without a complete line; return their number.

    The rows of a part are read while answers for the parts before it are awaited.  A part is entered before
    its first row is read, and left after its last answer; its question sets are kept.

    Args:
        count: of the rows, if known.

    Raises:
        BadInput: a score is from other models than those of the plan, which does not allow for it.
    """
    sent, asked = Sent(), 0
    with ExitStack() as stack, closing(Progress(count, leave=False)) as progress:
        answers = client.score_many(
            unscored(parts, plan, stack, sent, progress),
            plan.metrics,
            options=plan.options,
            explain=plan.explain,
            concurrency=concurrency,
            batch_size=ITEMS,
            allow_model_change=True,  # `keep` compares with the plan
        )
        for answer in answers:
            part, row, sha256 = next_request(client, sent)
            keep(part.results, row, sha256, answer)
            asked += 1
            part.seen(answer)
            progress.step(failed=bool(answer.errors))
        end_parts(client, sent)
    return asked


def next_request(client: scoregate.Client, sent: Sent) -> Request:
    """Return the first request, and end the parts before it."""
    end_parts(client, sent)
    first = sent.popleft()
    assert isinstance(first, Request)
    return first


def end_parts(client: scoregate.Client, sent: Sent) -> None:
    """Keep the question sets of the first parts, and leave these, up to the first request."""
    while sent and isinstance(end := sent[0], End):
        sent.popleft()
        keep_sets(client, end.part.results)
        end.opened.close()


def unscored(
    parts: Iterable[AbstractContextManager[Part]],
    plan: Plan,
    stack: ExitStack,
    sent: Sent,
    progress: Progress,
) -> Iterator[scoregate.Item]:
    """Yield the rows to send of all parts, noted in *sent*; each part is entered in *stack*."""
    for each in parts:
        opened = stack.enter_context(ExitStack())
        part = opened.enter_context(each)
        for row, sha256, item in unscored_of(part, plan, progress):
            sent.append(Request(part, row, sha256))
            yield item
        sent.append(End(part, opened))


def unscored_of(part: Part, plan: Plan, progress: Progress) -> Iterator[tuple[Row, str, scoregate.Item]]:
    """Yield the rows to send of a part, with the hash of their pictures.  All others get their lines here."""
    results = part.results
    for row in part.rows:
        why, files, related = row.fault, list[bytes](), dict[str, list[bytes]]()
        try:
            if not why:
                files = row.read_frames()
                related = {column: row.read_related(column) for column in plan.uses}
        except OSError as exc:
            why = f"{row.place}: {exc.strerror or exc}"
        except ValueError as exc:
            why = f"{row.place}: {exc}"
        if not why and (other := no_picture(files, related) or too_large(files, related, plan)):
            why = f"{row.place}: {other}"
        if why:
            results.add(row, plan.unreadable(row, why))
            progress.step(failed=True, resumed=True)
            continue
        references, source = related.get("references", []), related.get("source", [])
        sha256 = digest(*files, *references, *source)
        known = results.earlier(row, sha256)
        wanted = {*(row.metrics or plan.metrics)}
        if known and plan.covers(known) and wanted == known["scores"].keys():
            results.keep(row, known)
            progress.step(resumed=True)
            continue
        item = scoregate.Item(
            prompt=row.prompt,
            image=files if row.frames else files[0],
            options=row.options,
            metrics=row.metrics,
            references=references,
            source=next(iter(source), None),
            orient=plan.orient,
        )
        yield row, sha256, item


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
        BadInput: the models are not those of the plan, which does not allow for others.
    """
    plan, models = results.plan, dict(answer.models)
    if answer.scores and plan.has_others(models) and not plan.any_models:
        raise BadInput(
            f"the service has other models now: {change_of(plan.models, models)}. Name another file and"
            f" start anew, or give {ANY_MODELS}: each line then says which models gave its scores"
        )
    known = results.earlier(row, sha256) or {}
    other = known.get("own_metrics", []) != list(row.metrics)
    if other or plan.refuses(known) or (answer.scores and known.get("models", {}) != models):
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
    results.add(row, plan.line(row, sha256, scores, errors, details, models, [*earlier, *noted], sets))
