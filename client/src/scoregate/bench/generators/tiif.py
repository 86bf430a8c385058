"""
TIIF-Bench: generators by attribute, for short and long prompts.

TIIF-Bench (Wei et al. 2025, [arXiv 2506.02161](https://arxiv.org/abs/2506.02161)): short and long prompts,
a picture for each, `ATTRIBUTE/NAME/short_description/0.png`. An attribute has the share of right answers, a
group the mean over its attributes, `overall` the mean over the nine groups that have any. As in the
released script, shares of attributes are rounded to four digits before these means (`--exact` does not).
DATA is the authors' folder `data`; `--set test` is the full set.

The authors' folder of a generator's answers, `ATTRIBUTE/short/0.json`, is read as it is, with its own
questions: those that were released are partly of older data, which `CAUTION` says. GPT-4o gets all
questions of a picture in one call there, and the model of the service each alone. The paper has further
figures of the words of rendered text, which are not here.

Metric: `dsg`. Code that was read: [A113N-W3I/TIIF-Bench](https://github.com/A113N-W3I/TIIF-Bench)
`3aae750`. Licence of the data: none is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from scoregate.bench.answers import (
    FOLDER_KIND,
    GENERATOR,
    YES_NO,
    Answer,
    Answers,
    BenchmarkItem,
    Found,
    Question,
    given,
    yes_no,
)
from scoregate.bench.benchmark import PART, Benchmark, GeneratorSettings, Paper, Values
from scoregate.errors import InputError
from scoregate.evaluation.bootstrap import Figures
from scoregate.evaluation.tables import rows_of
from scoregate.records import json_of
from scoregate.settings import Setting

SETS = ("testmini", "test")
LENGTHS = ("short", "long")
DIGITS = 4  # digits of an attribute's share in the table from which the released script takes means
QUESTIONS = "_eval_prompts.jsonl"  # an attribute's file; PROMPTS are in the same order
PROMPTS = "_prompts.jsonl"
ATTRIBUTE, GROUP, OVERALL = f"attributes{PART}", f"groups{PART}", "overall"

RELATIONS, LOOKS = ("2d", "3d"), ("color", "texture")
REASONING = ("numeracy", "comparison", "differentiation", "negation")
BASIC = {
    "Attribute": ("shape+color", "color+texture", "texture+color", "shape+texture"),
    "Relation": ("2d_spatial_relation", "3d_spatial_relation", "action+2d", "action+3d"),
    "Reasoning": REASONING,
}
ADVANCED = {
    "Attribute+Relation": (
        *(f"action+{look}" for look in LOOKS),
        *(f"{look}+{relation}" for look in ("color", "shape", "texture") for relation in RELATIONS),
    ),
    "Attribute+Reasoning": tuple(f"{kind}+{look}" for kind in REASONING for look in LOOKS),
    "Relation+Reasoning": tuple(f"{kind}+{relation}" for kind in REASONING for relation in RELATIONS),
    "Text": ("text",),
    "Style": ("style",),
}
GROUPS = {
    **{f"Basic {name}": of for name, of in BASIC.items()},
    **{f"Advanced {name}": of for name, of in ADVANCED.items()},
    "Real World": ("real_world",),
}
GROUP_ATTRIBUTES = {  # further rows, of all attributes of some groups
    "Basic": tuple(name for of in BASIC.values() for name in of),
    "Advanced": tuple(name for of in ADVANCED.values() for name in of),
}


@dataclass(frozen=True, kw_only=True)
class TiifSettings(GeneratorSettings):
    """The settings of TIIF-Bench."""

    set: Annotated[str, Setting("of prompts (default %(default)s)", choices=SETS)] = SETS[0]
    exact: Annotated[
        bool, Setting(f"do not round the shares of attributes to {DIGITS} digits before the means over them")
    ] = False


def items(settings: TiifSettings) -> list[BenchmarkItem]:
    """Return the items ATTRIBUTE/short/N and ATTRIBUTE/long/N, with N from 0.  Raises `InputError`."""
    folder = settings.data / f"{settings.set}_eval_prompts"
    if not (files := sorted(folder.glob(f"*{QUESTIONS}"))):
        raise InputError(f"{folder}: there is no file *{QUESTIONS}")
    return [item for file in files for item in items_in(file, settings.data / f"{settings.set}_prompts")]


def items_in(file: Path, folder: Path) -> list[BenchmarkItem]:
    """Return the items of an attribute.  Raises `InputError`."""
    path = folder / file.name.replace(QUESTIONS, PROMPTS)
    asked, prompts = rows_of(file).records, rows_of(path).records
    if len(asked) != len(prompts):
        raise InputError(f"{path}: {len(prompts)} prompts, and {len(asked)} with questions")
    found = []
    for length in LENGTHS:
        for number, (record, prompt) in enumerate(zip(asked, prompts, strict=True)):
            values = record.values
            try:
                name = str(asked[0].values["type"])
                pairs = zip(values["yn_question_list"], values["yn_answer_list"], strict=True)
                questions = {
                    id: Question(str(text), str(answer)) for id, (text, answer) in enumerate(pairs, 1)
                }
                text = str(prompt.values[f"{length}_description"])
            except (KeyError, TypeError, ValueError) as exc:
                raise InputError(
                    f"{file}, row {record.number}: not of the form of TIIF-Bench ({exc})"
                ) from None
            place = f"{name}/{GENERATOR}/{length}_description/{number}"
            found.append(
                BenchmarkItem(f"{name}/{length}/{number}", text, place, questions, f"{name} {length}")
            )
    return found


def values(settings: TiifSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return whether each answer is the expected one, apart from case."""
    right = [
        float(said(answers[id]) == question.expected.strip().lower())
        for answers in images
        for id, question in item.questions.items()
    ]
    return {f"{ATTRIBUTE}{item.group}": right}


