"""What a metric is, what it is given, and what it gives."""

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from inspect import iscoroutinefunction
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import Field, PydanticUserError, TypeAdapter

from models.core.calls import Call
from models.images.image import Image
from service.core.fields import WHOLE, Strict
from service.metrics.common.model_calls import Models
from service.observability.notes import Code, Note
from service.questions.style import Style
from service.serving.context import CacheStatus
from service.serving.demand import Demand

NAME = re.compile("[a-z][a-z0-9_]{0,63}")
MAX_FRAMES = 64  # of an item, that are scored
MAX_REFERENCES = 3  # of an item
MAX_PICTURES = MAX_FRAMES + MAX_REFERENCES + 1  # of an item, with its source

# What a metric may use beside an item's image, by the names that the item's fields have.
Beside = Literal["references", "source"]
REFERENCES: Literal["references"] = "references"
SOURCE: Literal["source"] = "source"


class MetricOptions(Strict):
    """
    What a request may say about a metric; a metric adds fields of its own.

    Attributes:
        frames: how an item's several images become one score: the mean of theirs, or that of one grid.
        samples: how many of them are scored; all of them by default.
    """

    frames: Literal["mean", "grid"] = "mean"
    samples: Annotated[int, Field(ge=1, le=MAX_FRAMES), WHOLE] | None = None


Options = TypeVar("Options", bound=MetricOptions)


@dataclass(frozen=True, slots=True)
class Item:
    """
    One image with the prompt it is judged against.

    Attributes:
        references: pictures that it is compared with; empty for a metric that does not say it `uses` them.
        source: the picture before an edit, likewise.
    """

    image: Image
    prompt: str
    references: tuple[Image, ...] = ()
    source: Image | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """
    A metric's value for one item, always finite.

    Attributes:
        value: the score.
        details: what it is made of, shown with `explain`.
        cache: how the question set was found, for metrics that ask for one; for others the engine
            says whether all their calls were in the cache.
        warnings: what the caller should know about this score; a sentence without a code is the metric's own.
    """

    value: float
    details: Mapping[str, Any]
    cache: CacheStatus | None = None
    warnings: tuple[Note | str, ...] = ()

    @property
    def notes(self) -> tuple[Note, ...]:
        """The warnings, each once, and each with a code."""
        coded = (each if isinstance(each, Note) else Note(Code.OF_THE_METRIC, each) for each in self.warnings)
        return tuple(dict.fromkeys(coded))

    def noted(self, notes: tuple[Note, ...]) -> "Score":
        """The same score with more to know about it, which goes first."""
        return replace(self, warnings=(*notes, *self.warnings)) if notes else self


