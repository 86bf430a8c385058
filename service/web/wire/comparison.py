"""Wire types of `POST /compare`."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from service.core.fields import WHOLE, Name, Orient, Prompt, Strict, branch, schema_keywords
from service.metrics.common.contract import MetricOptions
from service.web.wire.requests import (
    Clipped,
    ItemId,
    Options,
    Priority,
    ScoreRequest,
    SingleImage,
    Timeout,
    WireImage,
    WireItem,
    listed,
)

MAX_COMPARED = 32  # pictures of a comparison


class WireSchedule(Strict):
    """
    A part of all pairs: `pairs_per_image` times as many as there are pictures.

    Attributes:
        kind: `swiss` compares in rounds, each picture with one of similar results, and `anchor` the first
            pictures with all others.
        pairs_per_image: pairs of each picture.
    """

    kind: Literal["swiss", "anchor"]
    pairs_per_image: Annotated[int, Field(ge=1, le=MAX_COMPARED - 1), WHOLE]


def schedule_form(value: Any) -> str:
    """Return the branch of a schedule."""
    return "<all>" if isinstance(value, str) else "<part>"


AnySchedule = Annotated[
    Annotated[Literal["all"], branch("<all>")] | Annotated[WireSchedule, branch("<part>")],
    Discriminator(schedule_form),
]


class ComparedItem(Clipped):
    """
    One picture of a comparison; a prompt of its own must be that of the others.

    Attributes:
        id: returned in `ids`.
        prompt: that of the others.
        image: as in `POST /score`.
        orient: the pixels as stored, or rotated as the EXIF data says.
    """

    id: ItemId | None = None
    prompt: Prompt | None = None
    image: WireImage
    orient: Orient | None = None


class CompareRequest(Clipped):
    """
    Body of `POST /compare`: 2 to 32 pictures of one prompt, as `images` or as `items`.

    They are compared by `metric`: by its scores, or, if it is one that sees two pictures, in both orders.

    Attributes:
        images: pictures of the prompt.
        items: pictures with an `id` each.
        source: the picture before the edits, for a metric or a rubric that uses it.
        metric: its scores are compared; by default that of `POST /score`.
        rubric: for a judge that sees two pictures, in place of `metric`: one of the service, or a table if
            `judge.allow_inline` is set.
        noise: the largest difference of two scores that is a tie, for metrics that see one picture; by
            default that of the scores.
        schedule: all pairs, or a part of them.
        options: of the metrics.
        orient: the pixels of pictures as stored, or rotated as their EXIF data says.
        explain: whether to return `details`.
        prompt: of all pictures.
    """

    default: ClassVar[str] = ""  # the metric of a request that names none
    pairwise: ClassVar[str] = ""  # the metric of `rubric`

    options: Options = Options()
    prompt: Prompt | None = None
    images: list[WireImage] | None = None
    items: list[ComparedItem] | None = None
    source: SingleImage | None = None
    metric: Name | None = None
    rubric: Any = None  # see `rubric_for`
    noise: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    schedule: AnySchedule = "all"
    orient: Orient | None = None
    priority: Priority = None
    timeout_ms: Timeout | None = None
    explain: bool = False

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.images is None) == (self.items is None):
            raise ValueError("give either images or items")
        if self.rubric is not None and self.metric is not None:
            raise ValueError("give either metric or rubric")
        if len(self.prompts) > 1:
            raise ValueError("the pictures of a comparison have one prompt")
        return self

    @property
    def named(self) -> str:
        """The metric that compares."""
        return self.pairwise if self.rubric is not None else self.metric or self.default

    @property
    def prompts(self) -> set[str]:
        """The different prompts of the request and its items."""
        return {each.prompt for each in (self, *(self.items or ())) if each.prompt is not None}

    def to_score(self) -> ScoreRequest:
        """Return the request that scores the pictures, without the source."""
        [prompt] = self.prompts or [None]
        items = [WireItem.model_construct(**{**dict(item), "prompt": prompt}) for item in self.items or ()]
        return ScoreRequest.model_construct(
            options=self.options,
            prompt=prompt,
            images=self.images,
            items=items or None,
            metrics=[self.named],
            orient=self.orient,
            start=self.start,
            end=self.end,
            fps=self.fps,
        )


class PairMetric(NamedTuple):
    """
    The metric that grades by rubrics.

    Attributes:
        pairwise: returns whether its options make it compare two pictures.
    """

    name: str
    options: type[MetricOptions]
    pairwise: Callable[[Any], bool]

    @property
    def rubrics(self) -> list[str]:
        """The names of the rubrics that compare two pictures."""
        known = getattr(self.options, "tables", {})
        return [name for name in known if self.pairwise(self.options.model_validate({"rubric": name}))]

    def checked(self, rubric: Any) -> Any:
        """Return a rubric that compares two pictures, or None.  Raises `ValueError`."""
        if rubric is None:
            return None
        try:
            options = self.options.model_validate({"rubric": rubric})
        except ValidationError as exc:
            first = exc.errors(include_input=False)[0]
            place = ".".join(str(each) for each in first["loc"][1:] if not str(each).startswith("<"))
            message = first["msg"].removeprefix("Value error, ")
            raise ValueError(f"{place}: {message}" if place else message) from None
        if not self.pairwise(options):
            raise ValueError(
                f"does not show two pictures, as {', '.join(self.rubrics)} do; for the difference of grades, "
                f"name it in options.{self.name}.rubric, with the metric {self.name}"
            )
        return rubric


def most_compared(max_items: int) -> int:
    """Return the most pictures of a comparison where a request may have *max_items*."""
    return max(2, min(max_items, MAX_COMPARED))


def compare_request(
    options: Any, every: Any, default: str, pairwise: PairMetric, max_items: int
) -> type[CompareRequest]:
    """Return the request type where there are these *options* by metric, with the field of their defaults."""
    most = most_compared(max_items)
    inline = [{"type": "object"}] if getattr(pairwise.options, "inline", False) else []
    forms = [{"type": "string", "enum": pairwise.rubrics}, *inline, {"type": "null"}]
    rubric = Annotated[Any, AfterValidator(pairwise.checked), schema_keywords(anyOf=forms)]
    made: type[CompareRequest] = create_model(
        "CompareRequest",
        __base__=CompareRequest,
        __doc__=CompareRequest.__doc__,
        options=(options, every),
        images=(listed(WireImage, most, 2) | None, None),
        items=(listed(ComparedItem, most, 2) | None, None),
        rubric=(rubric, None),
    )
    made.default, made.pairwise = default, pairwise.name
    return made
