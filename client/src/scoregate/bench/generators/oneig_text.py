"""
OneIG-Bench, text: edit distance, pictures with all text, and words.

The texts of OneIG-Bench, on sheets `text/NAME/000.png`:

    text = 1 - min(cap, ED) · (1 - CR) · (1 - WAC) / cap

ED is the mean edit distance, CR the share of pictures with no difference, and WAC the share of wanted words
that were read, or characters of a Chinese text, over all tiles. `--cap` is 100, for Chinese prompts 50.

Case counts and punctuation does not. The authors read the text with Qwen2.5-VL-7B, the service with its
OCR.

Metric: `ocr`. Code that was read:
[OneIG-Bench/OneIG-Benchmark](https://github.com/OneIG-Bench/OneIG-Benchmark) `41b4983`. Licence of the
data: none is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from rapidfuzz.distance import Levenshtein

from scoregate.bench.answers import GENERATOR, TEXT, Answers, BenchmarkItem, Question
from scoregate.bench.benchmark import Benchmark, Paper, SheetSettings, Values
from scoregate.bench.texts import is_chinese, matches, plain, without_remarks
from scoregate.evaluation.bootstrap import Figures
from scoregate.evaluation.tables import first_of, rows_of
from scoregate.settings import Setting, whole

PROMPTS = ("prompt_en", "prompt_cn")
CAPS = {"prompt_en": 100, "prompt_cn": 50}  # largest mean edit distance
DISTANCE, WHOLE, WORDS = "ED", "CR", "WAC"


@dataclass(frozen=True, kw_only=True)
class OneIgTextSettings(SheetSettings):
    """The settings of the texts of OneIG-Bench (Chang et al. 2025)."""

    cap: Annotated[
        int,
        Setting(
            "largest mean edit distance that counts (default 100, for Chinese prompts 50)",
            metavar="N",
            parse=whole,
        ),
    ] = 0
    keep_black: Annotated[bool, Setting("a black tile is a picture without text, and not skipped")] = False


def items(settings: OneIgTextSettings) -> list[BenchmarkItem]:
    """Return the items; the expected answer is the cell of texts."""
    table = rows_of(settings.data)
    column = first_of(table, *PROMPTS)
    rows = zip(table.names("id"), table.names(column), table.names("text_content"), strict=True)
    return [
        BenchmarkItem(id, prompt, f"text/{GENERATOR}/{id}", {1: Question("", text)})
        for id, prompt, text in rows
    ]


def with_cap(settings: OneIgTextSettings) -> OneIgTextSettings:
    """Return the settings with the cap of the language of the prompts, if none is given."""
    return replace(settings, cap=settings.cap or CAPS[first_of(rows_of(settings.data), *PROMPTS)])


def values(settings: OneIgTextSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return the edit distance of each picture, whether it is 0, and 1 or 0 for each wanted word."""
    wanted = compared(item.questions[1].expected)
    found: dict[str, list[float]] = {DISTANCE: [], WHOLE: [], WORDS: []}
    for answers in images:
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


def derived(settings: OneIgTextSettings, figures: Mapping[str, float]) -> Figures:
    """Return the text score, of the means over all pictures."""
    if not {DISTANCE, WHOLE, WORDS} <= figures.keys():
        return {}
    distance = min(figures[DISTANCE], settings.cap) / settings.cap
    return {"text": 1 - distance * (1 - figures[WHOLE]) * (1 - figures[WORDS])}


ONEIG_TEXT = Benchmark(
    "oneig_text",
    "text_content.csv, or text_content_zh.csv",
    OneIgTextSettings,
    Paper("Qwen2.5-VL-7B-Instruct", prompts=200, images=4),
    items,
    TEXT,
    values,
    derived=derived,
    wording=True,
    skip_black=lambda settings: not settings.keep_black,
    resolved=with_cap,
    pooled=True,
)
