"""
T2I-CompBench, attributes: generators by category, by P(yes) about noun phrases.

The attributes of T2I-CompBench (Huang et al. 2023, [arXiv 2307.06350](https://arxiv.org/abs/2307.06350)): a
picture has the product over its noun phrases of BLIP-VQA's P(yes) to `PHRASE?`, and a category the mean
over pictures. P is among yes and no. It is rounded to four digits, and so is the product (`--exact` rounds
neither). Serve [BLIP-VQA](models.md#blip_vqa) to score pictures:

```
scoregate bench compbench T2I-CompBench/examples/dataset A=pictures --local Salesforce/blip-vqa-capfilt-large
```

Pictures are `CATEGORY/samples/PROMPT_NUMBER.png`, with the whole prompt as in its file; numbers have six
digits, and go on from prompt to prompt. `item` is the category and the place of the prompt there, from
`color/0` on. `--phrases` has the phrases in order; answers name them with a question mark. Without it they
are the noun chunks of spaCy's `en_core_web_sm`, as in the authors' code, if both are installed (`pip
install spacy`, `python -m spacy download en_core_web_sm`); other versions may find others. Phrases such as
`the left`, and those after the eighth, do not count (`--all-phrases`). A prompt without a phrase is an
error. `--option "dsg.question={} Please answer yes or no."` has other words, for another model.

Metric: `dsg`. Code that was read:
[Karine-Huang/T2I-CompBench](https://github.com/Karine-Huang/T2I-CompBench) `1b70949`. Licence of the data:
MIT.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from scoregate.bench.answers import Answers, BenchmarkItem, Question, Reading, in_details, share, yes_no_set
from scoregate.bench.benchmark import Benchmark, GeneratorSettings, Paper, Values
from scoregate.errors import InputError, named
from scoregate.evaluation.tables import rows_of
from scoregate.settings import Setting

CATEGORIES = ("color", "shape", "texture")
SKIPPED_PHRASES = ("top", "the side", "the left", "the right")  # phrases that name no thing
PHRASES = 8
IMAGES_PER_PROMPT = 10  # pictures of a prompt; their numbers go on from prompt to prompt
DIGITS = 4  # digits of a probability, and of a picture's score
METRIC = "dsg"  # its details have P(yes) among yes and no
PARSER = "en_core_web_sm"  # the authors', of spaCy


@dataclass(frozen=True, kw_only=True)
class CompBenchSettings(GeneratorSettings):
    """The settings of T2I-CompBench."""

    phrases: Annotated[
        Path | None,
        Setting(
            "the noun phrases of each prompt: a table with item and phrase, in their order"
            " (default: by spaCy)",
            metavar="FILE",
        ),
    ] = None
    all_phrases: Annotated[
        bool, Setting(f"use phrases such as {SKIPPED_PHRASES[1]!r}, too, and more than {PHRASES} of a prompt")
    ] = False
    exact: Annotated[
        bool, Setting(f"do not round probabilities and scores of pictures to {DIGITS} digits")
    ] = False


def items(settings: CompBenchSettings) -> list[BenchmarkItem]:
    """
    Return the items, CATEGORY/N with N from 0, and a question for each phrase; `--prompts` needs none.

    Raises:
        InputError: there are no prompts, phrases of another one, or none without spaCy.
    """
    prompts = prompts_in(settings.data)
    phrases: Mapping[str, Sequence[str]] = {}
    if settings.phrases:
        phrases = phrases_in(settings.phrases, prompts)
    elif settings.answers:
        phrases = noun_chunks(prompts)
    worded = "question" in settings.options.get(METRIC, {})
    options = {METRIC: {} if worded else {"question": "{}"}}
    found = []
    for id, prompt in prompts.items():
        category, _, place = id.partition("/")
        texts = phrases.get(id, ())
        if not settings.all_phrases:
            texts = [text for text in texts if text not in SKIPPED_PHRASES][:PHRASES]
        questions = {each: Question(f"{text}?") for each, text in enumerate(texts, 1)}
        file, number = f"{category}/samples/{prompt}", f"{int(place) * IMAGES_PER_PROMPT:06}"
        found.append(BenchmarkItem(id, prompt, file, questions, category, options=options, number=number))
    return found


def prompts_in(folder: Path) -> dict[str, str]:
    """Return the prompts of all categories by id.  Raises `InputError` if there is no category."""
    files = {name: folder / f"{name}_val.txt" for name in CATEGORIES}
    if not any(path.is_file() for path in files.values()):
        raise InputError(f"{folder}: there is no {files[CATEGORIES[0]].name}, and no other category")
    return {
        f"{name}/{number}": prompt
        for name, path in files.items()
        if path.is_file()
        for number, prompt in enumerate(
            filter(None, map(str.strip, path.read_text("utf-8", errors="replace").splitlines()))
        )
    }


def phrases_in(path: Path, prompts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the phrases in a table, by item.  Raises `InputError` if the benchmark has no such item."""
    table = rows_of(path)
    found: dict[str, list[str]] = defaultdict(list)
    for item, phrase in zip(table.names("item"), table.names("phrase"), strict=True):
        if item not in prompts:
            raise InputError(f"{path}: the benchmark has no item {item}")
        found[item].append(phrase)
    return found


def noun_chunks(prompts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return spaCy's noun chunks of each prompt.  Raises `InputError` if it is not installed."""
    try:
        parsed = import_module("spacy").load(PARSER).pipe(prompts.values())
    except (ImportError, OSError) as exc:  # the package or its model may be missing
        raise InputError(
            f"name the phrases by {named('phrases', 'FILE')}, or install spaCy: pip install spacy,"
            f" then python -m spacy download {PARSER} ({exc})"
        ) from None
    return {
        id: [chunk.text for chunk in document.noun_chunks]
        for id, document in zip(prompts, parsed, strict=True)
    }


def options(item: BenchmarkItem) -> dict[str, Any]:
    """Return the options of the metric: a set of the phrases alone, unless the user has other words."""
    return {METRIC: {**item.options[METRIC], "question_set": yes_no_set(item)}}


def probabilities(item: BenchmarkItem, line: Mapping[str, Any]) -> Answers:
    """Return P(yes) among yes and no for each phrase.  Raises `TypeError` for written answers."""
    found = in_details(METRIC, item, line, "probability")
    return {id: float(probability) for id, probability in found.items()}


def values(settings: CompBenchSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return the product over the phrases for each picture, in the authors' precision."""

    def rounded(value: np.float32) -> float:
        return float(value) if settings.exact else float(f"{value:.{DIGITS}f}")

    products = []
    for answers in images:
        each = [np.float32(rounded(np.float32(answer))) for answer in answers.values()]
        products.append(rounded(np.multiply.reduce(each, dtype=np.float32)))
    return {item.group: products}


COMPBENCH = Benchmark(
    "compbench",
    "a folder with color_val.txt, shape_val.txt and texture_val.txt",
    CompBenchSettings,
    Paper("BLIP-VQA (capfilt, large)", prompts=900, images=IMAGES_PER_PROMPT),
    items,
    Reading((METRIC,), options, probabilities, share),
    values,
    wording=True,
    pooled=True,
)
