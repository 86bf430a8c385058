"""Two generators or more on the same prompts: scored if they are not, compared in pairs, with one answer."""

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import chain, islice
from math import nan
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any

import scoregate
from scoregate.data.datasets import ROWS_SEARCHED_FOR_COLUMN, Dataset
from scoregate.errors import ColumnError, InputError, NoColumnError, NoResultError, named
from scoregate.evaluation.bootstrap import Drawings, caution
from scoregate.evaluation.versus import ALPHA, Versus
from scoregate.evaluation.versus import versus as compared
from scoregate.formats import FORMATS, printed
from scoregate.items import names_of
from scoregate.local import Service
from scoregate.notebooks import row_table
from scoregate.records import check_page, json_object_in
from scoregate.report.pairs import (
    IMAGE,
    GeneratorImage,
    check_folders,
    check_shared,
    images_of,
    missing_lines,
    missing_scores,
    verdict,
    with_tags,
)
from scoregate.report.side_by_side import MAX_PAGE, SideBySide, write_side_by_side
from scoregate.runs.batch import TIMEOUT_S
from scoregate.runs.batch_settings import Batch, Run
from scoregate.runs.generators import (
    COMPARISON,
    ScoredGenerator,
    datasets_of,
    file_of,
    metrics_of,
    scored_generators,
)
from scoregate.settings import Column, Setting, generator_paths, settings_in, share, whole
from scoregate.text import number

TEXT_FORMS = ("text", *FORMATS)
KEPT_SETTINGS = {  # the names in `COMPARISON` stay, since `open` reads the files of earlier versions
    **{name: name for name in ("metrics", "item", "by", "alpha", "bootstrap", "seed")},
    "any_models": "allow_model_change",
}
JSON_FORMAT = "json"


@dataclass(frozen=True, kw_only=True)
class VersusSettings(Run, Drawings):
    """Settings of a comparison of generators."""

    dataset: Path = Path()
    more: Sequence[Path] = ()
    matrix: bool = False
    sweep: Sequence[str] = ()
    metrics_column: str | None = None
    generators: Annotated[
        Sequence[str],
        Setting(
            "two generators or more: folders of pictures, data sets, shards, or results of `batch`",
            positional=True,
            several=True,
            nargs="+",
            metavar="[NAME=]PATH",
        ),
    ]
    out: Annotated[
        Path,
        Setting(
            "the folder of the scores, where the next run continues (default %(default)s)",
            ("-o", "--out"),
            metavar="FOLDER",
        ),
    ] = Path("versus")
    explain: bool = True
    item: Annotated[
        str | None,
        Column("what the generators' pictures have in common; image: the file's name (default: the prompt)"),
    ] = None
    by: Annotated[
        str | None,
        Column("the same figures for each value of it, such as a skill; a list counts in each of its values"),
    ] = None
    alpha: Annotated[
        float, Setting("generators differ where p is below (default %(default)s)", metavar="A", parse=share)
    ] = ALPHA
    complete: Annotated[bool, Setting("a missing score is an error, and no figure is printed")] = False
    html: Annotated[Path | None, Setting("write a page of the pictures side by side", metavar="PAGE")] = None
    html_prompts: Annotated[
        int,
        Setting(
            "prompts on that page at most, the largest differences (default %(default)s)",
            metavar="N",
            parse=whole,
        ),
    ] = 2000


@dataclass(frozen=True)
class VersusOutcome:
    """
    A comparison of generators.

    Attributes:
        content: the figures, as `--format json` prints them.
        figures: the means and pairs of all prompts.
        missing: a line for each score that is missing, with the generator, the prompt and the reason.
    """

    settings: VersusSettings
    generators: Sequence[ScoredGenerator]
    metrics: Sequence[str]
    images: Sequence[GeneratorImage]
    figures: Versus
    content: Mapping[str, Any]
    missing: Sequence[Mapping[str, Any]]

    @property
    def complete(self) -> bool:
        """Whether each generator has a score by each metric for every prompt and picture."""
        return not self.missing

    def text(self, form: str = "text") -> str:
        """Return the tables as text, or in a form of `FORMATS`, or JSON."""
        if form == JSON_FORMAT:
            return json.dumps(self.content, allow_nan=False)
        tables = {"pairs": pair_rows(self.content, all_columns=form == "csv")}
        tables |= {} if form == "csv" else {"generators": by_rows(self.content, "generators")}
        single = {name: self.content[name] for name in ("prompts", "caution", "seed") if name in self.content}
        lines = [*map(verdict, self.figures.pairs)] if form == "text" else []
        return "\n".join([printed(single | tables, form, None), *([""] if lines else []), *lines])

    def write_page(self, page: Path, most: int = MAX_PAGE) -> None:
        """Write the page of pictures side by side, of at most *most* bytes."""
        shown = SideBySide(
            self.generators,
            self.metrics,
            self.images,
            self.figures,
            missing_lines(self.missing),
            self.settings.by or "",
            self.settings.html_prompts,
        )
        write_side_by_side(page, shown, most)

    def _repr_html_(self) -> str:
        rows = [["metric", "", "", "difference", "wins", "ties", "losses", "p", "better"]]
        for pair in self.figures.pairs:
            counts = map(str, (pair.wins, pair.ties, pair.losses))
            p = "–" if pair.p_holm is None else f"{pair.p_holm:.3g}"
            rows.append(
                [pair.metric, pair.a, pair.b, number(pair.difference), *counts, p, pair.better or "–"]
            )
        return row_table([escape(cell) for cell in row] for row in rows)


