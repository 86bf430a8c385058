"""`scoregate bench compbench`: the attributes of T2I-CompBench (Huang et al. 2023), by BLIP-VQA's answers."""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from scoregate.cli.bench.answers import PROBABILITY, Answers, Item, Question
from scoregate.cli.bench.benchmark import Benchmark, Paper, Values, add_benchmark
from scoregate.cli.bench.data import rows_of
from scoregate.cli.bench.figures import benchmark_tables
from scoregate.records import BadInput

CATEGORIES = ("color", "shape", "texture")
SKIPPED = ("top", "the side", "the left", "the right")  # phrases that name no thing
PHRASES = 8
DIGITS = 4  # of a picture's score


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_benchmark(parser, COMPBENCH, "a folder with color_val.txt, shape_val.txt and texture_val.txt")
    add = parser.add_argument
    what = "the noun phrases of each prompt: a table with item and phrase, in their order"
    add("--phrases", type=Path, metavar="FILE", help=what)
    what = f"use phrases such as {SKIPPED[1]!r}, too, and more than {PHRASES} of a prompt"
    add("--all-phrases", action="store_true", help=what)
    what = f"do not round a picture's score to {DIGITS} digits"
    add("--exact", action="store_true", help=what)


def items(arguments: argparse.Namespace) -> list[Item]:
    """Return the items, CATEGORY/N with N from 0, and a question for each phrase."""
    phrases = phrases_of(arguments.phrases, all_phrases=arguments.all_phrases) if arguments.phrases else {}
    found = []
    files = {name: arguments.data / f"{name}_val.txt" for name in CATEGORIES}
    if not any(path.is_file() for path in files.values()):
        raise BadInput(f"{arguments.data}: there is no {files[CATEGORIES[0]].name}, and no other category")
    for name, path in files.items():
        lines = path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else ()
        for number, prompt in enumerate(filter(None, map(str.strip, lines))):
            id = f"{name}/{number}"
            texts = phrases.pop(id, [])
            questions = {place: Question(f"{text}?") for place, text in enumerate(texts, 1)}
            found.append(Item(id, prompt, f"{name}/samples/{prompt.partition('.')[0]}", questions, name))
    if phrases:
        raise BadInput(f"{arguments.phrases}: the benchmark has no item {next(iter(phrases))}")
    return found


def phrases_of(path: Path, *, all_phrases: bool) -> dict[str, list[str]]:
    """Return the phrases of each item that the authors' code uses."""
    table = rows_of(path)
    found: dict[str, list[str]] = defaultdict(list)
    for item, phrase in zip(table.names("item"), table.names("phrase"), strict=True):
        if all_phrases or (phrase not in SKIPPED and len(found[item]) < PHRASES):
            found[item].append(phrase)
    return found


def values(arguments: argparse.Namespace, item: Item, pictures: Sequence[Answers]) -> Values:
    """Return the product over the phrases for each picture, in the authors' precision."""
    products = [
        float(np.multiply.reduce([np.float32(each) for each in answers.values()], dtype=np.float32))
        for answers in pictures
    ]
    return {item.group: products if arguments.exact else [float(f"{each:.{DIGITS}f}") for each in products]}


COMPBENCH = Benchmark(
    "compbench",
    Paper("BLIP-VQA", prompts=900, pictures=10),
    items,
    PROBABILITY,
    values,
    scored=False,
)
tables = partial(benchmark_tables, COMPBENCH)
