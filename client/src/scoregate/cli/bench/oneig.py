"""`scoregate bench oneig`: alignment in OneIG-Bench (Chang et al. 2025), by class."""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from scoregate.cli.bench.answers import YES_NO, Answers, Item, Question, is_yes
from scoregate.cli.bench.benchmark import GENERATOR, Benchmark, Paper, Values, add_benchmark
from scoregate.cli.bench.data import first_of, json_of, rows_of
from scoregate.cli.bench.figures import PART, benchmark_tables
from scoregate.records import BadInput, json_cell

CLASSES = {"Anime_Stylization": "anime", "Portrait": "human", "General_Object": "object"}
MULTILINGUALISM = {"Multilingualism": "multilingualism"}  # of Chinese prompts
SUFFIXES = {"prompt_en": "", "prompt_cn": "_zh"}  # of the files of questions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_benchmark(parser, ONEIG, "OneIG-Bench.csv, or OneIG-Bench-ZH.csv", grid="2x2")
    add = parser.add_argument
    what = "the folder Q_D of questions and dependencies, a .json for each class"
    add("--questions", type=Path, metavar="FOLDER", required=True, help=what)
    add("--multilingualism", action="store_true", help="with this class of the Chinese prompts")
    add("--keep-black", action="store_true", help="a black tile is a picture, and not skipped")
    add("--any-yes", action="store_true", help="an answer such as `yes.` is a yes, not exactly `Yes` alone")


def items(arguments: argparse.Namespace) -> list[Item]:
    """Return the items of the classes, each with its questions.  Raises `BadInput` if one has none."""
    table = rows_of(arguments.data)
    column = first_of(table, *SUFFIXES)
    classes = CLASSES | (MULTILINGUALISM if arguments.multilingualism else {})
    rows = zip(table.names("category"), table.names("id"), table.names(column), strict=True)
    of_class: dict[str, dict[str, str]] = {}
    for category, id, prompt in rows:
        if category in classes:
            of_class.setdefault(classes[category], {})[id] = prompt
    found = []
    for name, prompts in of_class.items():
        path = arguments.questions / f"{name}{SUFFIXES[column]}.json"
        content = json_of(path)
        for id, prompt in prompts.items():
            if not isinstance(content, Mapping) or id not in content:
                raise BadInput(f"{path}: there are no questions about item {id}")
            questions = questions_of(content[id], f"{path}, item {id}")
            found.append(Item(f"{name}/{id}", prompt, f"{name}/{GENERATOR}/{id}", questions, name))
    return found


def questions_of(entry: Any, place: str) -> dict[int, Question]:
    """Return the questions of an entry, in which both objects may be texts of JSON.  Raises `BadInput`."""
    try:
        texts, parents = (json_cell(entry[name]) for name in ("question", "dependency"))
        return {
            int(id): Question(
                str(text), parents=tuple(int(each) for each in parents.get(id, ()) if int(each))
            )
            for id, text in texts.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise BadInput(f"{place}: question and dependency are no objects by number ({exc})") from None


def values(arguments: argparse.Namespace, item: Item, pictures: Sequence[Answers]) -> Values:
    """Return the mean score over the pictures: right answers, and 0 for a child of a no."""
    scores = []
    for answers in pictures:
        right = {id: is_yes(answers[id], "Yes", any_form=arguments.any_yes) for id in item.questions}
        counted = [
            right[id] and all(right.get(parent, True) for parent in question.parents)
            for id, question in item.questions.items()
        ]
        scores.append(fmean(counted))
    return {"alignment": [fmean(scores)], f"classes{PART}{item.group}": [fmean(scores)]}


ONEIG = Benchmark(
    "oneig",
    Paper("Qwen2.5-VL-7B", prompts=695, pictures=4),
    items,
    YES_NO,
    values,
    skip_black=lambda arguments: not arguments.keep_black,
)
tables = partial(benchmark_tables, ONEIG)