def versus(
    generators: Mapping[str, str | PathLike[str]] | Sequence[str | PathLike[str]],
    metrics: Sequence[str] | str = (),
    *,
    client: scoregate.Client | None = None,
    local: Sequence[str] | str = (),
    **settings: Any,
) -> VersusOutcome:
    """See `scoregate.versus`."""
    if isinstance(generators, Mapping):
        generators = [f"{name}={fspath(path)}" for name, path in generators.items()]
    own = {"generators": [fspath(each) for each in generators], "metrics": names_of(metrics)}
    service = Service.of(client, local, settings.get("strict"), TIMEOUT_S)
    return compare_generators(
        settings_in(VersusSettings, own | settings | {"strict": service.strict}), service
    )


def compare_generators(settings: VersusSettings, service: Service) -> VersusOutcome:
    """Compare generators as `versus`, and write the page if there is one."""
    paths = generator_paths(settings.generators)
    if len(paths) < 2:
        raise InputError("name two generators or more")
    if settings.html:
        check_page(settings.html)
    datasets = {name: each for name, (_, each) in datasets_of(settings, paths).items()}
    check_folders(datasets, settings.item)
    if len(datasets) == len(paths):
        check_columns(datasets.values(), filter(None, (settings.by, settings.item)))
    generators = scored_generators(settings, paths, settings.out, service, settings.html)
    outcome = outcome_of(settings, generators)
    if outcome.missing and settings.complete:
        first = outcome.missing[0]
        raise NoResultError(
            f"scores are missing: {len(outcome.missing)}, first {first['code']} of {first['generator']},"
            f" {first['prompt'] or first['image']}"
        )
    if datasets:
        write_comparison(settings, paths, datasets)
    if settings.html:
        outcome.write_page(settings.html)
    return outcome


def comparison_of(batch: Batch) -> VersusSettings:
    """Return the settings of the page of a batch of generators.  Raises `InputError` if there is only one."""
    if len(batch.named) < 2:
        alone = "name two, or one data set without a name"
        raise InputError(f"{named('html')} shows generators side by side: {alone}")
    return VersusSettings(
        generators=[*batch.named],
        metrics=batch.metrics,
        item=shared_item(batch),
        html_prompts=batch.html_images,
    )


def shared_item(run: Run) -> str | None:
    """Return what folders of named generators have in common: their prompts, or the names of their files."""
    alone = replace(run, more=())
    datasets = {name: dataset for name, (_, dataset) in datasets_of(alone, run.named).items()}
    try:
        check_folders(datasets, None)
    except InputError:
        check_folders(datasets, IMAGE)
        return IMAGE
    return None


def outcome_of(settings: VersusSettings, generators: Sequence[ScoredGenerator]) -> VersusOutcome:
    """Compare generators that are scored.  Raises `InputError` if they share no prompt."""
    metrics, names = metrics_of(generators, settings.metrics), [each.name for each in generators]
    images = with_tags(
        images_of(
            generators, metrics, item=settings.item, by=settings.by, questions=settings.html is not None
        )
    )
    check_shared({name: {each.item for each in images if each.generator == name} for name in names})
    missing = [*missing_scores(images, names, metrics)]
    figures = figures_of(images, generators, metrics, settings)
    content = content_of(figures, settings, names) | {"missing": missing}
    content |= sliced(images, generators, metrics, settings) if settings.by else {}
    return VersusOutcome(settings, generators, metrics, images, figures, content, missing)


