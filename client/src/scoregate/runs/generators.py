"""Several generators: their data sets, scored in one run, or the results that there are."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from itertools import chain, islice
from pathlib import Path

from scoregate.data.datasets import Dataset
from scoregate.data.rows import Row
from scoregate.errors import InputError, named
from scoregate.local import Service
from scoregate.runs.batch import Part, Session, check_policy, client_of, kept_file, score_batch, session_of
from scoregate.runs.batch_settings import (
    KINDS,
    Batch,
    DataSource,
    Run,
    check_output,
    dataset_of,
    has_prompts,
)
from scoregate.runs.filter import check_filter, write_kept
from scoregate.runs.manifest import beside, read_manifest, source_in
from scoregate.runs.plan import Line, Plan
from scoregate.runs.results import ResultsFile, check_replaced, lines_of, plan_in, results_in
from scoregate.runs.summary import Summary, say_summary
from scoregate.settings import metric_names
from scoregate.text import say, shown

PRINT_KINDS = (".json", ".html", ".md", ".tex")  # files that a person may expect of a comparison
COMPARISON = "comparison.json"  # names the generators and settings of `versus`, in the folder of its scores


@dataclass(frozen=True)
class ScoredGenerator:
    """
    The results of a generator.

    Attributes:
        files: of results, each with the number of lines that are of its data set; None for all.
    """

    name: str
    files: Mapping[Path, int | None] = field(default_factory=dict)

    @cached_property
    def plan(self) -> Plan:
        """The plan of the first file."""
        return plan_in(next(iter(self.files)))

    @cached_property
    def summary(self) -> Summary:
        """The summary of all lines."""
        return Summary.of(self.lines())

    def lines(self) -> Iterator[Line]:
        """Yield the line of each row."""
        return chain.from_iterable(islice(lines_of(file), count) for file, count in self.files.items())

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the data sets that the manifests name, except of those that were moved."""
        for file in self.files:
            with suppress(InputError, OSError):
                content = read_manifest(beside(file))
                yield from dataset_of(source_in(beside(file), content), content["metrics"])


def score_generators(batch: Batch, service: Service) -> list[ScoredGenerator]:
    """
    Score the data set of each generator of a *batch* into a file of its own in the folder OUT.

    A filter writes the names of the rows that pass next to the results, and a page has the pictures side by
    side.  A cluster writes a folder for each generator, with a file for each shard.

    Raises:
        InputError: settings do not go together; others as `scored_generators`.
    """
    check_policy(batch)
    if batch.kept_shards:
        raise InputError(
            f"{named('kept_shards')}: run `batch` for each generator alone, with a folder of its own"
        )
    check_folder(batch.out)
    paths = batch.named
    if scored := [name for name, path in paths.items() if results_in(path)]:
        raise InputError(f"{paths[scored[0]]}: these are results; batch scores data sets")
    check_filter(batch)
    if batch.html:  # a package that the page needs is missed before anything is scored
        # Pages stand above runs, so this one is imported by its name.
        versus = import_module("scoregate.report.versus")
        comparison = versus.comparison_of(batch)
    alone = replace(batch, more=())
    if batch.ray:
        generators = generators_on_cluster(alone, paths, service)
    else:
        service = replace(service, policies=str(batch.policy_file or ""))
        generators = scored_generators(alone, paths, batch.out, service, batch.html, batch.policy)
    for each in generators:
        if batch.policy:
            say(f"{shown(each.name)}: {each.summary.decided}")
        if batch.filter:
            place = batch.out / (each.name if batch.ray else file_of(each.name))
            write_kept(kept_file(place), batch.filter, each.lines())
    if batch.html:
        versus.outcome_of(comparison, generators).write_page(batch.html)
    return generators


def generators_on_cluster(
    batch: Batch,
    paths: Mapping[str, Path],
    service: Service,
) -> list[ScoredGenerator]:
    """Score the shards of each generator on a cluster, one generator after the other."""
    datasets_of(batch, paths)  # mistakes are found before the first is scored
    batch.out.mkdir(parents=True, exist_ok=True)
    generators = []
    for name, path in paths.items():
        outcome = score_batch(replace(batch, dataset=path, out=batch.out / name), service, draw=False)
        say_summary(outcome.summary, outcome.requested, outcome.out)
        generators.append(ScoredGenerator(name, dict.fromkeys(outcome.files)))
    return generators


def scored_generators(
    settings: Run,
    paths: Mapping[str, Path],
    out: Path,
    service: Service,
    page: Path | None = None,
    policy: str | None = None,
) -> list[ScoredGenerator]:
    """
    Return the results of each generator, in order; those of data sets are scored into a file in *out* each.

    Args:
        settings: of every data set.
        paths: of data sets, and results of `batch`.
        page: a file that will be written about the results.
        policy: decides about each row; the metrics are its own.

    Raises:
        InputError: settings do not go together, or the scores of two generators are not comparable.
        ScoregateError: a request failed as a whole; what was scored is kept.
    """
    datasets, requested = datasets_of(settings, paths), 0
    found = {name: dict.fromkeys(results_in(path)) for name, path in paths.items() if name not in datasets}
    if datasets:
        check_folder(out)
        out.mkdir(parents=True, exist_ok=True)
        files = {name: out / file_of(name) for name in datasets}
        for name, file in files.items():
            check_output(datasets[name][1], file, page)
            check_replaced(file)
        with client_of(settings, service, policy) as here:
            sessions = {name: session_of(here, *each, policy) for name, each in datasets.items()}
            counts, requested = scored_files(sessions, files)
        found |= {name: {file: counts[file]} for name, file in files.items()}
    generators = [ScoredGenerator(name, found[name]) for name in paths]
    summary = Summary.merged([each.summary for each in generators])
    if datasets:
        say_summary(summary, requested, out)
    else:
        say(*(f"warning: {each}" for each in summary.warnings))
    check_comparable(generators, settings)
    return generators


