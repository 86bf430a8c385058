"""`scoregate evaluate geneval`: GenEval's summary of its verdicts."""

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.intervals import add_bootstrap, cluster_of, drawings
from scoregate.cli.evaluate.outcome import Outcome, add_table, outcome

if TYPE_CHECKING:
    from scoregate.cli.evaluate.intervals import Cells
    from scoregate.evaluation import Table

HELP = "GenEval's verdicts: the share of correct pictures by task, and the kappa with people's verdicts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser, "--results")
    add = parser.add_argument
    add("--correct", default="correct", metavar="COLUMN", help="the verdict (default correct)")
    add("--human", metavar="COLUMN", help="people's verdict, for kappa (default human, where it is there)")
    add_bootstrap(parser)


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the six tasks, their mean, and the prompts."""
    from scoregate.evaluation import geneval
    from scoregate.evaluation.geneval import by_prompt, sample_of
    from scoregate.evaluation.tables import held

    described(table)
    once(table)
    human = arguments.human
    if human is None and any(held(record.values, "human") for record in table.records):
        human = "human"
    columns: list[Any] = [table.texts("tag"), table.texts("prompt"), table.labels(arguments.correct)]
    cluster = cluster_of(arguments, table, "prompt", prompts(*columns[:2]))
    tag, prompt, correct, together, *people = table.complete(
        *columns, [*cluster.cells], *([table.labels(human)] if human else [])
    )
    found = geneval(tag, prompt, correct, people[0] if people else None)
    of_prompt = dict(zip(zip(tag, prompt, strict=True), together, strict=True))
    drawn = drawings(arguments, sample_of(by_prompt(tag, prompt, correct), of_prompt))

    def draw(axes: Any) -> None:
        axes.barh(
            [*found.tasks, "overall"], [*(each or 0 for each in found.tasks.values()), found.overall or 0]
        )
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_xlabel("correct pictures")

    return outcome(table, draw, found, drawn=drawn, cluster=cluster.name)


def prompts(tags: "Cells", texts: "Cells") -> "Cells":
    """Return the unit of each row, the prompt of a task."""
    return [tag and text and f"{tag}: {text}" for tag, text in zip(tags, texts, strict=True)]


def once(table: "Table") -> None:
    """Raise `BadInput` if two rows are about the same file."""
    from scoregate.evaluation import BadInput

    seen = Counter(record.values["filename"] for record in table.records if "filename" in record.values)
    if repeated := [name for name, count in seen.items() if count > 1]:
        raise BadInput(f"{table.path}, column filename: {repeated[0]} has {seen[repeated[0]]} rows")


def described(table: "Table") -> None:
    """
    Copy `tag` and `prompt` to rows without them.

    They are those of `metadata`, or in a line of `scoregate batch` of `geneval`'s options or details.
    """
    from scoregate.evaluation.tables import cell

    for place, record in enumerate(table.records):
        values = record.values
        sources = [mapping(cell(values, "metadata"))]
        sources += [mapping(mapping(values.get(name)).get("geneval")) for name in ("own_options", "details")]
        known = {
            name: source[name]
            for source in reversed(sources)
            for name in ("tag", "prompt")
            if source.get(name) is not None
        }
        missing = {name: value for name, value in known.items() if cell(values, name) is None}
        table.records[place] = type(record)(record.number, {**values, **missing})


def mapping(cell: Any) -> Mapping[str, Any]:
    """Return an object, or that of a text in JSON; an empty one for any other cell."""
    if isinstance(cell, str):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return {}
    return cell if isinstance(cell, Mapping) else {}
