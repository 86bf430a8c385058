"""The calls of a rubric for one item, and the answers to its outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum
from typing import Self

from models.core.calls import AnswerCall, LabelCall
from models.core.outcomes import Choices
from models.images.image import Image
from service.core.errors import AnswerRefused, Invalid, MissingImage, Unanswered
from service.core.fields import PLACEHOLDER
from service.metrics.common.contract import Item
from service.metrics.common.model_calls import ModelCalls
from service.metrics.rubrics.answer import OutputValue, parsed
from service.metrics.rubrics.output import Output
from service.metrics.rubrics.rubric import (
    BESIDE,
    DATA,
    FRAMES,
    PLACEHOLDERS,
    RIVAL,
    Rubric,
    RubricCall,
    Shown,
)

MAX_FILLED = 65_536  # characters of a call's instructions with the item's texts, which may stand often


@dataclass(frozen=True, slots=True)
class Rating:
    """
    How an item is graded.

    Attributes:
        rubric: with its *name* for errors.
        letters: grades that are answered by one token are letters.
        data: texts of the item, by name.
    """

    rubric: Rubric
    name: str
    letters: bool
    data: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """
    What a model reads in one call, before the description of the answer.

    Attributes:
        text: the instructions with the item's texts.
        before: texts and images, without the last *image*.
    """

    call: RubricCall
    text: str
    before: tuple[str | Image, ...]
    image: Image

    @classmethod
    def of(cls, call: RubricCall, item: Item, rating: Rating) -> Self:
        """Return the prompt about an item.  Raises `MissingImage`, `Invalid`."""
        sources = () if item.source is None else (item.source,)
        given: Mapping[Shown, Sequence[Image]] = {
            "candidate": (item.image,),
            FRAMES: item.frames or (item.image,),
            RIVAL: () if item.rival is None else (item.rival,),
            "source": sources,
            "reference*": item.references,
        }
        shown: list[str | Image] = []
        numbers: dict[Shown, str] = {}
        for name in call.images:
            if not given[name]:
                if name == RIVAL:
                    raise MissingImage(f"the rubric {rating.name} compares two pictures; POST /compare does")
                raise MissingImage(
                    f"the rubric {rating.name} needs the item's {BESIDE[name]}, and it has none"
                )
            first = 1 + sum(not isinstance(each, str) for each in shown)
            last = first + len(given[name]) - 1
            numbers[name] = f"{first}" if first == last else f"{first} to {last}"
            for number, each in enumerate(given[name], 1):
                if caption := call.captions.get(name):
                    shown.append(caption.replace(PLACEHOLDER, str(number)))
                shown.append(each)
        image = shown.pop()
        assert isinstance(image, Image)
        return cls(call, filled(call, item.prompt, rating, numbers), tuple(shown), image)

    def written(self, rating: Rating, sample: int) -> AnswerCall:
        """Return the call for a written answer."""
        return AnswerCall(
            self.image,
            self.call.text(self.text, rating.letters),
            self.before,
            max_tokens=self.call.max_tokens,
            schema=self.call.json_form,
            temperature=rating.rubric.heat,
            seed=sample,
            rubric=rating.rubric.digest,
        )

    def labelled(self, name: str, rating: Rating) -> LabelCall:
        """Return the call for the probabilities of the symbols of one output."""
        text = self.call.label_text(self.text, name, rating.letters)
        symbols = tuple(self.call.outputs[name].symbols(rating.letters))
        return LabelCall(self.image, text, symbols, self.before, rating.rubric.digest)


def filled(call: RubricCall, prompt: str, rating: Rating, numbers: Mapping[Shown, str]) -> str:
    """
    Return the instructions with the item's texts filled in.

    Args:
        numbers: of the pictures that the call has, by name.

    Raises:
        Invalid: the item's data lack a text, or the text would be longer than `MAX_FILLED`.
    """
    if missing := sorted(call.data - rating.data.keys()):
        raise Invalid(f"the rubric {rating.name} needs data.{missing[0]}, and the item has none")
    texts = texts_of(prompt, rating, numbers)
    if (length := call.length(texts)) > MAX_FILLED:
        raise Invalid(
            f"the instructions of the rubric {rating.name} have {length} characters with the item's texts "
            f"filled in; at most {MAX_FILLED} are allowed"
        )
    return PLACEHOLDERS.sub(lambda found: texts[found[0][1:-1]], call.instructions.strip())


def texts_of(prompt: str, rating: Rating, numbers: Mapping[Shown, str]) -> dict[str, str]:
    """Return the text of each placeholder, by what is between its braces.  *numbers* are as of `filled`."""
    return {
        "prompt": prompt,
        "references": numbers.get("reference*", ""),
        "source": numbers.get("source", ""),
        "candidate": numbers.get("candidate", ""),
        "frames": numbers.get(FRAMES, ""),
        RIVAL: numbers.get(RIVAL, ""),
        **{DATA + name: text for name, text in rating.data.items()},
    }


@dataclass(frozen=True, slots=True)
class SymbolProbabilities:
    """
    The probabilities of the symbols of one output.

    Attributes:
        probabilities: of each symbol over the whole vocabulary.
        mass: of all symbols together.
        expected: the mean of what the symbols count, each weighted by its probability.
    """

    probabilities: Mapping[str, float]
    mass: float
    expected: float

    @classmethod
    def of(cls, output: Output, symbols: Mapping[str, str], outcome: Choices) -> Self:
        """Return the probabilities in an outcome.  Raises `Unanswered`."""
        log_probs = {symbol: fsum(tokens) for symbol, tokens in zip(symbols, outcome.log_probs, strict=True)}
        probabilities = {symbol: exp(log) for symbol, log in log_probs.items()}
        mass = min(1.0, fsum(probabilities.values()))
        if not mass:
            raise Unanswered("all labels have the probability 0")
        counts = {symbol: output.counts(answer) for symbol, answer in symbols.items()}
        return cls(probabilities, mass, mean(log_probs, counts))


def mean(log_probs: Mapping[str, float], values: Mapping[str, float]) -> float:
    """Return the mean of the values, weighted by probabilities of any magnitude."""
    likeliest = max(log_probs.values())
    weights = {symbol: exp(log_prob - likeliest) for symbol, log_prob in log_probs.items()}
    total = fsum(weight * values[symbol] for symbol, weight in weights.items())
    found = total / fsum(weights.values())
    return min(max(values.values()), max(min(values.values()), found))


@dataclass(frozen=True, slots=True)
class Grades:
    """
    All that the model answered about one item.

    Attributes:
        texts: of each call, as sent.
        written: the texts of each call, one for each sample.
        answers: of each sample, by output.
        labels: by output.
        outcomes: of the calls for probabilities.
    """

    texts: Sequence[str]
    written: Sequence[Sequence[str]]
    answers: Sequence[Mapping[str, OutputValue]]
    labels: Mapping[str, SymbolProbabilities]
    outcomes: Sequence[Choices]


async def grades_of(item: Item, models: ModelCalls, rating: Rating) -> Grades:
    """
    Return the answers about an item, from calls that are sent at the same time.

    Raises:
        MissingImage, Invalid: the item lacks a picture or a text of the rubric.
        AnswerRefused: a written answer does not have the form, also after the repetition.
        Unanswered: no label of an output has any probability.
    """
    rubric = rating.rubric
    prompts = [JudgePrompt.of(call, item, rating) for call in rubric.calls]
    samples = range(0 if rubric.read == "expected" else rubric.samples)
    written = [prompt.written(rating, sample) for sample in samples for prompt in prompts]
    labelled = {
        name: prompt.labelled(name, rating)
        for prompt in (prompts if rubric.read != "written" else ())
        for name in prompt.call.numbers
    }
    outcomes = await models.vqa.answer([*written, *labelled.values()])
    texts = [outcome.text for outcome in outcomes[: len(written)]]
    answers = await answers_in(texts, written, models, rating)
    choices = outcomes[len(written) :]
    labels = {
        name: SymbolProbabilities.of(
            rubric.numbers[name], rubric.numbers[name].symbols(rating.letters), outcome
        )
        for name, outcome in zip(labelled, choices, strict=True)
    }
    count = len(prompts)
    merged = [
        {name: answer for part in answers[start : start + count] for name, answer in part.items()}
        for start in range(0, len(answers), count)
    ]
    sent = [call.question for call in written[:count]] + [call.question for call in labelled.values()]
    return Grades(sent, [texts[place::count] for place in range(count)], merged, labels, choices)


async def answers_in(
    texts: list[str], calls: Sequence[AnswerCall], models: ModelCalls, rating: Rating
) -> list[dict[str, OutputValue]]:
    """
    Return the answers of each text; *texts* gets those of repeated calls.

    Raises:
        AnswerRefused: the first text without the form, if the rubric allows no repetition of it.
    """
    parts = rating.rubric.calls

    def read(place: int) -> dict[str, OutputValue] | AnswerRefused:
        call = parts[place % len(parts)]
        try:
            return parsed(texts[place], call.form, call.outputs, rating.letters)
        except AnswerRefused as refusal:
            models.count_refused(calls[place], refusal.reason)
            return refusal

    found = [read(place) for place in range(len(texts))]
    refused = [place for place, answer in enumerate(found) if isinstance(answer, AnswerRefused)]
    if refused and rating.rubric.retries:
        calls = [replace(call, seed=call.seed + rating.rubric.samples) for call in calls]
        outcomes = await models.vqa.answer([calls[place] for place in refused])
        for place, outcome in zip(refused, outcomes, strict=True):
            texts[place] = outcome.text
            found[place] = read(place)
    answers = []
    for answer in found:
        if isinstance(answer, AnswerRefused):
            raise answer
        answers.append(answer)
    return answers
