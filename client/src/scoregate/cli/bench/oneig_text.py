"""`scoregate bench oneig_text`: the texts of OneIG-Bench (Chang et al. 2025)."""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial

from rapidfuzz.distance import Levenshtein

from scoregate.cli.bench.answers import TEXT, Answers, Item, Question
from scoregate.cli.bench.benchmark import GENERATOR, Benchmark, Figures, Paper, Values, add_benchmark
from scoregate.cli.bench.data import first_of, rows_of
from scoregate.cli.bench.figures import benchmark_tables
from scoregate.cli.bench.texts import is_chinese, matches, plain, without_remarks
from scoregate.settings import whole

PROMPTS = ("prompt_en", "prompt_cn")
CAPS = {"prompt_en": 100, "prompt_cn": 50}  # of the mean edit distance
DISTANCE, WHOLE, WORDS = "ED", "CR", "WAC"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_benchmark(parser, ONEIG_TEXT, "text_content.csv, or text_content_zh.csv", grid="2x2")
    add = parser.add_argument
    what = "largest mean edit distance that counts (default 100, for Chinese prompts 50)"
    add("--cap", type=whole, metavar="N", help=what)
    add("--keep-black", action="store_true", help="a black tile is a picture without text, and not skipped")


def items(arguments: argparse.Namespace) -> list[Item]:
    """Return the items; the expected answer is the cell of texts.  Sets the default of `--cap`."""
    table = rows_of(arguments.data)
    column = first_of(table, *PROMPTS)
    arguments.cap = arguments.cap or CAPS[column]
    rows = zip(table.names("id"), table.names(column), table.names("text_content"), strict=True)
    return [Item(id, prompt, f"text/{GENERATOR}/{id}", {1: Question("", text)}) for id, prompt, text in rows]


def values(arguments: argparse.Namespace, item: Item, pictures: Sequence[Answers]) -> Values:
    """Return the edit distance of each picture, whether it is 0, and 1 or 0 for each wanted word."""
    wanted = compared(item.questions[1].expected)
    found: dict[str, list[float]] = {DISTANCE: [], WHOLE: [], WORDS: []}
    for answers in pictures:
        read = compared(without_remarks(str(answers[1])))
        distance = Levenshtein.distance(wanted, read)
        found[DISTANCE].append(float(distance))
        found[WHOLE].append(float(distance == 0))
        found[WORDS] += matches(wanted, read, characters=is_chinese(wanted))
    return found


def compared(text: str) -> str:
    """Return a text as it is compared: case counts, and one with a Chinese character has no spaces."""
    plain_text = plain(text, characters=False)
    return plain(text, characters=True) if is_chinese(plain_text) else plain_text


def derived(arguments: argparse.Namespace, figures: Mapping[str, float]) -> Figures:
    """Return the text score, of the means over all pictures."""
    if not {DISTANCE, WHOLE, WORDS} <= figures.keys():
        return {}
    distance = min(figures[DISTANCE], arguments.cap) / arguments.cap
    return {"text": 1 - distance * (1 - figures[WHOLE]) * (1 - figures[WORDS])}


ONEIG_TEXT = Benchmark(
    "oneig_text",
    Paper("Qwen2.5-VL-7B", prompts=200, pictures=4),
    items,
    TEXT,
    values,
    derived=derived,
    wording=True,
    skip_black=lambda arguments: not arguments.keep_black,
    pooled=True,
)
tables = partial(benchmark_tables, ONEIG_TEXT)
