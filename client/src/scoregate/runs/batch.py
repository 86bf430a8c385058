"""A whole data set, scored into a file or a folder that the next run continues."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import scoregate
from scoregate.data.datasets import Dataset
from scoregate.data.rows import Row
from scoregate.errors import InputError, NoResultError, named
from scoregate.items import names_of
from scoregate.local import Service
from scoregate.runs.batch_settings import KEPT_FILE, Batch, Run, check_output, dataset_of
from scoregate.runs.manifest import Manifest
from scoregate.runs.plan import Line, Plan, check_no_prompt, plan_of, with_options
from scoregate.runs.results import (
    Results,
    ResultsFile,
    check_replaced,
    files_of,
    journal_of,
    lines_of,
    plan_in,
)
from scoregate.runs.summary import Summary
from scoregate.settings import settings_in
from scoregate.text import Progress, say, say_outage

if TYPE_CHECKING:
    from scoregate.expression import Condition

TIMEOUT_S = 600.0  # seconds for a request
ITEMS_PER_REQUEST = 16  # items of a request; the pictures of several requests are in memory

SessionFactory = Callable[[], "AbstractContextManager[Session]"]


@dataclass(frozen=True)
class BatchOutcome:
    """
    Results of a run.

    Attributes:
        files: of results, with the shard of each; the data set itself of one file.
        requested: rows that were sent in this run, which took *seconds*.
        left_over: lines of no row of the data set.
    """

    out: Path
    dataset: Dataset
    files: Mapping[Path, Path]
    requested: int
    summary: Summary
    left_over: int = 0
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether every row has all its scores."""
        return not self.summary.incomplete

    @property
    def plan(self) -> Plan:
        """The plan of the first file."""
        return plan_in(next(iter(self.files)))

    def lines(self) -> Iterator[Line]:
        """Yield a line for each row of the data set, in its order."""
        every = islice(chain.from_iterable(map(lines_of, self.files)), self.summary.rows)
        if self.out in self.files:
            return every
        return ({**line, "row": number} for number, line in enumerate(every, 1))


def score(
    data: str | PathLike[str],
    out: str | PathLike[str],
    metrics: Sequence[str] | str = (),
    *,
    client: scoregate.Client | None = None,
    local: Sequence[str] | str = (),
    **settings: Any,
) -> BatchOutcome:
    """
    Score a data set into *out*, where the next call with the same arguments continues.

    Args:
        data: a folder, a file or a pattern of shards, as `scoregate batch` takes them.
        out: a file of `KINDS`; of shards also a folder.
        metrics: by default `METRIC`; with a policy its own, which need not be named.
        client: scores, and stays open; by default a client of the service that the environment names.
        local: models that are loaded for this run, in place of a service.
        settings: options of the command, the fields of `Batch`, such as `prompt_column` and `retry`.

    Raises:
        InputError: settings do not go together, or *out* has other scores.
        OSError: a file cannot be read or written.
        NoResultError: the samples of a shard cannot be copied, or the processes of a cluster were lost.
        ScoregateError: a request failed as a whole; what was scored is kept.
    """
    service = Service.of(client, local, settings.get("strict"), TIMEOUT_S)
    own = {"dataset": Path(data), "out": Path(out), "metrics": names_of(metrics)}
    batch = settings_in(Batch, own | settings | {"strict": service.strict})
    outcome = score_batch(batch, service)
    if batch.filter and not write_filtered(batch, batch.filter, outcome):
        raise NoResultError(f"a shard was not copied to {batch.kept_shards}")
    return outcome


def score_batch(batch: Batch, service: Service, *, draw: bool = True) -> BatchOutcome:
    """
    Score a data set as `score`, without its filter.

    Args:
        draw: write the page of the settings; else it is only checked.
    """
    check_policy(batch)
    if batch.named:
        raise InputError("several generators: `score_generators` scores each into a file of its own")
    names = batch.scored
    dataset, out = dataset_of(batch, names), batch.out
    in_folder = bool(dataset.shards) and (out.is_dir() or not out.suffix)
    if batch.ray and not in_folder:
        raise InputError(f"{named('ray')}: the data set has to be in shards, and the results in a folder")
    check_output(dataset, out, batch.html, in_folder=in_folder)
    if not in_folder:
        check_replaced(out)  # before models are loaded
    if batch.filter or batch.kept_shards:
        from scoregate.runs.filter import check_filter, check_kept_shards

        check_filter(batch)
        check_kept_shards(batch, dataset, in_folder=in_folder)
    if batch.ray and service.existing:
        raise InputError(
            f"{named('ray')}: each process of the cluster loads its own models, and takes no client"
        )
    service = replace(service, policies=str(batch.policy_file or ""))
    opened = partial(session, batch, dataset, service, batch.policy)
    outcome = (into_folder if in_folder else into_file)(batch, dataset, service, opened)
    if batch.html and draw and outcome.files:
        # Pages stand above runs, so this one is imported by its name.
        sheet = import_module("scoregate.report.sheet")
        sheet.write_sheet(batch.html, outcome.dataset, outcome.plan, outcome.lines, batch.html_images)
    return outcome


