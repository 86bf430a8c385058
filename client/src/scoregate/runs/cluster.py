"""
`scoregate batch --ray`: each shard is a row of Ray Data, and a process that has the models scores it whole.

So a shard's file is written by the code of one process, whole or not at all, and pictures pass through no
object store.  Question sets are written before, once for each distinct prompt of the data set.
"""

import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from socket import gethostname
from typing import Any, Protocol

import scoregate
from scoregate.data.datasets import Dataset
from scoregate.data.rows import QUESTION_SET, dumped_options
from scoregate.errors import InputError, named
from scoregate.local import Service, server
from scoregate.records import Line, Store
from scoregate.runs.batch_settings import Batch, Scoring
from scoregate.runs.manifest import content_of
from scoregate.runs.pool import Pool, WorkerSetup, attempt, joined, setup_of, with_errors
from scoregate.runs.results import files_of, journal_of
from scoregate.runs.summary import Summary
from scoregate.text import say


class ShardScorer(Protocol):
    """Models that score a shard into a file, see `scoregate.runs.batch.Session`."""

    def finish(self, shard: Path, file: Path, *, retry: bool) -> tuple[int, Any]: ...


ScorerFactory = Callable[[], AbstractContextManager[ShardScorer]]


def score_on_cluster(
    batch: Batch, dataset: Dataset, service: Service, opened: ScorerFactory
) -> tuple[dict[Path, Path], int, Summary]:
    """
    Score shards into the folder of a *batch* on a cluster; files that are there are checked first.

    Args:
        service: the models that each process loads.
        opened: makes a session in a process of the cluster.

    Returns:
        The shard of each file, the number of scored rows, and the summary of all shards.  The process that
        scored a shard summarizes it: a billion lines are not read again in one process.

    Raises:
        InputError: see `joined` and `ShardScorer.finish`; also if the nodes do not share the folders.
        NoResultError: a shard ended several processes.
    """
    folder, retry, asked = batch.out, batch.retry, 0
    setup, files = setup_of(service), files_of(dataset.shards, folder)
    left = {file for file in files if retry or not file.exists() or journal_of(file).exists()}
    if left:
        dataset.check_samples()
        folder.mkdir(exist_ok=True)
    first = sorted(files, key=left.__contains__)
    rows = [{"shard": str(files[file]), "file": str(file)} for file in first]
    summary = Summary()
    with joined(batch) as pool:
        unscored = [files[file] for file in first if file in left]
        scoring = scoring_of(batch, setup)
        asking = replace(dataset, metrics=scoring.names)
        sets = write_sets(pool, setup, scoring, service, asking, unscored, folder)
        for number, row in enumerate(pool.map(ShardActor, (setup, sets, opened, retry), rows), 1):
            asked += int(row["asked"])
            summary.add(pickle.loads(row["summary"]))
            if row["whole"] and not Path(row["file"]).exists():
                raise InputError(
                    f"{row['file']} is on the node {row['node']} alone: -o has to be in a folder that all"
                    " nodes share"
                )
            if Path(row["file"]) in left:
                say(f"shard {number} of {len(files)}: {row['file']}")
    return {file: shard for file, shard in files.items() if file.exists()}, asked, summary


def scoring_of(batch: Batch, setup: WorkerSetup) -> Scoring:
    """Return what is scored, with the metrics of a policy of the models' settings.  Raises `InputError`."""
    if not batch.policy:
        return batch
    from scoregate.decisions.policies import served_policy  # few runs need it

    listed = server().policies_in(setup.names, str(batch.policy_file or ""))
    named = served_policy(listed, batch.policy)
    return batch.deciding(named.name, named.rules.deciding, named.options)


