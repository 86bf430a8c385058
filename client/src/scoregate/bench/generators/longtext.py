"""
LongText-Bench: words, or Chinese characters, that pictures show.

LongText-Bench (Geng et al. 2025, [arXiv 2507.22058](https://arxiv.org/abs/2507.22058)): 160 prompts with
four pictures each, `0000_1.png` to `0000_4.png`. The figure is the share of wanted words that were read,
over all pictures; of the Chinese file, characters. Case and punctuation do not count.

The authors' `results.jsonl`, with what Qwen2.5-VL-7B read, is read as it is. Their code means to drop two
remarks of that model, and drops one; `--all-remarks` drops both.

Metric: `ocr`. Code that was read: [X-Omni-Team/X-Omni](https://github.com/X-Omni-Team/X-Omni) `2b8237b`.
Licence of the data: Apache 2.0.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from scoregate.bench.answers import (
    TEXT,
    Answers,
    BenchmarkItem,
    Found,
    Question,
    QuestionEntry,
    in_rows,
    read_text,
)
from scoregate.bench.benchmark import PART, Benchmark, GeneratorSettings, Paper, Values
from scoregate.bench.texts import REMARKS, is_chinese, matches, plain, without_remarks
from scoregate.errors import InputError
from scoregate.evaluation.tables import rows_of
from scoregate.settings import Setting

WORDS, CHARACTERS = "words", "characters"
NAME = re.compile(r"0*([0-9]+)(?:_([0-9]+))?\..*")


@dataclass(frozen=True, kw_only=True)
class LongTextSettings(GeneratorSettings):
    """The settings of LongText-Bench."""

    all_remarks: Annotated[
        bool, Setting(f"drop the remark {REMARKS[0]!r} from what was read, which the released script keeps")
    ] = False


def items(settings: LongTextSettings) -> list[BenchmarkItem]:
    """
    Return the items; the expected answer is the whole text, and the tag what is compared in all of them.

    Raises:
        InputError: an item has no list of texts.
    """
    table = rows_of(settings.data)
    found = []
    for id, record in zip(table.names("prompt_id"), table.records, strict=True):
        texts = record.values.get("text")
        if not (isinstance(texts, list) and texts and all(isinstance(each, str) for each in texts)):
            raise InputError(f"{settings.data}, row {record.number}, column text: not a list of texts")
        wanted = {1: Question("", " ".join(texts), tag=WORDS)}
        group, prompt = str(record.values.get("category") or ""), str(record.values.get("prompt") or "")
        found.append(BenchmarkItem(id, prompt, id.zfill(4), wanted, group, number="1"))
    if any(is_chinese(each.questions[1].expected) for each in found):
        found = [replace(each, questions={1: each.questions[1]._replace(tag=CHARACTERS)}) for each in found]
    return found


def values(settings: LongTextSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return 1 or 0 for each wanted word of each picture; of a Chinese text for each character."""
    text, characters = item.questions[1].expected, item.questions[1].tag == CHARACTERS
    remarks = REMARKS if settings.all_remarks else REMARKS[1:]
    right: list[float] = []
    for answers in images:
        read = without_remarks(str(answers[1]), remarks)
        both = [plain(each, characters=characters) for each in (text, read)]
        wanted, shown = both if characters else [each.lower() for each in both]
        right += matches(wanted, shown, characters=characters)
    return {"text": right, f"categories{PART}{item.group}": right}


def released(path: Path, items: Sequence[BenchmarkItem]) -> Found | None:
    """Return the texts in the released script's `results.jsonl`: `image` and `ocr_results`."""
    if not (table := rows_of(path)).has("ocr_results"):
        return None
    of_id = {item.id: item for item in items}
    rows = list[QuestionEntry]()
    for record, image in zip(table.records, table.names("image"), strict=True):
        place, parts = f"{path}, row {record.number}", NAME.fullmatch(Path(image).name)
        if not parts or parts[1] not in of_id:
            raise InputError(f"{place}, column image: the benchmark has no item of {image}")
        read = read_text(record.values.get("ocr_results"))
        rows.append(QuestionEntry(place, of_id[parts[1]], parts[2] or "", None, read))
    return in_rows(rows)


LONGTEXT = Benchmark(
    "longtext",
    "text_prompts.jsonl, or text_prompts_zh.jsonl",
    LongTextSettings,
    Paper("Qwen2.5-VL-7B-Instruct", prompts=160, images=4),
    items,
    TEXT,
    values,
    released={".jsonl": released},
    wording=True,
    pooled=True,
)
