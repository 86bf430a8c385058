"""
Suites of benchmarks of generators: a TOML file with the data and the settings of each, and their runs.

The settings are options of `scoregate bench NAME` without their hyphens, and the path of DATA, relative to
the file; with `benchmark` two tables are of one benchmark. `FOLDER/BENCHMARK` has the pictures of a
generator in the authors' naming, or `FOLDER/BENCHMARK.csv` the answers about them.

| file of the report | contents |
|---|---|
| `index.html` | tables, `CAUTION`, the service's warnings, each generator's worst pictures (`--worst 6`) |
| `tables.tex` | all tables as LaTeX, cautions as comments |
| `tables.json` | by benchmark, what `scoregate bench NAME --json` prints |
| `manifest.json` | command, suite, options; SHA-256 of data and pictures; client, service and models |
| `results/` | of scoring, by benchmark |

The worst pictures are those by the mean of the first figure of a picture, of an edit distance the largest.
What cannot be made is left out and named, with status 1. The same command goes on where it stopped.
`--again` scores everything once more, and prints what differs; then the status is 1.
"""

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from glob import escape
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from scoregate.bench import BENCHMARKS, GENERATORS
from scoregate.bench.benchmark import Benchmark, GeneratorSettings, check_names
from scoregate.bench.suite_page import latex_of, page, worst
from scoregate.errors import InputError, NoResultError, ScoregateError, named
from scoregate.evaluation.bootstrap import Drawings
from scoregate.formats import NO_VALUE, cell
from scoregate.local import Service
from scoregate.records import json_of, toml_of
from scoregate.results import is_number
from scoregate.runs.batch_settings import Scoring
from scoregate.runs.manifest import digest_of, is_text, used
from scoregate.runs.plan import plan_of
from scoregate.runs.reproduction import FIGURE_TOLERANCE, flat
from scoregate.settings import (
    CONCURRENCY,
    VERSION,
    Concurrency,
    Setting,
    Strict,
    count,
    finite,
    json_object,
    metric_options,
    settings_in,
)
from scoregate.text import meant, meant_file, say, say_outage

BUILT_IN = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}
GIVEN_ONCE = {"answers", "out", "bootstrap", "seed", "strict", "concurrency"}  # all benchmarks get the same

SuiteEntries = Mapping[str, Mapping[str, Any]]  # the entries of a suite, by name


@dataclass(frozen=True)
class SuiteEntry:
    """
    A benchmark of a suite.

    Attributes:
        name: in the suite, and of what FOLDER has for it; one benchmark may have several entries.
        settings: with absolute paths, and without answers.
    """

    name: str
    benchmark: Benchmark[Any]
    settings: GeneratorSettings

    @property
    def data(self) -> dict[str, Path]:
        """The files and folders of data, by setting."""
        return paths_of(replace(self.settings, out=None))


def paths_of(settings: GeneratorSettings) -> dict[str, Path]:
    """Return the settings that are paths."""
    return {name: path for name, path in vars(settings).items() if isinstance(path, Path)}


def suite_in(path: Path) -> SuiteEntries:
    """Return the entries of a suite's file.  Raises `InputError` if it is no TOML with a table for each."""
    return checked(toml_of(path), str(path))


def checked(content: Any, place: str) -> SuiteEntries:
    """Return *content* if it is a suite.  Raises `InputError` with *place* and the entry."""
    if not isinstance(content, dict) or not content:
        raise InputError(f"{place}: no table of a benchmark, such as [dpg]")
    for name, entry in content.items():
        if not isinstance(entry, dict):
            raise InputError(f"{place}: {name} is no table; one of a benchmark is [{name}]")
        if Path(name).name != name or name.startswith("."):
            raise InputError(f"{place}: [{name}] is no name of a folder")
        if str(benchmark := entry.get("benchmark", name)) not in GENERATORS:
            raise InputError(
                f"{place}: [{name}]: no benchmark {benchmark}; there are {', '.join(GENERATORS)}"
            )
        if not isinstance(entry.get("data"), str):
            raise InputError(f"{place}: [{name}]: data is not the path of the benchmark's data")
    return content


def entries_of(content: SuiteEntries, place: str, base: Path, common: Mapping[str, Any]) -> list[SuiteEntry]:
    """
    Return the entries of a suite.

    Args:
        place: the name of the suite, for messages.
        base: the folder of relative paths.
        common: settings of all benchmarks.

    Raises:
        InputError: a benchmark has no such setting, or it cannot have such a value.
    """
    found = []
    for name, entry in content.items():
        declared = BENCHMARKS[entry.get("benchmark", name)].benchmark
        assert isinstance(declared, Benchmark)  # `checked` has let in benchmarks of generators only
        try:
            own = settings_in(declared.settings, {**given_in(entry), **common})
        except (InputError, ValueError) as exc:
            raise InputError(f"{place}: [{name}]: {exc}") from exc
        absolute = {setting: base.resolve() / path for setting, path in paths_of(own).items()}
        found.append(SuiteEntry(name, declared, replace(own, **absolute)))
    return found