class ShardActor:
    """Scores shards.  The first call loads the models, so that an error keeps its type."""

    def __init__(self, setup: WorkerSetup, sets: Sequence[Path], opened: ScorerFactory, retry: bool) -> None:
        self._setup, self._sets, self._opened, self._retry = setup, sets, opened, retry
        self._stack = ExitStack()

    @cached_property
    def session(self) -> ShardScorer:
        """The models of this process."""
        with self._setup.prepared(self._sets):
            return self._stack.enter_context(self._opened())

    @with_errors
    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Score a shard if it has no file, else check that file."""
        [shard], [file] = map(Path, batch["shard"]), map(Path, batch["file"])
        session = self.session
        self._setup.check(shard, file.parent)
        with attempt(self._setup.run, shard, file):
            asked, summary = session.finish(shard, file, retry=self._retry)
        return {
            "file": [str(file)],
            "asked": [asked],
            "summary": [pickle.dumps(summary)],
            "whole": [file.exists()],
            "node": [gethostname()],
        }


# --- question sets, before anything is scored ---------------------------------------------------


QUESTIONS = "questions"  # the folder of their files
PROMPTS_PER_REQUEST = 32  # prompts of a request


@dataclass(frozen=True)
class Asked:
    """A metric with question sets, and its options; *name* is `NAME.PART` for a part of a composite."""

    name: str
    metric: str
    options: Mapping[str, Any]


class Styles:
    """
    The question styles of a run, by the declarations of its metrics.

    Attributes:
        asked: the metrics whose question sets the options do not fix.
    """

    def __init__(self, names: Sequence[str], metrics: Sequence[str], options: Mapping[str, Any]) -> None:
        gate = server()
        self._known = gate.known_metrics()
        self.asked: list[Asked] = []
        if all(name in self._known and not self._known[name].style for name in metrics):
            return
        settings = gate.settings_for(names, (), "")
        self._known = gate.known_metrics(settings)
        parts = [Asked(name, name, options.get(name, {})) for name in metrics]
        for name in metrics:
            tables = settings.composites.get(name, {})
            parts += [Asked(f"{name}.{part}", part, table.options) for part, table in tables.items()]
        self.asked = [
            each
            for each in parts
            if QUESTION_SET not in each.options
            and each.metric in self._known
            and self._known[each.metric].style
        ]

    def style(self, asked: Asked, own: Mapping[str, Any]) -> tuple[str, str] | None:
        """Return a style's name and hash; None if *own*, the options of a row, are not valid."""
        metric = self._known[asked.metric]
        try:
            found = metric.style_of(metric.options.model_validate({**asked.options, **own}))
        except ValueError:  # each row gets the error
            return None
        return found.name, found.hash


@with_errors
def prompts_in(
    batch: Mapping[str, Any], setup: WorkerSetup, dataset: Dataset, names: Sequence[str]
) -> dict[str, list[Any]]:
    """Return the distinct prompts of a shard with their options, for each of the metrics *names*."""
    setup.enter()
    [shard] = batch["shard"]
    found: Counter[tuple[str, str, str]] = Counter()
    for row in replace(dataset, path=Path(shard), part=True):
        if row.prompt is None or row.fault:
            continue
        for name in names:
            own = row.options.get(name, {})
            if QUESTION_SET not in own:
                found[name, row.prompt, dumped_options(own)] += 1
    columns = [*map(list, zip(*found, strict=True))] if found else [[], [], []]
    return dict(zip(("name", "prompt", "options"), columns, strict=True)) | {"rows": [*found.values()]}


