"""
Grades by a vision-language model, after VIEScore (Ku et al. 2023) and skill-aligned annotation (2026).

A vision-language model grades by a rubric: one of your own, with written answers and a formula, or one of
those below, by a label. Their score is the expected grade:

    score = Σ p(label) · value(label) / Σ p(label)

Of the `labels` `"1-5"` (default) 5 is the best; of `"A-E"` A is, and counts 5. The option `rubric` names
one of these, in our own words (`service/metrics/rubrics/`). As in VIEScore:

* `semantic_consistency` (default): how much of the prompt the picture shows.
* `perceptual_quality`: how natural the picture is, and how free of artifacts; the worse of the two.
* `editing`: whether the edit in the prompt was done, and nothing else; the worse of the two. The item needs
  a `source`.

As in the paper of `skills`; all but the first need `references`:

* `aesthetics`: how pleasing the picture is.
* `anchored_likeness`: how alike the picture is to the references, in what the prompt names.
* `anchored_landmark`, `anchored_style`, `anchored_entity`: whether it shows their place, is in their style,
  or shows their person, character or thing.

For pairs of pictures, from -1 to 1:

* `preference`: which of two pictures of a prompt is better.
* `edit_preference`: which of two edits of a `source` is better.

With written answers, for benchmarks of generators; their outputs are in the details:

* `gedit`: two grades of an edit and two of the picture alone, from 0 to 10. The item needs a `source`.
* `imgedit`: three grades of an edit, from 1 to 5. The item needs a `source`, and texts in its `data`.
* `kris_edit`, `kris_knowledge`, `kris_view`, `kris_series`: three grades of an edit from 1 to 5, with
  knowledge four. They need a `source`, a `source` and the text `explanation`, a `source` and the right
  result as `references`, or the given pictures as `references`.
* `wise`, `wise_verified`: whether a picture shows what a prompt stands for, which the text `explanation` of
  its `data` says; three grades from 0 to 2, or one, 0 or 1.

Of released reward models, once their instructions are copied: `unifiedreward`, `unifiedreward_2`,
`editscore`, `visualquality_r1`, `visualquality_r1_direct` and `videoscore2`, and for pairs
`unifiedreward_pair`, `unifiedreward_2_pair` and `unifiedreward_think`.

A decoder VLM, here (`qwen_vl`) or behind a server, takes the picture with its references or source; only a
server's writes answers. CLIP-FlanT5 takes one picture, and writes no answers: a rubric with more is
`call_refused`.

**Each label must be one token**, except for `qwen_vl`, otherwise the error is `call_refused`: try the other
`labels`. If no labels are tokens, as with the demo models, `judge` is not served. If the sum of p(label),
`label_mass`, is below 0.5, there is a warning.

Each output of a rubric with several is the metric `judge.OUTPUT`, from the calls of `judge`, with its
options unless the request has some for `judge.OUTPUT`. Their names are those in the rubrics of the service:
outputs of a request's own rubric are details.

VIEScore grades from 0 to 10, and has √(semantic consistency · perceptual quality) over all: request both
rubrics, or write one with two calls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import sqrt
from statistics import fmean, stdev

from typing_extensions import TypedDict

from models.core.calls import LabelCall
from models.core.examples import IMAGE, TEXTS
from models.core.messages import reason_of
from service.core.errors import Invalid, Unanswered
from service.core.expression import NoValueError
from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.metrics.common.contract import REFERENCES, SOURCE, Beside, Item, Metric, Score
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.outputs import OutputMetric, score_of
from service.metrics.common.question_sets import cut
from service.metrics.rubrics.answer import OutputValue
from service.metrics.rubrics.grading import MAX_FILLED, Grades, grades_of, texts_of
from service.metrics.rubrics.options import RUBRICS, JudgeOptions, options_with
from service.metrics.rubrics.output import Output
from service.metrics.rubrics.rubric import released_rubrics, rubrics_in
from service.observability.notes import Code, Note
from service.serving.admission import Demand

LOW_MASS = 0.5  # probability of all labels; below it the model would answer something else


class CallDetails(TypedDict):
    """
    One call.

    Attributes:
        question: its text as sent.
        written: the answers, one for each sample; empty for a call by probabilities.
    """

    question: str
    written: list[str]


class OutputDetails(TypedDict):
    """
    One output; null is what a rubric does not read.

    Attributes:
        value: what it counts in the score; the mean of several samples.
        answers: parsed, one for each sample.
        spread: the standard deviation of what several answers count.
        probabilities: of each label over the whole vocabulary.
        label_mass: of all labels together.
        expected: the mean of what the labels count, each weighted by its probability.
    """

    value: float | None
    answers: list[OutputValue] | None
    spread: float | None
    probabilities: Mapping[str, float] | None
    label_mass: float | None
    expected: float | None


class JudgeDetails(TypedDict):
    """
    Details of `judge`.

    Attributes:
        rubric: its name; of a request's own the digest.
        digest: of its content.
        outputs: by name.
        samples: the score of each sample of the written answers.
        spread: the standard deviation of several.
        expected: the score by the labels' probabilities.
    """

    rubric: str
    digest: str
    labels: str
    calls: list[CallDetails]
    outputs: dict[str, OutputDetails]
    samples: list[float] | None
    spread: float | None
    expected: float | None


async def judge(item: Item, models: ModelCalls, options: JudgeOptions) -> Score:
    """
    Return the rubric's formula over its outputs.

    By default an output is the expected grade Σ p(label) · value / Σ p(label), from 1 to 5, so that images
    with the same likeliest grade have different scores.  In both papers the model writes its grade, as it
    does here for rubrics with `read = "written"`.

    Raises:
        MissingImage, Invalid: the item lacks a picture or a text that the rubric needs.
        AnswerRefused: a written answer does not have the form.
        Unanswered: no label has any probability, or the formula has no value.
    """
    rating = options.rating
    rubric, grades = rating.rubric, await grades_of(item, models, rating)
    expected, samples = None, list[float]()
    try:
        if grades.labels:
            expected = rubric.formula.value({name: each.expected for name, each in grades.labels.items()})
        for answers in grades.answers:
            counts = {name: output.counts(answers[name]) for name, output in rubric.numbers.items()}
            samples.append(rubric.formula.value(counts))
    except NoValueError as exc:
        raise Unanswered(f"the rubric {rating.name}: {exc}") from None
    details: JudgeDetails = {
        "rubric": rating.name,
        "digest": rubric.digest,
        "labels": options.labels,
        "calls": [
            {"question": text, "written": [*grades.written[place]] if place < len(grades.written) else []}
            for place, text in enumerate(grades.texts)
        ],
        "outputs": {name: details_of(name, each, grades) for name, each in rubric.outputs.items()},
        "samples": samples or None,
        "spread": spread_of(samples),
        "expected": expected,
    }
    value = fmean(samples) if expected is None or samples else expected
    error = error_of_mean(details["spread"], samples)
    return Score(value, details, warnings=(*unsure(grades), *cut(grades.outcomes)), error=error)


def spread_of(numbers: Sequence[float]) -> float | None:
    """Return the standard deviation of several numbers."""
    return stdev(numbers) if len(numbers) > 1 else None


def error_of_mean(spread: float | None, numbers: Sequence[object] | None) -> float:
    """Return the standard error of the mean of numbers with a *spread*; 0 for one number, or none."""
    return spread / sqrt(len(numbers)) if spread and numbers else 0.0


def details_of(name: str, output: Output, grades: Grades) -> OutputDetails:
    """Return the details of one output."""
    answers, labels = [sample[name] for sample in grades.answers], grades.labels.get(name)
    counts = [output.counts(answer) for answer in answers] if output.form != "text" else []
    expected = labels.expected if labels else None
    return {
        "value": fmean(counts) if counts else expected,
        "answers": answers or None,
        "spread": spread_of(counts),
        "probabilities": labels.probabilities if labels else None,
        "label_mass": labels.mass if labels else None,
        "expected": expected,
    }


def unsure(grades: Grades) -> list[Note]:
    """Return a warning for each output whose labels have little probability."""
    notes = []
    for name, labels in grades.labels.items():
        if labels.mass < LOW_MASS:
            first, *_, last = labels.probabilities
            text = f"the labels {first}-{last} of {name} have {labels.mass:.2g} of the probability"
            notes.append(Note(Code.LOW_LABEL_MASS, f"{text}: the model would answer something else"))
    return notes


def demand_of(prompt: str, options: JudgeOptions) -> dict[str, Demand]:
    """Return the calls of the rubric, each with the length of its text, which is not built."""
    rating, one = options.rating, "x"  # stands for the instructions in a text
    rubric, texts, found = rating.rubric, texts_of(prompt, rating, {}), Demand(0, 0)
    for call in rubric.calls:
        length = min(call.length(texts), MAX_FILLED) - len(one)  # the call of a longer one fails
        if rubric.read != "expected":
            found += Demand(1, length + len(call.text(one, rating.letters))) * rubric.samples
        if rubric.read != "written":
            for name in call.numbers:
                found += Demand(1, length + len(call.label_text(one, name, rating.letters)))
    return {"vqa": found}


def essential() -> dict[str, list[LabelCall]]:
    """Return a call for each kind of labels; a model must support one kind."""
    [call] = JudgeOptions().chosen.calls
    text = call.instructions.strip().replace("{prompt}", TEXTS[0])
    [output] = call.outputs.values()
    kinds = (False, True)
    return {"vqa": [LabelCall(IMAGE, call.text(text, kind), tuple(output.symbols(kind))) for kind in kinds]}


def uses_of(options: JudgeOptions | None) -> tuple[Beside, ...]:
    """Return the other images that the rubric uses, or those of all rubrics."""
    return options.chosen.uses if options else (REFERENCES, SOURCE)


def range_of(options: JudgeOptions) -> tuple[float, float]:
    """Return the bounds of the formula."""
    return plain(options.chosen.bounds)


def plain(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return whole bounds as integers."""
    least, largest = (int(end) if end.is_integer() else end for end in bounds)
    return least, largest