def given_in(entry: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the settings of an entry, whose names may have hyphens, as options of the command have.

    Options of metrics are a table `options`, or texts `option` of the form METRIC.OPTION=VALUE.

    Raises:
        InputError: a setting is given once for all benchmarks.
        ValueError: options are not those of metrics.
    """
    found = {name.replace("-", "_"): value for name, value in entry.items() if name != "benchmark"}
    if once := [name for name in found if name in GIVEN_ONCE]:
        raise InputError(f"{once[0]} is given to the command, for all benchmarks")
    texts, options = found.pop("option", []), found.pop("options", {})
    options = json_object(options if isinstance(options, str) else json.dumps(options))
    return found | {"options": metric_options(texts if isinstance(texts, list) else [texts], options)}


def source_of(folder: Path, name: str) -> Path | None:
    """
    Return what a generator's FOLDER has for an entry: its folder of pictures, or a file `NAME.*` of answers.

    Raises:
        InputError: there are several files.
    """
    if (folder / name).is_dir():
        return folder / name
    files = [path for path in sorted(folder.glob(f"{escape(name)}.*")) if path.is_file()]
    if len(files) > 1:
        raise InputError(f"{folder}: several files of answers: {', '.join(path.name for path in files)}")
    return files[0] if files else None


# --- a run of a suite: its benchmarks over generators' folders, as one page with a manifest ---


FORM = 1
RESULTS, TABLES, MANIFEST = "results", "tables.json", "manifest.json"  # names of the report's parts
FIGURE_SETTINGS = ("bootstrap", "seed", "strict")  # settings on which the figures of all benchmarks depend
WORST_IMAGES = 6


@dataclass(frozen=True, kw_only=True)
class SuiteSettings(Drawings):
    """The settings of a run of a suite; one of `suite` and `again` is given."""

    generators: Annotated[
        Mapping[str, Path],
        Setting(
            "of each generator by its name: a folder with pictures or a file of answers for each benchmark",
            option=False,
        ),
    ] = field(default_factory=dict)
    suite: Annotated[
        str | None, Setting(f"a TOML file, or {', '.join(BUILT_IN)}", metavar="SUITE", excludes="again")
    ] = None
    again: Annotated[
        Path | None,
        Setting("repeat the run of a manifest, and show what differs", metavar="MANIFEST", excludes="again"),
    ] = None
    data: Annotated[
        Path | None,
        Setting(
            "the folder of data (default: that of the suite's file; of a built-in suite the current one)",
            metavar="FOLDER",
        ),
    ] = None
    out: Annotated[
        Path | None,
        Setting(
            "the folder of the report, which the same command continues (default report-SUITE; with --again"
            " none)",
            ("-o", "--out"),
            metavar="REPORT",
        ),
    ] = None
    worst: Annotated[
        int,
        Setting(
            "pictures on the page of each generator and benchmark (default %(default)s)",
            metavar="N",
            parse=count,
        ),
    ] = WORST_IMAGES
    tolerance: Annotated[
        float,
        Setting("figures of --again within X are equal (default %(default)s)", metavar="X", parse=finite),
    ] = FIGURE_TOLERANCE
    strict: Strict = False
    concurrency: Concurrency = CONCURRENCY


@dataclass(frozen=True)
class SuiteDifferences:
    """
    What is not as in a manifest.

    Attributes:
        facts, figures: rows of a name, the value then and the one now.
        compared: the number of figures that both have.
    """

    facts: list[list[str]]
    figures: list[list[str]]
    compared: int


@dataclass
class SuiteReport:
    """
    The outcome of a suite.

    Attributes:
        tables: by entry, as `scoregate bench NAME --json` has them.
        left_out: what has no figures: the entry, the generator unless it is all of them, and why.
        failed: whether something of this had an error, and was not just missing.
        worst: HTML, by entry.
        facts: of the client, the service and its models, and digests by entry.
        differences: from the manifest that the run repeats.
    """

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: list[dict[str, str]] = field(default_factory=list)
    failed: bool = False
    worst: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=lambda: {"client": VERSION, "benchmarks": {}})
    differences: SuiteDifferences | None = None

    def leave_out(self, entry: SuiteEntry, why: str, generator: str = "all") -> None:
        """Note and print why there are no figures."""
        self.left_out.append({"benchmark": entry.name, "generator": generator, "why": why})
        say(f"{entry.name}, {generator}: left out: {why}")


def write_suite(settings: SuiteSettings, service: Service) -> SuiteReport:
    """
    Return the tables of the benchmarks of a suite, and write the report into the folder `out`.

    Args:
        service: opened if a generator has pictures.

    Raises:
        InputError: the suite, the manifest or the generators are not valid.
        NoResultError: no benchmark has figures.
    """
    check_names(settings.generators)
    if missing := [folder for folder in settings.generators.values() if not folder.is_dir()]:
        near = meant_file(missing[0])
        raise InputError(f"{missing[0]}: not FOLDER or NAME=FOLDER, a folder that exists{near}")
    then = manifest_in(settings.again) if settings.again else None
    if then and settings.out and (settings.out / MANIFEST).exists():
        raise InputError(
            f"{named('out')} {settings.out}: {named('again')} scores anew, and there is a report already"
        )
    settings, content, base = again(settings, then) if then else chosen(settings)
    if not settings.generators:
        raise InputError("name a generator: [NAME=]FOLDER")
    common = {name: getattr(settings, name) for name in (*FIGURE_SETTINGS, "concurrency")}
    entries = entries_of(content, settings.suite or "", base, common)
    with ExitStack() as stack:
        out = (settings.out or Path(stack.enter_context(TemporaryDirectory()))).resolve()
        report = scored(settings, entries, out, service, stack)
        if not report.tables:
            raise NoResultError("no benchmark of the suite has figures")
        if settings.out:
            write(settings.out, report, manifest_of(settings, content, base, out, report.facts))
        report.differences = differences(then, report, settings.tolerance) if then else None
    return report


def chosen(settings: SuiteSettings) -> tuple[SuiteSettings, SuiteEntries, Path]:
    """Return the settings with a folder of the report, the entries, and the folder of their data."""
    if settings.suite is None:
        raise InputError(f"name a suite by {named('suite')}, or a manifest by {named('again')}")
    path = BUILT_IN.get(settings.suite) or Path(settings.suite)
    if not path.exists():
        near = meant(settings.suite, BUILT_IN) or meant_file(path)
        raise InputError(
            f"{named('suite')} {path}: no such file, and the built-in suites are {', '.join(BUILT_IN)}{near}"
        )
    base = settings.data or (Path() if settings.suite in BUILT_IN else path.parent)
    out = settings.out or Path(f"report-{Path(settings.suite).stem}")
    return replace(settings, out=out), suite_in(path), base


def again(settings: SuiteSettings, then: Mapping[str, Any]) -> tuple[SuiteSettings, SuiteEntries, Path]:
    """Return the settings of a manifest's run, its entries, and the folder of their data."""
    assert settings.again
    folder = settings.again.parent
    generators = {name: folder / path for name, path in then["generators"].items()}
    own = vars(settings_in(SuiteSettings, then["settings"]))
    own = {name: own[name] for name in FIGURE_SETTINGS}
    own |= {"suite": then["suite"], "generators": settings.generators or generators}
    return (
        replace(settings, **own),
        then["benchmarks"],
        settings.data or folder / then["data"],
    )


def scored(
    settings: SuiteSettings, entries: list[SuiteEntry], out: Path, service: Service, stack: ExitStack
) -> SuiteReport:
    """Return the tables of all benchmarks; one client of *stack* scores the pictures of all."""
    report, served = SuiteReport(), dict[str, Any]()
    sources = {
        entry.name: {name: source_of(folder, entry.name) for name, folder in settings.generators.items()}
        for entry in entries
    }
    if scores := any(path and path.is_dir() for each in sources.values() for path in each.values()):
        client = stack.enter_context(service.client(strict=settings.strict, outage=say_outage))
        served = client.models()
        service = Service.of(client)
    metrics = dict[str, None]()
    for entry in entries:
        if found := usable(entry, sources[entry.name], served.get("metrics", {}), report):
            folder = out / RESULTS / entry.name
            whole = replace(entry, settings=replace(entry.settings, answers=found, out=folder))
            tabulate(whole, report, service, settings.worst)
            report.facts["benchmarks"][entry.name] = {
                "data": {name: digest_of_all(path) for name, path in entry.data.items()},
                "pictures": {name: digest_of_all(path) for name, path in found.items()},
            }
            metrics |= dict.fromkeys(entry.benchmark.reading.metrics if folder.exists() else ())
    if metrics:
        served = client.models([*metrics]) if scores else served
        report.facts |= used(served, plan_of(served, Scoring(metrics=[*metrics])))
    return report


def usable(
    entry: SuiteEntry, sources: Mapping[str, Path | None], served: Mapping[str, Any], report: SuiteReport
) -> dict[str, Path]:
    """Return what can be scored or counted, by generator; the report has why the others are left out."""
    if absent := [str(path) for path in entry.data.values() if not path.exists()]:
        report.leave_out(entry, f"no data: {', '.join(absent)}")
        return {}
    missing = [metric for metric in entry.benchmark.reading.metrics if metric not in served]
    found = dict[str, Path]()
    for name, path in sources.items():
        if path is None:
            report.leave_out(entry, "no folder of pictures, and no file of answers", name)
        elif path.is_dir() and missing:
            report.leave_out(entry, f"not served: {', '.join(missing)}", name)
        else:
            found[name] = path
    return found


def tabulate(entry: SuiteEntry, report: SuiteReport, service: Service, most: int) -> None:
    """Add the tables of a benchmark and its worst pictures to the report, or why there are none."""
    say(f"{entry.name}:")
    try:
        tables = {"benchmark": entry.benchmark.name} | entry.benchmark.tables(entry.settings, service)
        shown = worst(entry.benchmark, entry.settings, most)
    except (InputError, OSError) as exc:
        if isinstance(exc, ScoregateError) and not isinstance(exc, InputError):  # the service, not its files
            raise
        report.failed = True
        report.leave_out(entry, f"failed: {exc}")
    else:
        report.tables[entry.name], report.worst[entry.name] = tables, shown


def digest_of_all(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and digests of all files of a folder."""
    if path.is_file():
        return digest_of(path)
    files = {each.relative_to(path).as_posix(): each for each in path.rglob("*") if each.is_file()}
    lines = (f"{name}\0{digest_of(file)}\n" for name, file in sorted(files.items()))
    return sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def manifest_of(
    settings: SuiteSettings, content: SuiteEntries, base: Path, out: Path, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what repeats the run; paths are relative to the folder *out* of the report."""
    words = [f"{name}={path}" for name, path in settings.generators.items()]
    words += ["--suite", str(settings.suite), "--data", str(base), "--out", str(settings.out)]
    words += ["--bootstrap", str(settings.bootstrap), "--seed", str(settings.seed)]
    return {
        "bench_run": FORM,
        "command": shlex.join(["scoregate", "bench", "run", *words, *["--strict"] * settings.strict]),
        "ended": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "suite": settings.suite,
        "benchmarks": content,
        "data": os.path.relpath(base.resolve(), out),
        "generators": {
            name: os.path.relpath(path.resolve(), out) for name, path in settings.generators.items()
        },
        "settings": {name: getattr(settings, name) for name in FIGURE_SETTINGS},
        "facts": facts,
    }


def manifest_in(path: Path) -> dict[str, Any]:
    """Return a manifest of this command, with its run's tables.  Raises `InputError` for another file."""
    content = json_of(path)
    if not (isinstance(content, dict) and content.get("bench_run") == FORM):
        raise InputError(f"{path}: this is no manifest of `scoregate bench run`")
    try:
        checked(content["benchmarks"], str(path))
        given = [content["suite"], content["data"], *content["generators"].values()]
        whole = content["settings"].keys() == {*FIGURE_SETTINGS} and isinstance(content["facts"], dict)
    except (KeyError, TypeError, AttributeError):
        whole, given = False, []
    if not (whole and all(map(is_text, given))):
        raise InputError(f"{path}: a part of the manifest is missing, or of another form")
    return content | {"tables": json_of(path.with_name(TABLES))}


def write(out: Path, report: SuiteReport, manifest: Mapping[str, Any]) -> None:
    """Write the four files of the report."""
    files = {
        TABLES: json.dumps(report.tables, indent=2, ensure_ascii=False, allow_nan=False),
        MANIFEST: json.dumps(manifest, indent=2, ensure_ascii=False),
        "tables.tex": latex_of(report.tables),
        "index.html": page(manifest, report.tables, report.left_out, report.worst),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (out / name).write_text(f"{text}\n", "utf-8", errors="backslashreplace")
        say(str(out / name))


def differences(then: Mapping[str, Any], report: SuiteReport, tolerance: float) -> SuiteDifferences:
    """Return the facts that are not those of a manifest, and the figures that differ by more."""
    before, now = flat(then["facts"]), flat(report.facts)
    facts = [
        [name, before.get(name, NO_VALUE), now.get(name, NO_VALUE)]
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    old, new = dict(figures_in(then["tables"])), dict(figures_in(report.tables))
    figures = [
        [name, cell(old.get(name)), cell(new.get(name))]
        for name in dict.fromkeys([*old, *new])
        if not (name in old and name in new and abs(old[name] - new[name]) <= tolerance)
    ]
    return SuiteDifferences(facts, figures, len(old.keys() & new.keys()))


def figures_in(content: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers in *content*, each with its place, in which a row has its number and first cell."""
    parts = [*content.items()] if isinstance(content, Mapping) else []
    for number, each in enumerate(content if isinstance(content, list | tuple) else (), 1):
        first = next(iter(each.values()), "") if isinstance(each, Mapping) else ""
        parts.append((f"{number} {first}".strip(), each))
    for name, each in parts:
        yield from figures_in(each, f"{place} / {name}" if place else name)
    if is_number(content):
        yield place, float(content)
