"""
GenEval: generators by task, their failures by kind, and agreement with people.

[GenEval's](figures.md#geneval) verdicts of one or several generators, `NAME=PATH`. `PATH` is a file of
verdicts, or a folder with `results.jsonl`, as from `scoregate batch A -o A/results.jsonl -m geneval
--explain` for [GenEval's folders](cli.md#batch).

`failures` are shares of `IMAGES`; a picture may fail in several ways. `--human COLUMN` adds `agreement`
with people's verdicts, and `--clipscore COLUMN` a metric with the best threshold for each task on the same
pictures, as in the paper's figure 3.

DATA: `tag`, `prompt` (or both in `metadata`), `correct`, `reason`; or a result of `batch -m geneval
--explain`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from scoregate.bench.data import MetricBenchmark, columns
from scoregate.errors import InputError, named
from scoregate.evaluation.bootstrap import Bootstrap, compared, uncertainty
from scoregate.evaluation.figures.generators import described, mapping
from scoregate.evaluation.figures.generators import once_each as once
from scoregate.evaluation.geneval import TASKS, agreed, by_prompt, geneval, sample_of, tuned
from scoregate.evaluation.tables import Table, rows_of
from scoregate.settings import Column, Setting

RESULTS = "results.jsonl"  # a generator's folder has it
VERDICTS = ("correct", "geneval")  # GenEval's own file has the first, and the metric the other
# Each kind has words of the released code's reasons; a line is of the first kind that fits.
KINDS = {
    "too many objects": re.compile(r"expected .+<\d+, found"),
    "wrong color": re.compile(r"expected .+>=\d+, found .*; and"),
    "too few objects": re.compile(r"expected .+>=\d+, found \d+$"),
    "wrong position": re.compile(r"expected .+ target, found"),
    "no object to be placed by": re.compile(r"no target for"),
}


@dataclass(frozen=True, kw_only=True)
class GenEvalBenchmarkSettings(Bootstrap):
    """The settings of GenEval (Ghosh et al. 2023)."""

    answers: Annotated[
        Mapping[str, Path],
        Setting(f"verdicts of each generator by its name: a file, or a folder with {RESULTS}", option=False),
    ]
    human: Annotated[str | None, Column("people's verdicts: adds the table `agreement`")] = None
    clipscore: Annotated[
        str | None,
        Column("scores whose threshold is tuned for each task, to compare with the verdicts; needs --human"),
    ] = None


def tables(settings: GenEvalBenchmarkSettings) -> dict[str, Any]:
    """Return generators by task, failures by kind, the agreement with people, and generators' differences."""
    if settings.clipscore and not settings.human:
        needs = f"so it needs {named('human')}"
        raise InputError(f"{named('clipscore')} is compared with people's verdicts, {needs}")
    found = {name: table_of(path) for name, path in settings.answers.items()}
    rows = {name: verdicts(table, reasons(table)) for name, table in found.items()}
    of_prompts = {name: by_prompt(*each[:3]) for name, each in rows.items()}
    sample = partial(sample_of, cluster=clusters(settings, found))
    drawn_by = {"seed": settings.seed, "cluster": settings.cluster or "prompt"}
    content: dict[str, Any] = drawn_by if settings.bootstrap else {}
    content["generators"] = [
        summary(name, table, rows[name])
        | uncertainty(settings, sample(of_prompts[name]), len(rows[name][0]), "image")
        for name, table in found.items()
    ]
    content["failures"] = failures(rows)
    content |= {"agreement": agreement(settings, found)} if settings.human else {}
    return content | compared(settings, of_prompts, sample, "prompt")


def clusters(
    settings: GenEvalBenchmarkSettings, tables: dict[str, Table]
) -> dict[tuple[str, str], str] | None:
    """Return what `--cluster` names for each task and prompt.  Raises `InputError` if it divides one."""
    if settings.cluster is None:
        return None
    found: dict[tuple[str, str], str] = {}
    for table in tables.values():
        tags, prompts, _, cells = verdicts(table, table.texts(settings.cluster))
        for place, cell in zip(zip(tags, prompts, strict=True), cells, strict=True):
            if found.setdefault(place, cell) != cell:
                raise InputError(
                    f"{table.place}, column {settings.cluster}: prompt {place[1]} has several of its values"
                )
    return found