def check_policy(batch: Batch) -> None:
    """Raise `InputError` for settings that do not go together with a policy."""
    if batch.policy_file and not batch.policy:
        raise InputError(f"{named('policy_file')} needs {named('policy', 'NAME')}")
    if batch.policy and batch.metrics_column:
        both = f"{named('policy')} and {named('metrics_column')}"
        raise InputError(f"{both}: each row has the metrics of the policy")


def write_filtered(batch: Batch, condition: Condition, outcome: BatchOutcome) -> bool:
    """Write what passes a filter; return False if a shard could not be copied."""
    from scoregate.runs.filter import only_shard, write_kept, write_shards

    out, folder = outcome.out, batch.kept_shards
    write_kept(kept_file(out), condition, outcome.lines())
    if not folder:
        return True
    shard = only_shard(outcome.dataset)
    files = {out: shard} if out.is_file() and shard else outcome.files
    return write_shards(folder, condition, out, files)


def kept_file(out: Path) -> Path:
    """Return the file of the names of the rows that pass the filter."""
    return out / KEPT_FILE if out.is_dir() else out.with_name(f"{out.name}.{KEPT_FILE}")


def into_file(batch: Batch, dataset: Dataset, service: Service, opened: SessionFactory) -> BatchOutcome:
    """Score a data set into one file."""
    with scored(opened, batch.out) as found:
        left_over, summary = len(found.results.left_over), Summary.of(found.results.lines())
    files = {batch.out: found.dataset.path} if batch.out.exists() else {}  # none without rows
    return BatchOutcome(batch.out, found.dataset, files, found.requested, summary, left_over, found.seconds)


def into_folder(batch: Batch, dataset: Dataset, service: Service, opened: SessionFactory) -> BatchOutcome:
    """Score shards into a folder, here or on a cluster."""
    if batch.ray:
        from scoregate.runs.cluster import score_on_cluster

        begun_s = monotonic()
        files, requested, summary = score_on_cluster(batch, dataset, service, opened)
        seconds = monotonic() - begun_s  # models are loaded meanwhile
    else:
        with opened() as here:
            begun_s = monotonic()
            files, requested = score_shards(here, batch.out, retry=batch.retry)
            seconds = monotonic() - begun_s
        summary = Summary.of(chain.from_iterable(map(lines_of, files)))
    return BatchOutcome(batch.out, dataset, files, requested, summary, seconds=seconds)


class ScoredRows(NamedTuple):
    """Results of a data set; *requested* rows were sent in this run, which took *seconds*."""

    results: Results
    dataset: Dataset
    requested: int = 0
    seconds: float = 0.0


@contextmanager
def scored(opened: SessionFactory, file: Path) -> Iterator[ScoredRows]:
    """Score the rows without results; yield the results in *file*."""
    with opened() as here:
        dataset, count = here.dataset, here.dataset.count()
        with ResultsFile(file, here.plan) as results:
            begun_s = monotonic()
            with here.part(dataset, results) as part:
                requested = here.score([nullcontext(part)], count)
            yield ScoredRows(results, dataset, requested, monotonic() - begun_s)


@dataclass
class Session:
    """
    A service or models of this process, and what they score.

    Attributes:
        settings: which say how the data set is read, and how many requests are concurrent.
        ended_s: when the last part ended, by *clock*.
    """

    client: scoregate.Client
    served: Mapping[str, Any]
    plan: Plan
    dataset: Dataset
    settings: Run
    ended_s: float = 0.0
    clock: Callable[[], float] = monotonic

    @contextmanager
    def part(self, dataset: Dataset, results: ResultsFile) -> Iterator[Part]:
        """Yield the rows of *dataset* as a part of a run, which the manifest of the results describes."""
        with Manifest(dataset, self.settings, results, self.served, self.clock) as run:
            yield Part(dataset, results, run.answered)
            run.keep_sets(self.client, results.set_ids)
            run.begun_s = max(run.begun_s, self.ended_s)  # rows are sent before the last part ends
        self.ended_s = self.clock()

    @contextmanager
    def shard(self, shard: Path, file: Path, name: str) -> Iterator[Part]:
        """Yield the rows of a shard, whose results are *file* when all are there; then print *name*."""
        dataset = replace(self.dataset, path=shard, more=(), part=True)
        with ResultsFile(file, self.plan, whole=True) as results, self.part(dataset, results) as part:
            yield part
        say(f"{name}: {file}")

    def is_finished(self, file: Path, *, retry: bool) -> bool:
        """
        Return True if *file* has the results of a shard; with *retry*, without an error.

        A file with a journal is of a retry that was interrupted.  What is finished is not scored again.

        Raises:
            InputError: the file is something else, or has scores of another plan.
        """
        if not file.exists() or journal_of(file).exists():
            return False
        check_finished(self.plan, file)
        if not all(map(self.plan.decides_as, islice(lines_of(file), 1))):  # a file is of one policy
            return False
        return not retry or all(map(self.plan.covers, lines_of(file)))

    def finish(self, shard: Path, file: Path, *, retry: bool) -> tuple[int, Summary]:
        """Score a shard into *file* unless that is finished; return the number of scored rows, a summary."""
        finished = self.is_finished(file, retry=retry)
        asked = 0 if finished else self.score([self.shard(shard, file, str(shard))])
        return asked, Summary.of(lines_of(file) if file.exists() else ())

    def score(self, parts: Iterable[AbstractContextManager[Part]], count: int | None = None) -> int:
        """Score the rows without results; return their number."""
        return scored_rows(self.client, self.plan, parts, self.settings.concurrency, count)