def check_folder(out: Path) -> None:
    """Raise `InputError` if scores of generators cannot be in *out*, or it is probably meant as a file."""
    if out.is_file():
        raise InputError(f"{out}: is a file: name a folder for the scores")
    if out.suffix.lower() in (*KINDS, *PRINT_KINDS) and not out.is_dir():
        raise InputError(f"{out}: the scores of several generators are in a folder, which has another name")


def file_of(generator: str) -> str:
    """Return the name of the file of a generator's results."""
    return f"{generator}.jsonl"


def datasets_of(settings: Run, paths: Mapping[str, Path]) -> dict[str, tuple[Run, Dataset]]:
    """
    Return the data sets among the generators, each with its settings; the others are results.

    Raises:
        InputError: settings do not go together, or a name cannot be that of a file.
    """
    if wrong := [name for name in paths if not name or Path(name).name != name]:
        raise InputError(f"{shown(wrong[0])}: the name of a generator is the name of its file of results")
    scored = {name: path for name, path in paths.items() if not results_in(path)}
    if not scored:
        check_unread(settings)
    alone = [path for path in scored.values() if not has_prompts(path)]  # folders of pictures
    runs = {name: run_of(settings, path, prompts=path in alone or not alone) for name, path in scored.items()}
    return {name: (run, dataset_of(run, run.scored)) for name, run in runs.items()}


def check_unread(settings: Run) -> None:
    """Raise `InputError` for a setting about data sets, where there are results alone."""
    plain = {each.name: each.default for each in fields(DataSource) if each.default is not MISSING}
    given = [name for name, default in plain.items() if getattr(settings, name) != default]
    if given:
        raise InputError(f"--{given[0].replace('_', '-')} is about data sets, and these are results")


def run_of(settings: Run, path: Path, *, prompts: bool) -> Run:
    """Return the settings of one data set; without *prompts* those of the data set are read."""
    run = replace(settings, dataset=path)
    return run if prompts else replace(run, prompt=None, prompts=None, prompt_from_name=None)


def scored_files(sessions: Mapping[str, Session], files: Mapping[str, Path]) -> tuple[dict[Path, int], int]:
    """Score each session's data set into its file; return the rows of each file, and how many were sent."""
    counts: dict[Path, int] = {}

    @contextmanager
    def part(name: str) -> Iterator[Part]:
        session, file = sessions[name], files[name]
        with ResultsFile(file, session.plan, whole=True) as results:
            try:
                with session.part(session.dataset, results) as part:
                    yield part
            finally:
                counts[file] = len(results.order)

    rows = [session.dataset.count() for session in sessions.values()]
    first = next(iter(sessions.values()))
    known = [each for each in rows if each is not None]
    total = sum(known) if len(known) == len(rows) else None
    return counts, first.score(map(part, sessions), total)


def metrics_of(generators: Sequence[ScoredGenerator], given: Sequence[str]) -> list[str]:
    """Return the metrics that are compared: those given, else those of the first generator."""
    plans = {each.name: each.plan for each in generators}
    metrics = metric_names(given) or [*plans[generators[0].name].metrics]
    for name, plan in plans.items():
        if missing := [metric for metric in metrics if metric not in plan.metrics]:
            raise InputError(
                f"{shown(name)} has no {missing[0]}; it has {', '.join(plan.metrics)}: name metrics by -m"
            )
    return metrics


def check_comparable(generators: Sequence[ScoredGenerator], settings: Run) -> None:
    """Raise `InputError` if the scores of two generators are of other models, options or orientation."""
    metrics = metrics_of(generators, settings.metrics)
    first = generators[0].plan
    for each in generators[1:]:
        plan = each.plan
        same = set(plan.metrics) == set(first.metrics)
        names = {*plan.models, *first.models} if same else plan.models.keys() & first.models.keys()
        options = [{m: of.options.get(m) for m in metrics} for of in (first, plan)]
        others = [name for name in sorted(names) if plan.models.get(name) != first.models.get(name)]
        if others and not settings.allow_model_change:
            a, b = (of.models.get(others[0], "no model") for of in (first, plan))
            what = f"{others[0]}: {a} and {b}"
            raise InputError(
                f"{shown(generators[0].name)} and {shown(each.name)} were scored by different models, {what};"
                f" {named('allow_model_change')} compares them all the same"
            )
        if options[0] != options[1] or plan.orient != first.orient:
            raise InputError(
                f"{shown(generators[0].name)} and {shown(each.name)} were scored with different options"
            )