def output_metric(name: str, options: type[JudgeOptions]) -> OutputMetric:
    """Return the metric of an output; its default rubric is the first one that has it."""

    async def score(item: Item, models: ModelCalls, options: JudgeOptions) -> Score:
        """Return what the output counts; the mean of several samples.  Raises the error of `judge`."""
        if name not in options.chosen.numbers:
            raise Invalid(f"the rubric {options.name} has no output {name}")
        result = await score_of(metric.name, item, models, options)
        details = result.details["outputs"][name]
        shown = {"rubric": options.name, "digest": options.chosen.digest, **details}
        error = error_of_mean(details["spread"], details["answers"])
        return Score(details["value"], shown, result.cache, result.warnings, error=error)

    def range_of(options: JudgeOptions) -> tuple[float, float]:
        output = options.chosen.numbers.get(name)
        return plain(output.bounds) if output else (0, 1)

    return OutputMetric(
        f"{metric.name}.{name}",
        score,
        options=options,
        roles=metric.roles,
        demand_of=demand_of,
        range=range_of,
        formula=name,
        paper=options().chosen.paper or "",
        uses=metric.uses,
    )


@lru_cache(maxsize=16)
def with_options(options: type[JudgeOptions]) -> Metric:
    """Return the metric with these options; services with the same ones share it."""
    return replace(metric, options=options)