def write_comparison(settings: VersusSettings, paths: Mapping[str, Path], scored: Collection[str]) -> None:
    """Write how generators were compared into the folder with the scores of those that were *scored*."""
    folder = settings.out.resolve()
    results = {name: folder / file_of(name) if name in scored else path for name, path in paths.items()}
    content = {
        "generators": {name: os.path.relpath(path, folder) for name, path in results.items()},
        **{name: getattr(settings, field) for name, field in KEPT_SETTINGS.items()},
    }
    text = json.dumps(content, indent=2, default=list)
    (folder / COMPARISON).write_text(f"{text}\n", "utf-8", errors="backslashreplace")


def compared_in(folder: Path, page: Path) -> VersusSettings | None:
    """
    Return the settings of the last comparison in the folder of its scores, with a *page*; None without one.

    Raises:
        InputError: the file is something else.
    """
    file = folder / COMPARISON
    if not file.is_file():
        return None
    content = json_object_in(file) or {}
    try:
        named = [f"{name}={folder / path}" for name, path in content["generators"].items()]
        kept = {field: content[name] for name, field in KEPT_SETTINGS.items()}
        return settings_in(VersusSettings, {"generators": named, "html": page} | kept)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise InputError(f"{file}: this is no comparison of `scoregate versus`") from None


def check_columns(datasets: Iterable[Dataset], names: Iterable[str]) -> None:
    """Raise `InputError` if none of the first rows of the data sets has one of the columns."""
    rows = chain.from_iterable(islice(each, ROWS_SEARCHED_FOR_COLUMN) for each in datasets)
    offered = dict.fromkeys(chain.from_iterable(row.columns for row in rows))
    for name in names:
        if name not in offered and name != IMAGE:
            raise NoColumnError("the results", name, offered)


def figures_of(
    images: Sequence[GeneratorImage],
    generators: Sequence[ScoredGenerator],
    metrics: Sequence[str],
    settings: VersusSettings,
) -> Versus:
    """Return the means and pairs of some pictures.  Raises `ColumnError`."""
    known = [each for each in images if each.item]
    return compared(
        {metric: [each.scores.get(metric, nan) for each in known] for metric in metrics},
        [each.generator for each in known],
        [each.item or "" for each in known],
        lower={metric for of in generators for metric in of.plan.lower},
        alpha=settings.alpha,
        times=settings.bootstrap,
        seed=settings.seed,
    )


def content_of(figures: Versus, settings: VersusSettings, names: Sequence[str]) -> dict[str, Any]:
    """Return the JSON of figures."""
    content: dict[str, Any] = {"prompts": figures.prompts, "alpha": settings.alpha}
    content |= {"seed": settings.seed} if settings.bootstrap else {}
    content |= caution(figures.prompts, "prompt")
    means = sorted(figures.means, key=lambda each: names.index(each.generator))
    return content | {"pairs": [*map(asdict, figures.pairs)], "generators": [*map(asdict, means)]}


def sliced(
    images: Sequence[GeneratorImage],
    generators: Sequence[ScoredGenerator],
    metrics: Sequence[str],
    settings: VersusSettings,
) -> dict[str, Any]:
    """Return the same figures for each value of the column `--by`, corrected within each."""
    by: dict[str, Any] = {}
    names = [each.name for each in generators]
    for tag in sorted({tag for each in images for tag in each.tags}):
        part = [each for each in images if tag in each.tags]
        try:
            by[tag] = content_of(figures_of(part, generators, metrics, settings), settings, names)
        except ColumnError as exc:  # one generator alone has it
            by[tag] = {"error": exc.why}
    items = {each.item: each.tags for each in images}
    return {"by": by, "untagged": sum(not tags for tags in items.values())}


def by_rows(content: Mapping[str, Any], table: str) -> list[dict[str, Any]]:
    """Return the rows of a table of all prompts, and of each value of `--by`, which is the first cell."""
    parts = {"all": content, **content.get("by", {})}
    return [
        ({"by": value} if "by" in content else {}) | row | {"interval": row["interval"] or (None, None)}
        for value, part in parts.items()
        for row in part.get(table, ())
    ]


def pair_rows(content: Mapping[str, Any], *, all_columns: bool) -> list[dict[str, Any]]:
    """Return the rows of pairs; the means stand in the table of generators, and nothing missing in none."""
    rows = by_rows(content, "pairs")
    left_out = {"means"} | (set() if any(any(row["missing"].values()) for row in rows) else {"missing"})
    return [{name: cell for name, cell in row.items() if all_columns or name not in left_out} for row in rows]
