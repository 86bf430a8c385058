"""
GenEval 2: generators by skill and by number of atoms.

GenEval 2 (Kamath et al. 2025, [arXiv 2512.16853](https://arxiv.org/abs/2512.16853)): 800 prompts, a picture
for each, named by the place of its prompt in `geneval2_data.jsonl`, from `0.png` on. Means of P(expected
answer): `arithmetic` and `geometric` over the questions of a picture, then over prompts; by skill over
questions; and in `atoms` geometric means by the number of atoms.

The authors' file of paths by prompt, a JSON object, is also read for the pictures, which are below its
folder. Their file of scores is a list of lists in the order of the data. The licence forbids commercial use
of the data.

Metric: `soft_tifa`. Code that was read:
[facebookresearch/GenEval2](https://github.com/facebookresearch/GenEval2) `a6e82d2`. Licence of the data: CC
BY-NC 4.0.
"""

from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from statistics import fmean

from scoregate.bench.answers import PROBABILITY, Answers, BenchmarkItem, Found, Question, share
from scoregate.bench.benchmark import PART, Benchmark, GeneratorSettings, Paper, Values
from scoregate.errors import InputError
from scoregate.evaluation.tables import rows_of
from scoregate.records import json_of

ARITHMETIC, GEOMETRIC = "arithmetic", "geometric"  # Soft-TIFA AM and GM


def items(settings: GeneratorSettings) -> list[BenchmarkItem]:
    """Return the items, named by their places from 0, in groups by number of atoms.  Raises `InputError`."""
    found = []
    for place, record in enumerate(rows_of(settings.data).records):
        values = record.values
        try:
            pairs = zip(values["vqa_list"], values["skills"], strict=True)
            questions = [
                Question(str(text), str(expected), tag=str(skill)) for (text, expected), skill in pairs
            ]
            atoms = int(values["atom_count"])
        except (KeyError, TypeError, ValueError) as exc:
            why = f"prompt, vqa_list, skills or atom_count are not those of GenEval 2 ({exc})"
            raise InputError(f"{settings.data}, line {record.number}: {why}") from None
        name = str(place)
        numbered = dict(enumerate(questions, 1))
        found.append(BenchmarkItem(name, str(values.get("prompt") or ""), name, numbered, str(atoms)))
    return found


def values(settings: GeneratorSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return both means of each picture, and the probabilities by skill."""
    means = [geometric([float(each) for each in answers.values()]) for answers in images]
    found: dict[str, list[float]] = {
        ARITHMETIC: [fmean(map(float, answers.values())) for answers in images],
        GEOMETRIC: means,
    }
    for answers in images:
        for id, answer in answers.items():
            found.setdefault(item.questions[id].tag, []).append(float(answer))
    return found | {f"atoms{PART}{item.group}": means}


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean, which is 0 if a value is."""
    return exp(fmean(map(log, values))) if all(values) else 0.0


def released(path: Path, items: Sequence[BenchmarkItem]) -> Found | None:
    """
    Return the probabilities in the authors' list of lists, one for each prompt in the order of the data.

    Raises:
        InputError: a list has another length, or a value is no probability.
    """
    lists = json_of(path)
    if not isinstance(lists, list):
        return None
    if len(lists) != len(items):
        raise InputError(f"{path}: not a list for each of the {len(items)} prompts")
    found = Found()
    for item, scores in zip(items, lists, strict=True):
        try:
            own = dict(zip(item.questions, map(share, scores), strict=True))
        except (TypeError, ValueError) as exc:
            raise InputError(f"{path}: item {item.id}: {exc}") from None
        found.images[item.id] = [own]
    return found


GENEVAL2 = Benchmark(
    "geneval2",
    "geneval2_data.jsonl",
    GeneratorSettings,
    Paper("Qwen3-VL-8B-Instruct", prompts=800),
    items,
    PROBABILITY,
    values,
    released={".json": released},
    wording=True,
)
