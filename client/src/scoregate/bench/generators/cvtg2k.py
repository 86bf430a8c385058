"""
CVTG-2K: words, edit distance and CLIPScore of pictures with several texts.

CVTG-2K (Du et al. 2025, [arXiv 2503.23461](https://arxiv.org/abs/2503.23461)): 2,000 prompts with two to
five texts in single quotes; pictures are `CVTG/2/0.png`, `CVTG-Style/5/0.png` and so on. `word accuracy` is
the share of wanted words that were read, `NED` the mean of 1 - edit distance to the most similar word as a
share of the longer one, `CLIPScore` 2.5 · max(cos, 0).

An apostrophe in a prompt counts as a quote, as in the authors' code. The paper's CLIP is OpenAI's ViT-L/14.

Metric: `ocr`, `clipscore`. Code that was read: a copy of the authors' evaluation, hence **unverified**.
Licence of the data: none is named.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from math import isfinite
from typing import Any

from rapidfuzz.distance import Levenshtein

from scoregate.bench.answers import TEXT, Answer, Answers, BenchmarkItem, Question
from scoregate.bench.benchmark import PART, Benchmark, GeneratorSettings, Paper, Values
from scoregate.errors import InputError
from scoregate.records import json_of
from scoregate.records import number as number_in

SETS = ("CVTG", "CVTG-Style")
AREAS = range(2, 6)
QUOTED = re.compile("'(.*?)'")  # an apostrophe within a word also counts as a quote
EPSILON = 1e-5  # added to a length by the authors
CLIPSCORE = "clipscore"
HESSEL = {"scale": "hessel", "prefix": "A photo depicts"}


def items(settings: GeneratorSettings) -> list[BenchmarkItem]:
    """Return the items; the expected text is what stands in single quotes in the prompt."""
    folders = {path.name.lower(): path for path in settings.data.iterdir() if path.is_dir()}
    found = []
    for name in SETS:
        for area in AREAS:
            path = folders.get(name.lower(), settings.data / name) / f"{area}.json"
            if not path.is_file():
                continue
            content = json_of(path)
            try:
                prompts = {str(each["index"]): str(each["prompt"]) for each in content["data_list"]}
            except (KeyError, TypeError):
                raise InputError(f"{path}: no list data_list with index and prompt") from None
            for id, prompt in prompts.items():
                place = f"{name}/{area}/{id}"
                questions = {1: Question("text", " ".join(words(prompt))), 2: Question(CLIPSCORE)}
                found.append(BenchmarkItem(place, prompt, place, questions, f"{name} {area}"))
    if not found:
        raise InputError(
            f"{settings.data}: there is no prompt in {SETS[0]}/{AREAS[0]}.json, nor in the others"
        )
    return found


def words(prompt: str) -> list[str]:
    """Return the words in single quotes, in lower case."""
    return [word for text in QUOTED.findall(prompt) for word in text.lower().split()]


def values(settings: GeneratorSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return for each wanted word whether it was read, and its likeness to the most similar word."""
    accuracy, likeness = list[float](), list[float]()
    wanted = item.questions[1].expected.split()
    for answers in images:
        read = str(answers[1]).lower().split() or [""]
        accuracy += [float(word in read) for word in wanted]
        likeness += [similarity(word, get_close_matches(word, read, n=1, cutoff=0)[0]) for word in wanted]
    clip = [clipscore(item, each[2]) for each in images]
    found = {"word accuracy": accuracy, "NED": likeness, "CLIPScore": clip}
    return found | {f"areas{PART}{item.group}": accuracy}


def clipscore(item: BenchmarkItem, answer: Answer) -> float:
    """Return the CLIPScore, which is a text in a table.  Raises `InputError`."""
    with suppress(ValueError):
        if isfinite(value := number_in(answer)):
            return value
    raise InputError(f"item {item.id}: its {CLIPSCORE} is {answer!r}, and no number")


def similarity(a: str, b: str) -> float:
    """Return 1 minus the edit distance, as a share of the longer word's length."""
    return 1 - Levenshtein.distance(a, b) / (max(len(a), len(b)) + EPSILON)


def options(item: BenchmarkItem) -> dict[str, Mapping[str, Any]]:
    return {**TEXT.options(item), CLIPSCORE: HESSEL}


def answers(item: BenchmarkItem, line: Mapping[str, Any]) -> Answers:
    return {**TEXT.answers(item, line), 2: line["scores"][CLIPSCORE]}


CVTG2K = Benchmark(
    "cvtg2k",
    "the folder CVTG-2K, with CVTG/2.json and the others",
    GeneratorSettings,
    Paper("PaddleOCR", prompts=2000),
    items,
    replace(TEXT, metrics=(*TEXT.metrics, CLIPSCORE), options=options, answers=answers),
    values,
    wording=True,
    notes=("unverified: the authors' code was read in a copy",),
)
