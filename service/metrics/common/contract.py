"""The contract of metrics: declaration, options, item and score."""

import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from inspect import iscoroutinefunction
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args

from pydantic import Field, PydanticUserError, TypeAdapter

from models.core.calls import Call
from models.images.image import Image
from service.core.fields import WHOLE, Strict
from service.core.settings.tree import Settings
from service.images.frames import MAX_FILES, MAX_FRAMES
from service.metrics.common.model_calls import ModelCalls
from service.observability.notes import Code, Note
from service.questions.style import Style
from service.serving.admission import Demand
from service.serving.context import CacheStatus

NAME = re.compile("[a-z][a-z0-9_]{0,63}")
OF_A_METRIC = re.compile(rf"{NAME.pattern}(\.{NAME.pattern})?")  # one output of a metric is METRIC.NAME
MAX_REFERENCES = 3  # references of an item
MAX_IMAGES = MAX_FILES + MAX_REFERENCES + 1  # pictures of an item, with its source

# Other images that a metric may use, by the item's field names.
Beside = Literal["references", "source"]
REFERENCES: Literal["references"] = "references"
SOURCE: Literal["source"] = "source"


class MetricOptions(Strict):
    """
    Options of a metric in a request; each metric adds fields of its own.

    Attributes:
        frames: several pictures of an item have the mean of their scores, the mean of the best ones
            (`top`), the least score, a quantile of them, or the score of the smallest square grid of the
            pictures, which counts as one picture for the limits; in the VQAScore paper (appendix F) with
            little loss.
        share: of the best frames, whose number is rounded up; or the quantile, between two scores in
            proportion.
        samples: score the middle frame of each of so many equal parts; by default all frames, or 16 of a
            video.  4 frames of a video or 9 views of a 3D model are nearly as good as all.
        together: the metric scores all frames of an item at once, as `Item.frames`, whatever the options.
    """

    together: ClassVar[bool] = False

    frames: Literal["mean", "top", "min", "quantile", "grid"] = "mean"
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.5
    samples: Annotated[int, Field(ge=1, le=MAX_FRAMES), WHOLE] | None = None

    @property
    def whole(self) -> bool:
        """Whether the metric scores all frames of an item at once with these options."""
        return self.together

    def overruled(self) -> dict[str, str]:
        """Return each option that has no effect, with the option whose value is the reason."""
        if self.whole:
            return {"frames": "metric", "share": "metric"}
        if self.samples == 1:
            return {"frames": "samples", "share": "samples"}
        return {} if self.frames in ("top", "quantile") else {"share": "frames"}

    def unused(self) -> tuple[Note, ...]:
        """Return a warning for each option without effect, unless it has its default value."""
        if not self.model_fields_set:
            return ()
        defaults = type(self).model_fields
        return tuple(
            Note(Code.OPTION_UNUSED, f"the option {name} has no effect with this {reason}")
            for name, reason in self.overruled().items()
            if getattr(self, name) != defaults[name].get_default(call_default_factory=True)
        )


class TogetherOptions(MetricOptions):
    """Options of a metric that scores all frames of an item together."""

    together: ClassVar[bool] = True


M = TypeVar("M", bound=MetricOptions)


@dataclass(frozen=True, slots=True)
class Item:
    """
    One image with the prompt it is judged against.

    Attributes:
        prompt: empty if it has none, which only metrics that read no prompt accept.
        references: images that it is compared with; empty unless the metric `uses` them.
        source: the image before an edit, likewise.
        rival: the image that it is compared with; None unless the metric is `pairwise` under its options.
        frames: of which *image* is the first, if the metric scores them `together` and there are several.
    """

    image: Image
    prompt: str
    references: tuple[Image, ...] = ()
    source: Image | None = None
    rival: Image | None = None
    frames: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Score:
    """
    A metric's value for one item, always finite.

    Attributes:
        value: the score.
        details: shown with `explain`.
        cache: the status of the question set, if the metric uses one; else set by the engine from all calls.
        warnings: about this score; a text without a code is from the metric itself.
        error: the standard error of the value, if it is the mean of samples; else 0.
    """

    value: float
    details: Mapping[str, Any]
    cache: CacheStatus | None = None
    warnings: tuple[Note | str, ...] = ()
    error: float = 0.0

    @property
    def notes(self) -> tuple[Note, ...]:
        """The distinct warnings, each with a code."""
        coded = (each if isinstance(each, Note) else Note(Code.OF_THE_METRIC, each) for each in self.warnings)
        return tuple(dict.fromkeys(coded))

    def noted(self, notes: Iterable[Note]) -> "Score":
        """Return the score with *notes* before its warnings."""
        return replace(self, warnings=(*notes, *self.warnings))


