"""Example pictures and texts with known answers, to check that a model answers, and answers as before."""

from math import exp, inf
from typing import Any

import PIL.Image

from models.core.calls import LikelihoodCall
from models.core.outcomes import Embedding, Likelihood, Reward
from models.images.image import Image

IMAGE = Image.of(PIL.Image.new("RGB", (112, 112), (220, 20, 20)))
OTHER_IMAGE = Image.of(PIL.Image.new("RGB", (112, 112), (20, 20, 220)))
TEXTS = ("a red picture", "a blue picture")  # one of them is true

TOLERANCE = 0.05  # bfloat16 and other calls in the same batch change a probability by less


def grey(width: int, height: int) -> Image:
    """Return a grey picture, for the example of a model."""
    return Image.of(PIL.Image.new("RGB", (width, height), (128, 128, 128)), "example")


def opposite_questions(template: str) -> tuple[LikelihoodCall, ...]:
    """Return two questions about a red picture: is it red, is it blue?  `{}` in *template* is the text."""
    return tuple(LikelihoodCall(IMAGE, template.replace("{}", text)) for text in TEXTS)


def opposite_images(template: str) -> tuple[LikelihoodCall, ...]:
    """Return one question, is the picture red, about a red picture and about a blue picture."""
    question = template.replace("{}", TEXTS[0])
    return LikelihoodCall(IMAGE, question), LikelihoodCall(OTHER_IMAGE, question)


def alike(first: Any, second: Any, least: float = 0.0) -> bool:
    """Return True if two results differ by no more than *least*, as those of opposite calls must not."""
    match first, second:
        case Likelihood(), Likelihood():
            return first.logit == second.logit or first.log_p_yes == second.log_p_yes
        case Reward(), Reward():
            return abs(first.value - second.value) <= least
        case Embedding(), Embedding():
            return distance(first, second) <= least
    return bool(first == second)


def distance(first: Any, second: Any) -> float:
    """Return the largest difference of two results' numbers; infinite where one has more of them."""
    one, other = values_of(first), values_of(second)
    if len(one) != len(other):
        return inf
    return max((abs(a - b) for a, b in zip(one, other, strict=True)), default=0.0)


def same(before: Any, now: Any, *, exact: bool) -> bool:
    """Return True if two results of one call are equal; if not *exact*, up to rounding."""
    if not values_of(before):
        return str(before) == str(now)
    return values_of(before) == values_of(now) if exact else not changed(before, now)


def changed(before: Any, now: Any) -> bool:
    """Return True if two results of one call differ by more than rounding."""
    one, other = values_of(before), values_of(now)
    if len(one) != len(other):
        return True
    return any(abs(a - b) > TOLERANCE * max(1.0, abs(a)) for a, b in zip(one, other, strict=True))


def values_of(outcome: Any) -> tuple[float, ...]:
    """Return the probabilities, rewards or coordinates of a result; empty for other kinds."""
    match outcome:
        case Likelihood():
            return (outcome.probability, exp(outcome.log_p_yes), exp(outcome.log_p_no))
        case Reward():
            return outcome.outputs
        case Embedding():
            return tuple(map(float, outcome.vector))
    return ()