def said(answer: Any) -> str:
    """Return an answer in lower case, a metric's own verdict as yes or no."""
    return ("yes" if answer else "no") if isinstance(answer, bool) else str(answer).strip().lower()


def derived(settings: TiifSettings, figures: Mapping[str, float]) -> Figures:
    """Return the means of groups over their attributes, and the overall means over the nine groups."""
    shares = figures if settings.exact else {name: round(each, DIGITS) for name, each in figures.items()}
    found: dict[str, float] = {}
    for length in LENGTHS:
        means = {name: mean_of(shares, attributes, length) for name, attributes in GROUPS.items()}
        whole = {name: mean_of(shares, attributes, length) for name, attributes in GROUP_ATTRIBUTES.items()}
        known = {name: mean for name, mean in {**means, **whole}.items() if mean is not None}
        found |= {f"{GROUP}{name} {length}": mean for name, mean in known.items()}
        if nine := [mean for name, mean in known.items() if name in GROUPS]:
            found[f"{OVERALL} {length}"] = fmean(nine)
    return found


def mean_of(figures: Mapping[str, float], attributes: Sequence[str], length: str) -> float | None:
    """Return the mean over the attributes that have a figure."""
    names = [f"{ATTRIBUTE}{attribute} {length}" for attribute in attributes]
    found = [figures[name] for name in names if name in figures]
    return fmean(found) if found else None


def released(path: Path, items: Sequence[BenchmarkItem]) -> Found | None:
    """
    Return the answers in the authors' folder of a generator, which has a file for each item.

    A file has its own questions and expected answers; those of the authors' folders are partly of older data.
    An answer that is null is missing.

    Raises:
        InputError: a file has another form.
    """
    files = sorted(path.glob("*/*/*.json"))
    if not files:
        return None
    found = Found()
    for file in files:
        attribute, length, number = *file.parts[-3:-1], file.stem
        content = json_of(file)
        try:
            rows = zip(content["questions"], content["gt_answers"], content["model_pred"], strict=True)
            every = {id: (Question(str(a), str(b)), verdict(c)) for id, (a, b, c) in enumerate(rows, 1)}
        except (KeyError, TypeError, ValueError) as exc:
            raise InputError(f"{file}: not of the form of TIIF-Bench ({exc})") from None
        id, questions = f"{attribute}/{length}/{number}", {key: each for key, (each, _) in every.items()}
        found.items.append(BenchmarkItem(id, "", "", questions, f"{attribute} {length}"))
        found.images[id] = [given(questions, {key: answer for key, (_, answer) in every.items()})]
    return found


def verdict(cell: Any) -> Answer | None:
    """Return an answer of the authors' files, whose texts count as they are written."""
    return cell if isinstance(cell, str) else yes_no(cell)


TIIF = Benchmark(
    "tiif",
    "the authors' folder data, with testmini_prompts and testmini_eval_prompts",
    TiifSettings,
    Paper("GPT-4o", prompts=None),
    items,
    YES_NO,
    values,
    derived=derived,
    released={FOLDER_KIND: released},
)