@dataclass(frozen=True, slots=True)
class TrainerFormat(Generic[M]):
    """
    The wire format of a trainers' reward server for a metric.

    Attributes:
        key: of the list in a request that has an entry for each image.
        options_of: returns the options of an entry, from those of the settings; its `prompt` is the item's.
            Raises `Invalid`.
        answer: returns the response for all images' scores: lists of floats, or dicts of these.
    """

    key: str
    options_of: Callable[[Any, M], M]
    answer: Callable[[Sequence[Score]], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class MetricText:
    """
    What people read about a metric.

    Attributes:
        details: the type of its scores' details, which documents them: a `TypedDict` of typing_extensions, or
            a pydantic model.
        formula: the score under the default options, in one line.
        paper: its source.
        direction: begins with "higher" or "lower", which is better.
        needs: what an item must have besides its picture and prompt, in words.
        without: what it can still score without a model, by optional role.
    """

    details: Any = dict[str, Any]
    formula: str = ""
    paper: str = ""
    direction: str = "higher is better"
    needs: str = ""
    without: Mapping[str, str] | None = None

    @property
    def lower_is_better(self) -> bool:
        """True if smaller scores are better."""
        return self.direction.startswith("lower")


@dataclass(frozen=True, kw_only=True)
class MetricModels:
    """
    The models of a metric.

    Attributes:
        roles: roles of the models that it needs.
        may_use: roles of optional models.
        demand_of: returns the calls of these models for a picture, by role, from prompt and options; a
            typical number if that depends on the picture.  One call of each role by default.
        essential: calls by role.  A model that can run none of them is unsuitable, and the metric is not
            served with it.
        own_model: the metric is its weights: it uses only the model that its settings name, and no other
            metric uses that model.
        weights: the hub's repository of such a model, which the metric's name stands for in `--model`.
    """

    roles: tuple[str, ...] = ()
    may_use: tuple[str, ...] = ()
    demand_of: Callable[[str, Any], Mapping[str, Demand]] | None = None
    essential: Callable[[], Mapping[str, Sequence[Call]]] | None = None
    own_model: bool = False
    weights: str = ""

    @property
    def all_roles(self) -> tuple[str, ...]:
        """The roles of required and optional models."""
        return (*self.roles, *self.may_use)

    @property
    def computes(self) -> bool:
        """True if it uses no model, so that it would block the event loop."""
        return not self.all_roles


@dataclass(frozen=True, kw_only=True)
class MetricInputs:
    """
    What a metric reads of an item besides the image, and the question sets of its prompt.

    Attributes:
        reads_prompt: True if the score depends on the prompt; items without one are rejected.
        uses: the other pictures of an item that it uses; a function of the options if they select some, which
            returns all for None.
        pairwise: returns whether the options make it compare an item's picture with its `rival`.  A score
            above the middle third of the range then prefers the picture, and one below it the rival.
        style: the style of its question sets; a function of the options if it depends on them.  Its name
            does not.
        styles: those of a profile by name, which requests may choose instead.
    """

    reads_prompt: bool = True
    uses: tuple[Beside, ...] | Callable[[Any], tuple[Beside, ...]] = ()
    pairwise: Callable[[Any], bool] | None = None
    style: Style | Callable[[Any], Style] | None = None
    styles: Mapping[str, Style] = field(default_factory=dict)

    def uses_of(self, options: MetricOptions | None = None) -> tuple[Beside, ...]:
        """Return the other images of an item that it uses under *options*, by default under any."""
        return self.uses if isinstance(self.uses, tuple) else self.uses(options)


@dataclass(frozen=True)
class Metric(MetricText, MetricModels, MetricInputs):
    """
    The declaration of a metric.

    Its fields stand in three groups, the bases of this class; a declaration names the fields themselves.

    Attributes:
        name: in requests, responses and settings: lower case letters, digits and `_`, 64 at most.
        score: the coroutine.  It awaits calls of models and nothing else.  Without a role it awaits
            nothing at all, and runs on a CPU thread.
        options: a subclass, whose fields are its options in requests, with defaults.  Its method `overruled`
            returns those without effect.
        range: the least and the largest score, infinite if there is no bound; a function of the options if it
            depends on them.  It is not enforced.
        default: True for the metric of requests that name none.
        trainers: the format of trainers' own entries.
        configure: returns the metrics that a profile's settings make of it, itself among them; by default
            itself alone.
    """

    name: str
    score: Callable[[Item, ModelCalls, Any], Coroutine[Any, Any, Score]]
    _: KW_ONLY
    options: type[MetricOptions] = MetricOptions
    range: tuple[float, float] | Callable[[Any], tuple[float, float]] = (0, 1)
    default: bool = False
    trainers: TrainerFormat[Any] | None = None
    configure: "Callable[[Settings], Sequence[Metric]] | None" = None

    def __post_init__(self) -> None:
        """Raise `TypeError` or `ValueError` for an invalid declaration."""
        if not OF_A_METRIC.fullmatch(self.name):
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
        if wrong := set(self.uses_of()) - set(get_args(Beside)):
            raise ValueError(f"{self.name} uses {', '.join(sorted(wrong))}; an item has no such pictures")
        if not self.direction.startswith(("higher", "lower")):
            raise ValueError(f'the direction of {self.name} must be "higher is better" or "lower is better"')
        least, largest = self.range_of()
        if not least < largest:
            raise ValueError(f"the range of {self.name} must be (least, largest)")

    def demand(self, prompt: str, options: MetricOptions) -> Mapping[str, Demand]:
        """Return its calls for an image, by role of a required model."""
        if self.demand_of:
            return self.demand_of(prompt, options)
        return {role: Demand(1, len(prompt) if self.reads_prompt else 0) for role in self.roles}

    def range_of(self, options: MetricOptions | None = None) -> tuple[float, float]:
        """Return the least and the largest score under *options*, by default the metric's defaults."""
        return self.range if isinstance(self.range, tuple) else self.range(options or self.options())

    def style_of(self, options: MetricOptions | None = None) -> Style:
        """Return the style of its question sets likewise.  Raises `TypeError` if it uses none."""
        if self.style is None:
            raise TypeError(f"{self.name} uses no question sets")
        return self.style if isinstance(self.style, Style) else self.style(options or self.options())

    def asks(self, options: MetricOptions) -> Mapping[str, MetricOptions]:
        """Return the metrics whose models it uses, with their options: itself, or a composite's parts."""
        return {self.name: options}
