"""The page of any result, recognized by its content: of `batch`, `versus`, `bench` and logs of decisions."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Any

from scoregate.data.rows import Row
from scoregate.errors import InputError
from scoregate.local import Service
from scoregate.records import check_page, json_object_in
from scoregate.report.html import write_html
from scoregate.report.sheet import write_sheet
from scoregate.runs.batch_settings import dataset_of
from scoregate.runs.generators import COMPARISON
from scoregate.runs.manifest import beside, read_manifest, source_in
from scoregate.runs.plan import Line
from scoregate.runs.results import lines_of, plan_in, results_in
from scoregate.settings import Setting
from scoregate.text import meant_file

SQLITE = b"SQLite format 3\0"
SHEET_IMAGES = 500  # pictures on the page of shards
DECISION_FIELDS = {
    "rows",
    "policies",
    "days",
    "rates",
    "drift",
}  # fields of what `decisions report -o` writes
VERSUS_FIELDS = {"prompts", "pairs", "generators"}
RESULT_KINDS = (
    "results of batch, the folder of versus, a report of bench run, tables of bench, or logs of decisions"
)

Write = Callable[[Path], object]  # writes a page


@dataclass(frozen=True, kw_only=True)
class ResultPageSettings:
    """Settings of the page of a result."""

    result: Annotated[
        Path,
        Setting(
            "results of batch, the folder of versus or of bench run, tables of bench, a log of decisions",
            positional=True,
            metavar="RESULT",
        ),
    ]
    out: Annotated[
        Path | None, Setting("the page (default: next to RESULT)", ("-o", "--out"), metavar="PAGE")
    ] = None


def write_result_page(settings: ResultPageSettings) -> Path:
    """
    Write the page of a result, and return its path; `bench run` has written one, which is returned.

    By default it is a file next to the result, or one in a temporary folder if none can be written there.

    Raises:
        InputError: it is no result, or its data set is not there any more.
        OSError: a file cannot be read or written.
    """
    result, out = settings.result, settings.out
    if not result.exists():
        raise InputError(f"{result}: no such file or folder{meant_file(result)}")
    if (page := page_of(result)) and out is None:
        return page
    write = writer_of(result)
    place = out or page_place(result)
    check_page(place)
    write(place)
    return place


def page_of(result: Path) -> Path | None:
    """Return the page that a result is or has."""
    if result.suffix.lower() in (".html", ".htm"):
        return result
    folder = result if result.is_dir() else result.parent
    page = folder / "index.html"
    return page if page.is_file() and is_suite(folder / "manifest.json") else None


def page_place(result: Path) -> Path:
    """Return a path next to a result, or in a temporary folder."""
    path = result.resolve()
    name = f"{path.name}.html"
    return path.with_name(name) if os.access(path.parent, os.W_OK) else Path(mkdtemp()) / name


def writer_of(result: Path) -> Write:
    """Return what writes the page of a result.  Raises `InputError`."""
    if result.is_dir():
        generators = [file for file in sorted(result.glob("*.jsonl")) if results_in(file)]
        if len(generators) > 1 or (generators and (result / COMPARISON).is_file()):
            return lambda page: write_versus(result, generators, page)
        if generators:
            return lambda page: write_report(generators[0], page)
    elif starts_with(result, SQLITE):
        return lambda page: write_decisions(result, page)
    if files := results_in(result):
        return lambda page: write_shards(files, page) if result.is_dir() else write_report(result, page)
    if result.is_file() and (content := json_object_in(result)):
        return of_object(result, content)
    raise InputError(f"{result}: is no result, which is one of: {RESULT_KINDS}")


def of_object(file: Path, content: Mapping[str, Any]) -> Write:
    """Return what writes the page of a JSON object.  Raises `InputError`."""
    if "manifest" in content:
        return writer_of(file.parent / read_manifest(file)["results"])
    if content.keys() >= DECISION_FIELDS:
        return lambda page: write_figures(content, page)
    if isinstance(content.get("benchmark"), str):
        return lambda page: write_benchmark(content, page)
    if content.keys() >= VERSUS_FIELDS:
        raise InputError(f"{file}: has the figures of `versus` without pictures: name the folder of its -o")
    raise InputError(f"{file}: is no result, which is one of: {RESULT_KINDS}")


# --- the pages ---


def write_report(file: Path, page: Path) -> None:
    """Write the page of `report` about one file of results."""
    from scoregate.report.dataset import PageSettings, write_page

    content = manifest_of(file)
    source = vars(source_in(beside(file), content))
    settings = PageSettings(**source, metrics=content["metrics"], out=page, results=file, offline=True)
    write_page(settings, Service())


def write_shards(files: list[Path], page: Path) -> None:
    """Write the sheet of the worst pictures of results of shards."""
    before, total = dict[Path, int](), 0  # lines of the files before each
    for file in files:
        before[file] = total
        total += sum(1 for _ in lines_of(file))

    def lines() -> Iterator[Line]:
        for file in files:
            yield from ({**line, "row": before[file] + line["row"]} for line in lines_of(file))

    def rows() -> Iterator[Row]:
        for file in files:
            content = manifest_of(file)
            dataset = dataset_of(source_in(beside(file), content), content["metrics"])
            yield from (replace(row, number=before[file] + row.number) for row in dataset)

    write_sheet(page, rows(), plan_in(files[0]), lines, SHEET_IMAGES)


def write_versus(folder: Path, generators: list[Path], page: Path) -> None:
    """Write the page of the comparison that `versus` left in a folder, or of all the *generators* there."""
    from scoregate.report.versus import VersusSettings, compare_generators, compared_in

    named = [f"{file.stem}={file}" for file in generators]
    settings = compared_in(folder, page) or VersusSettings(generators=named, html=page)
    compare_generators(settings, Service())


def write_decisions(log: Path, page: Path) -> None:
    """Write the page of `decisions report` about a log."""
    from scoregate.report.decisions.page import report
    from scoregate.report.decisions.settings import ReportSettings

    report(ReportSettings(logs=[log], html=page))


def write_figures(content: Mapping[str, Any], page: Path) -> None:
    """Write the page of figures of decisions."""
    from scoregate.report.decisions.page import page as drawn

    write_html(page, drawn(dict(content)))


def write_benchmark(content: Mapping[str, Any], page: Path) -> None:
    """Write the tables of one benchmark."""
    from scoregate.report.benchmark import benchmark_page

    write_html(page, benchmark_page(content))


# --- what a file is ---


def manifest_of(file: Path) -> dict[str, Any]:
    """Return the manifest of results, which names the data set.  Raises `InputError`."""
    path = beside(file)
    if not path.is_file():
        raise InputError(f"{file}: its pictures are not known without its manifest {path.name}")
    return read_manifest(path)


def is_suite(file: Path) -> bool:
    """Return True for the manifest of `bench run`."""
    return file.is_file() and "bench_run" in (json_object_in(file) or {})


def starts_with(file: Path, start: bytes) -> bool:
    """Return True if a regular file has these first bytes."""
    if not file.is_file():
        return False
    with file.open("rb") as content:
        return content.read(len(start)) == start