class QuestionActor:
    """Writes question sets.  The first call loads the models, so that an error keeps its type."""

    def __init__(self, setup: WorkerSetup, sets: Sequence[Path], service: Service) -> None:
        self._setup, self._sets, self._service = setup, sets, service

    @cached_property
    def client(self) -> scoregate.Client:
        """The models of this process."""
        with self._setup.prepared(self._sets):
            return self._service.client().__enter__()  # open until the process ends

    @with_errors
    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return the question set of each prompt as JSON, or why it could not be written."""
        found = dict[str, list[Any]](style=[], set=[], fault=[])
        rows = zip(*(batch[name] for name in ("style", "metric", "options", "prompt")), strict=True)
        for (style, metric, options), group in groupby(rows, lambda row: row[:3]):
            for content, why in self.written([row[3] for row in group], metric, json.loads(options)):
                found["style"].append(style)
                found["set"].append(content)
                found["fault"].append(why)
        return found

    def written(
        self, prompts: Sequence[str], metric: str, options: Mapping[str, Any]
    ) -> Iterator[tuple[str, str]]:
        """Yield the set of each prompt as JSON, and why there is none."""
        try:
            sets = self.client.questions(list(map(str, prompts)), str(metric), options={metric: options})
        except scoregate.ScoregateError as exc:
            yield from [("", f"{exc.code}: {exc.detail}")] * len(prompts)
            return
        for each in sets:
            if each.error:
                yield "", f"{each.error.code}: {each.error.detail}"
            else:
                yield json.dumps(content_of(each)), ""


def write_sets(
    pool: Pool,
    setup: WorkerSetup,
    scoring: Scoring,
    service: Service,
    dataset: Dataset,
    shards: Sequence[Path],
    folder: Path,
) -> list[Path]:
    """
    Write the question set of each distinct prompt in *shards* once, to a file for each style in *folder*.

    A prompt whose set is in the file is not written again.  One that fails is scored without, so that its
    rows have the error, or a set that was written later.

    Returns:
        All files of question sets in *folder*, also those that were put there.

    Raises:
        InputError: rows, or metrics, need different sets for one prompt.
    """
    styles = Styles(setup.names, scoring.names, scoring.options)
    folder = folder / QUESTIONS
    if shards and styles.asked:
        folder.mkdir(exist_ok=True)
        there = sorted(folder.glob("*.jsonl"))
        wanted = distinct(pool, setup, styles, dataset, shards)
        with ExitStack() as stack:
            stores = {
                style: stack.enter_context(closing(QuestionSets(folder / f"{style}.jsonl")))
                for style in wanted
            }
            rows = [row for style in wanted for row in missing(stores[style], style, *wanted[style])]
            write_missing(pool, (setup, there, service), rows, stores, folder)
    return sorted(folder.glob("*.jsonl"))


def distinct(
    pool: Pool, setup: WorkerSetup, styles: Styles, dataset: Dataset, shards: Sequence[Path]
) -> dict[str, tuple[Asked, Counter[str]]]:
    """Return by style the first metric that has it, and the number of its rows with each prompt."""
    asked = {each.name: each for each in styles.asked}
    dataset = replace(dataset, asking=[each.metric for each in styles.asked if each.metric == each.name])
    rows = [{"shard": str(shard)} for shard in shards]
    found: dict[str, tuple[Asked, Counter[str]]] = {}
    variants: dict[str, str] = {}
    hashes: dict[tuple[str, str], tuple[str, str] | None] = {}
    for row in pool.map(prompts_in, (setup, dataset, list(asked)), rows):
        key = name, options = row["name"], row["options"]
        own = json.loads(options or "{}")
        if key not in hashes:
            hashes[key] = styles.style(asked[name], own)
        if (known := hashes[key]) is None:
            continue
        style, variant = known
        if variants.setdefault(style, variant) != variant:
            raise InputError(
                f"the options of {name} write other questions about a prompt than those of another row"
                f" or metric: with {named('ray')} a prompt has one set of questions of a style"
            )
        first = replace(asked[name], options={**asked[name].options, **own})
        first, prompts = found.setdefault(style, (first, Counter()))
        prompts[row["prompt"]] += int(row["rows"]) if first.name == name else 0
    return found


class QuestionSets(Store[str]):
    """
    The question sets of a style by prompt, in a file for `scoregate-server questions import`.

    Raises:
        InputError: a line is no question set.
    """

    FIRST = ("prompt", "style")

    def parsed(self, data: bytes, place: str) -> Line:
        """Return a set of an earlier run, or of a file that was put there.  Raises `InputError`."""
        try:
            line: Line = json.loads(data)
            line["prompt"] = str(line["prompt"])
        except (ValueError, LookupError, TypeError, RecursionError) as exc:
            raise InputError(f"{place}: is no question set ({exc})") from exc
        return line

    def key(self, line: Line) -> str:
        """Return the prompt."""
        return str(line["prompt"])


def missing(store: QuestionSets, style: str, asked: Asked, prompts: Counter[str]) -> list[dict[str, str]]:
    """Return a row for each prompt without a set, and print how many there are."""
    options = json.dumps(dict(asked.options))
    rows = [
        {"style": style, "metric": asked.metric, "options": options, "prompt": prompt}
        for prompt in prompts
        if prompt not in store.starts
    ]
    say(
        f"{style}: {len(prompts)} distinct prompts in {sum(prompts.values())} rows,"
        f" {len(rows)} of them without questions"
    )
    return rows


def write_missing(
    pool: Pool,
    given: Sequence[Any],
    rows: Sequence[Mapping[str, Any]],
    stores: Mapping[str, QuestionSets],
    folder: Path,
) -> None:
    """Write sets, each to the file of its style as soon as it is there, and print how many."""
    failed: list[str] = []
    written = 0
    for row in pool.map(QuestionActor, given, rows, PROMPTS_PER_REQUEST) if rows else ():
        if row["fault"]:
            failed.append(row["fault"])
            continue
        store, line = stores[row["style"]], json.loads(row["set"])
        store.append(line, store.key(line))
        store.flush()
        written += 1
    more = f"; {len(failed)} could not be written (first: {failed[0]})" if failed else ""
    say(f"{written} question sets were written to {folder}{more}")