def table_of(path: Path) -> Table:
    """Return a generator's verdicts.  Raises `InputError` for a folder of pictures without any."""
    file = path / RESULTS if path.is_dir() else path
    if path.is_dir() and not file.exists():
        command = f"scoregate batch {path} -o {file} -m geneval --explain"
        raise InputError(f"{path}: there is no {RESULTS}; score its pictures with `{command}`")
    table = rows_of(file)
    described(table)
    once(table)
    return table


def verdicts(table: Table, *more: Any) -> list[Any]:
    """Return tag, prompt, verdict and *more* of the rows that have all."""
    known = (name for name in VERDICTS if table.has(name))
    column = next(known, VERDICTS[0])
    return table.complete(table.texts("tag"), table.texts("prompt"), table.labels(column), *more)


def summary(name: str, table: Table, rows: Sequence[Any]) -> dict[str, Any]:
    """Return a generator's row, from the `verdicts` of its table."""
    with columns(table.place):
        found = geneval(*rows[:3])
    row = {"generator": name, "mean": found.tasks, "overall": found.overall}
    row |= {"images_correct": found.images_correct, "prompts_correct": found.prompts_correct}
    return row | {"images": found.images, "prompts": found.prompts, "dropped": table.dropped}


def failures(generators: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return a row for each kind, with the shares of pictures that fail by it, from verdicts and reasons."""
    shares: dict[str, dict[str, float]] = {kind: {} for kind in (*KINDS, "other")}
    for name, (_, _, correct, why) in generators.items():
        counts: Counter[str] = Counter()
        for verdict, lines in zip(correct, why, strict=True):
            counts.update({kind_of(line) for line in lines.splitlines() if not verdict})
        for kind, of_kind in shares.items():
            of_kind[name] = counts[kind] / len(correct)
    return [{"failure": kind, "mean": each} for kind, each in shares.items() if any(each.values())]


def reasons(table: Table) -> list[str]:
    return [reason(record.values) for record in table.records]


def reason(values: Mapping[str, Any]) -> str:
    """Return the lines that say why a picture fails, also of a line of `scoregate batch --explain`."""
    of_metric = mapping(mapping(values.get("details")).get("geneval"))  # GenEval's own has boxes by class
    return str(values.get("reason") or of_metric.get("reason") or "")


def kind_of(line: str) -> str:
    return next((kind for kind, words in KINDS.items() if words.match(line)), "other")


def agreement(settings: GenEvalBenchmarkSettings, tables: dict[str, Table]) -> list[dict[str, Any]]:
    """Return the agreement with people over all generators, for each task and all of them."""
    assert settings.human
    rows: list[list[Any]] = [[], [], [], []]
    for table in tables.values():
        more = [table.labels(settings.human)]
        more += [table.numbers(settings.clipscore)] if settings.clipscore else []
        tags, _, *values = verdicts(table, *more)
        for column, each in zip(rows, [tags, *values], strict=False):
            column.extend(each)
    tags, verdict, human, score = (np.array(column) for column in rows)
    masks = {task: tags == task for task in TASKS if (tags == task).any()}
    passed, thresholds = np.zeros(len(tags)), {}
    if settings.clipscore:
        for task, rows_of in masks.items():
            thresholds[task] = tuned(score[rows_of], human[rows_of])
            passed[rows_of] = score[rows_of] >= thresholds[task]
    found = []
    for task, chosen in {**masks, "all": np.full(len(tags), True)}.items():
        row = {"task": task, "images": int(chosen.sum()), "geneval": agreed(verdict[chosen], human[chosen])}
        if settings.clipscore:
            threshold = thresholds.get(task)
            row["threshold"] = threshold if threshold not in (None, np.inf) else None
            row["clipscore"] = agreed(passed[chosen], human[chosen])
        found.append(row)
    return found


GENEVAL = MetricBenchmark(
    "geneval",
    "",
    GenEvalBenchmarkSettings,
    tables,
    answers=f"a generator and its verdicts: a file, or a folder with {RESULTS}",
    example="sd3=results.jsonl --human human",
)