@dataclass(frozen=True, slots=True)
class TrainerFormat(Generic[Options]):
    """
    How reward servers of trainers are asked for a metric, and answer.

    Attributes:
        key: of the list in a request that has an entry for each picture.
        options_of: the options that an entry says, the settings' being given; its `prompt` is the item's.
            Raises `Invalid`.
        answer: what their client reads, made of all pictures' scores: lists of floats, or dicts of these.
    """

    key: str
    options_of: Callable[[Any, Options], Options]
    answer: Callable[[Sequence[Score]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Metric:
    """
    One declaration of a metric.

    Attributes:
        name: what requests, answers and settings call it.
        score: the coroutine.  It awaits calls of models and nothing else.  Without a role it awaits
            nothing at all, and runs on a CPU thread.
        options: what requests may say about it.
        details: the type of its scores' details, which documents them: a `TypedDict` of typing_extensions, or
            a pydantic model.
        roles: of the models that it can't do without.
        demand_of: what it asks of them for an image, by role, told from the prompt and the options; a
            typical number where that depends on the image.  One call of each role by default.
        may_use: of the models that some options make needless.
        range: the least and the largest score under the default options.
        range_of: the same under other options, where they change it; infinite where there is no bound.
        formula: the score under the default options, in one line.
        paper: its source.
        direction: what a larger score means: begins with "higher" or with "lower", which is better.
        own_model: the metric is its weights.  No other model may stand in for the one that its settings
            name, and that one stands in for no other metric's.
        essential: calls by role, of which the model must take one: a model that takes none of them is of no
            use, and the metric is not on offer with it.
        without: what it can still score where there is no model for a role that it may use, by that role.
        style: of the question sets that it asks for.
        style_of: the same under other options, where they have the sets written in another way; the
            name stays.
        uses: what it looks at beside an item's image, whatever the options are unless `uses_of` says more.
        uses_of: which of these it looks at under other options.
        default: what a request without metrics is scored by.
        reads_prompt: whether the prompt plays a part.
        trainers: how trainers ask for it by entries of their own.
    """

    name: str
    score: Callable[[Item, Models, Any], Coroutine[Any, Any, Score]]
    _: KW_ONLY
    options: type[MetricOptions] = MetricOptions
    details: Any = dict[str, Any]
    roles: tuple[str, ...] = ()
    demand_of: Callable[[str, Any], Mapping[str, Demand]] | None = None
    may_use: tuple[str, ...] = ()
    range: tuple[float, float] = (0, 1)
    range_of: Callable[[Any], tuple[float, float]] | None = None
    formula: str = ""
    paper: str = ""
    direction: str = "higher is better"
    own_model: bool = False
    essential: Callable[[], Mapping[str, Sequence[Call]]] | None = None
    without: Mapping[str, str] | None = None
    style: Style | None = None
    style_of: Callable[[Any], Style] | None = None
    uses: tuple[Beside, ...] = ()
    uses_of: Callable[[Any], tuple[Beside, ...]] | None = None
    default: bool = False
    reads_prompt: bool = True
    trainers: TrainerFormat[Any] | None = None

    def __post_init__(self) -> None:
        """Raises `TypeError` or `ValueError` for a declaration that cannot be served."""
        if not NAME.fullmatch(self.name):
            raise ValueError(f"the name of a metric must match {NAME.pattern}")
        if not iscoroutinefunction(self.score):
            raise TypeError(f"the score of {self.name} must be an `async def`")
        if not (isinstance(self.options, type) and issubclass(self.options, MetricOptions)):
            raise TypeError(f"the options of {self.name} must be a subclass of MetricOptions")
        try:
            TypeAdapter(self.details)
        except PydanticUserError as exc:
            raise TypeError(f"the details of {self.name} cannot be described: {exc.message}") from exc
        self.options()  # each of them needs a default
        if wrong := set(self.uses) - set(get_args(Beside)):
            raise ValueError(f"{self.name} uses {', '.join(sorted(wrong))}; an item has no such pictures")
        if not self.direction.startswith(("higher", "lower")):
            raise ValueError(f'the direction of {self.name} must be "higher is better" or "lower is better"')
        if not self.range[0] < self.range[1]:
            raise ValueError(f"the range of {self.name} must be (least, largest)")

    @property
    def all_roles(self) -> tuple[str, ...]:
        """Those that it needs and those that it may use."""
        return (*self.roles, *self.may_use)

    @property
    def lower_is_better(self) -> bool:
        """Whether the least score is the best one."""
        return self.direction.startswith("lower")

    @property
    def computes(self) -> bool:
        """Whether it asks no model, so that all its time is computing."""
        return not self.all_roles

    def demand(self, prompt: str, options: MetricOptions) -> Mapping[str, Demand]:
        """What it asks for an image of the models that it can't do without, by role."""
        if self.demand_of:
            return self.demand_of(prompt, options)
        return {role: Demand(1, len(prompt)) for role in self.roles}

    def range_with(self, options: MetricOptions) -> tuple[float, float]:
        """The least and the largest score under *options*."""
        return self.range_of(options) if self.range_of else self.range

    def uses_with(self, options: MetricOptions) -> tuple[Beside, ...]:
        """What it looks at beside an item's image under *options*."""
        return self.uses_of(options) if self.uses_of else self.uses

    def style_with(self, options: MetricOptions) -> Style:
        """The style of its question sets under *options*.  Raises `TypeError` where it asks for none."""
        style = self.style_of(options) if self.style_of else self.style
        if style is None:
            raise TypeError(f"{self.name} asks for no question sets")
        return style

    def asks(self, options: MetricOptions) -> Mapping[str, MetricOptions]:
        """The metrics whose models it asks, with their options: itself, unless it is a composite."""
        return {self.name: options}