@contextmanager
def session(
    settings: Run, dataset: Dataset, service: Service, policy: str | None = None
) -> Iterator[Session]:
    """Yield the session of a client of *service*."""
    with client_of(settings, service, policy) as here:
        yield session_of(here, settings, dataset, policy)


def client_of(
    settings: Run, service: Service, policy: str | None
) -> AbstractContextManager[scoregate.Client]:
    """Return the context of a client of *service* for a run; the service has the metrics of a policy."""
    known: dict[str, Any] = {} if policy else {"metrics": settings.names, "options": settings.options}
    return service.client(outage=say_outage, strict=settings.strict, **known)


def session_of(
    client: scoregate.Client, settings: Run, dataset: Dataset, policy: str | None = None
) -> Session:
    """Return the session of *client*, which decides about each row by a *policy* of its service, if named."""
    named = None
    if policy:
        from scoregate.decisions.policies import served_policy  # few runs need it

        named = served_policy(client.policies(), policy)
        settings = settings.deciding(named.name, named.rules.deciding, named.options)
        dataset = replace(dataset, metrics=settings.names)
    served = client.models(settings.names)
    plan = plan_of(served, settings)
    plan = replace(plan, mixed=dataset.metrics_column is not None, policy=named)
    check_no_prompt(dataset, served["metrics"], plan.metrics)
    return Session(client, served, plan, with_options(dataset, served, client), settings)


def score_shards(service: Session, folder: Path, *, retry: bool = False) -> tuple[dict[Path, Path], int]:
    """
    Score each shard into a Parquet file in *folder*; return the shard of each, and the number of scored rows.

    Args:
        retry: score the rows with errors of finished shards again.

    Raises:
        InputError: a file there is something else, or has scores of another plan.
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
    """Raise `InputError` if *file* is something else than the results of a shard by *plan*."""
    for line in lines_of(file):
        plan.check(line, str(file))
        if line["scores"]:  # all lines with scores have the models
            return


# --- row by row ------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Rows, read once, and the results that get a line for each; *seen* is called with each answer."""

    rows: Iterable[Row]
    results: Results
    seen: Callable[[scoregate.Result], object] = id


class Request(NamedTuple):
    """A row that was sent, and its line of an earlier run."""

    part: Part
    row: Row
    known: Line


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
    its first row is read, and left after its last answer.

    Args:
        count: of the rows, if known.

    Raises:
        InputError: a score is from other models than those of the plan, which does not allow for it.
    """
    sent, asked = Sent(), 0
    with ExitStack() as stack, closing(Progress(count, leave=False)) as progress:
        answers = client.score_many(
            unscored(parts, plan, stack, sent, progress),
            plan.metrics,
            options=plan.options,
            explain=plan.explain,
            concurrency=concurrency,
            batch_size=ITEMS_PER_REQUEST,
            allow_model_change=True,  # `Plan.line` compares with the plan
        )
        for answer in answers:
            part, row, known = next_request(sent)
            part.results.add(row, plan.line(row, answer.as_json(), known))
            asked += 1
            part.seen(answer)
            progress.step(failed=bool(answer.errors))
        end_parts(sent)
    return asked


def next_request(sent: Sent) -> Request:
    """Return the first request, and end the parts before it."""
    end_parts(sent)
    first = sent.popleft()
    assert isinstance(first, Request)
    return first


def end_parts(sent: Sent) -> None:
    """Leave the first parts, up to the first request."""
    while sent and isinstance(end := sent[0], End):
        sent.popleft()
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
        for request, item in unscored_of(part, plan, progress):
            sent.append(request)
            yield item
        sent.append(End(part, opened))


def unscored_of(part: Part, plan: Plan, progress: Progress) -> Iterator[tuple[Request, scoregate.Item]]:
    """Yield the rows to send of a part, and as they are sent.  All others get their lines here."""
    results = part.results
    for each in part.rows:
        if plan.policy:
            plan.policy.check_options(each)
        try:
            item, sha256 = each.item(plan.uses, plan.orient, plan.max_bytes)
        except ValueError as exc:
            results.add(each, plan.unreadable(each, str(exc)))
            progress.step(failed=True, resumed=True)
            continue
        row = replace(each, sha256=sha256)
        known = results.earlier(row)
        if known and plan.covers(known) and {*(row.metrics or plan.metrics)} == known["scores"].keys():
            results.keep(row, known)
            progress.step(resumed=True)
        else:
            yield Request(part, row, known or {}), item
