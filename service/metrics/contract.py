"""What a metric is, what it is given, and what it gives."""

import re
from collections.abc import Callable, Coroutine
from dataclasses import KW_ONLY, dataclass
from inspect import iscoroutinefunction
from typing import Any, Literal

from models.image import Image
from service.context import Found
from service.fields import Strict
from service.metrics.models import Models
from service.questions.style import Style

NAME = re.compile("[a-z][a-z0-9_]{0,63}")


class MetricOptions(Strict):
    """
    What a request may say about a metric; a metric adds fields of its own.

    Attributes:
        frames: how the scores of an item's several images become one.
    """

    frames: Literal["mean"] = "mean"


@dataclass(frozen=True, slots=True)
class Item:
    """One image with the prompt it is judged against."""

    image: Image
    prompt: str


@dataclass(frozen=True, slots=True)
class Score:
    """
    A metric's value for one item, always finite.

    Attributes:
        value: the score.
        details: what it is made of, shown with `explain`.
        cache: how the question set was found, for metrics that ask for one; for others the engine
            says whether all their calls were in the cache.
        warnings: what the caller should know about this score.
    """

    value: float
    details: dict[str, Any]
    cache: Found | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """
    One declaration of a metric.

    Attributes:
        name: what requests, answers and settings call it.
        score: the coroutine.  It awaits calls of models and nothing else.  Without a role it awaits
            nothing at all, and runs on a CPU thread.
        options: what requests may say about it.
        roles: of the models that it can't do without.
        may_use: of the models that some options make needless.
        range: the least and the largest score.
        paper: its source.
        own_model: the metric is its weights.  No other model may stand in for the one that its settings
            name, and that one stands in for no other metric's.
        style: of the question sets that it asks for.
        default: what a request without metrics is scored by.
    """

    name: str
    score: Callable[[Item, Models, Any], Coroutine[Any, Any, Score]]
    _: KW_ONLY
    options: type[MetricOptions] = MetricOptions
    roles: tuple[str, ...] = ()
    may_use: tuple[str, ...] = ()
    range: tuple[float, float] = (0, 1)
    paper: str = ""
    direction: str = "higher is better"
    own_model: bool = False
    style: Style | None = None
    default: bool = False

    def __post_init__(self) -> None:
        """Raises `TypeError` or `ValueError` for a declaration that cannot be served."""
        if not NAME.fullmatch(self.name):
            raise ValueError(f"the name of a metric must match {NAME.pattern}")
        if not iscoroutinefunction(self.score):
            raise TypeError(f"the score of {self.name} must be an `async def`")
        if not (isinstance(self.options, type) and issubclass(self.options, MetricOptions)):
            raise TypeError(f"the options of {self.name} must be a subclass of MetricOptions")
        self.options()  # each of them needs a default
        if not self.range[0] < self.range[1]:
            raise ValueError(f"the range of {self.name} must be (least, largest)")

    @property
    def all_roles(self) -> tuple[str, ...]:
        """Those that it needs and those that it may use."""
        return (*self.roles, *self.may_use)