def configured(settings: Settings) -> Sequence[Metric]:
    """
    Return the metric with the rubrics of the settings, and one for each output of theirs if it has several.

    Rubrics of released models are among them if the folder of prompts has their instructions.

    Raises:
        SettingsError: a folder cannot be read, or a file in it is no rubric, or no instructions of one.
    """
    given = settings.judge
    try:
        released, absent = released_rubrics(given.prompts)
    except ValueError as exc:
        raise SettingsError(f"judge.prompts: {reason_of(exc)}") from exc
    try:
        rubrics = rubrics_in(given.rubrics, RUBRICS | released, given.prompts)
    except (OSError, ValueError) as exc:
        raise SettingsError(f"judge.rubrics: {reason_of(exc)}") from exc
    outputs: dict[str, str] = {}
    own = {name: rubric for name, rubric in rubrics.items() if name not in {*RUBRICS, *released}}
    for rubric_name, rubric in (own | released).items():
        several = len(rubric.numbers) > 1 and not rubric.compares  # a pair has no score of its own
        for name in rubric.numbers if several else ():
            outputs.setdefault(name, rubric_name)

    def options(default: str) -> type[JudgeOptions]:
        return options_with(rubrics, given.allow_inline, default, absent)

    whole = with_options(options(JudgeOptions().name))
    parts = [output_metric(name, options(default)) for name, default in outputs.items()]
    return [whole, *parts]


metric = Metric(
    "judge",
    judge,
    options=JudgeOptions,
    details=JudgeDetails,
    roles=("vqa",),
    demand_of=demand_of,
    essential=essential,
    range=range_of,
    formula="Σ P(label)·value / Σ P(label)",
    paper="Ku et al. 2023, arXiv 2312.14867; Eldesokey et al. 2026, arXiv 2605.13223",
    uses=uses_of,
    pairwise=lambda options: options.chosen.compares,
    configure=configured,
)
