"""
Wire types of requests: shapes and limits.

Everything here is checked in a request's JSON alone; `service.images.loader` reads the content of images.
Types that depend on metrics are made from their declarations.  The JSON schema holds what generators of
clients can read; rules between fields are descriptions there, and are checked here.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from service.core.fields import CLEAN, WHOLE, Name, Orient, Prompt, Strict, clean, schema_keywords
from service.core.settings.sections import MAX_TIMEOUT_MS
from service.metrics.common.contract import Metric
from service.web.images import Picture, References, WireImage
from service.web.wire.clip import Clipped
from service.web.wire.lists import listed

MAX_ITEMS = 128  # unless the settings say otherwise
MAX_RANKED = 64  # pictures of a ranking


def different(names: list[str]) -> list[str]:
    """Refuse duplicate names."""
    if len(set(names)) < len(names):
        raise ValueError("contains a name twice")
    return names


Id = Annotated[str, StringConstraints(max_length=256), AfterValidator(clean), schema_keywords(pattern=CLEAN)]
Timeout = Annotated[int, Field(ge=1, le=MAX_TIMEOUT_MS), WHOLE]
# The default is `interactive`, unless the key may not use it.
Priority = Annotated[Literal["interactive", "bulk"] | None, schema_keywords(default="interactive")]
Count = Annotated[int, Field(ge=1, le=MAX_RANKED), WHOLE]


class Options(Strict):
    """Options by metric."""


def of_the_request(options: Options, info: ValidationInfo) -> Options:
    """Store the shared options in the context, for items with options of their own."""
    if info.context is not None:
        info.context["options"] = options
    return options


def over_the_requests(own: Any, info: ValidationInfo) -> Any:
    """Merge an item's own options over those of the request, by metric and option."""
    shared = (info.context or {}).get("options")
    if shared is None or not isinstance(own, dict):
        return own
    merged = sent(shared)
    for metric, options in own.items():
        both = metric in merged and isinstance(options, dict)
        merged[metric] = {**sent(merged[metric]), **options} if both else options
    return merged


def sent(options: BaseModel) -> dict[str, Any]:
    """Return the fields that the request sets."""
    return {name: getattr(options, name) for name in options.model_fields_set}


class WireItem(Clipped):
    """
    One image with its prompt; its options, `orient`, `start`, `end` and `fps` override those of the request.

    References are pictures that it is compared with, and the source is the picture before an edit. Both are
    for metrics that use them: see `uses` in `GET /models`.
    """

    id: Id | None = None
    prompt: Prompt
    image: WireImage
    options: Options | None = None
    orient: Orient | None = None
    references: References | None = None
    source: Picture | None = None


OF_AN_ITEM = ("id", "prompt", "image", "references", "source")  # other fields are the request's own


class ScoreRequest(Clipped):
    """
    Body of `POST /score`: `items`, or one `prompt` with an `image` or many `images`.

    A `prompt` with an `image` is one item, and may have an item's `id`, `references` and `source`.
    """

    options: Options = Options()  # before the items, whose own options override these
    items: list[WireItem] | None = None
    id: Id | None = None
    prompt: Prompt | None = None
    image: WireImage | None = None
    images: list[WireImage] | None = None
    references: References | None = None
    source: Picture | None = None
    metrics: list[Name]
    orient: Orient | None = None
    priority: Priority = None
    timeout_ms: Timeout | None = None
    explain: bool = False

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        forms = [self.items, self.image, self.images]
        if sum(form is not None for form in forms) != 1 or (self.prompt is None) != (self.items is not None):
            raise ValueError("give either items, or prompt with image or images")
        if self.image is None and any(each is not None for each in (self.id, self.references, self.source)):
            raise ValueError("id, references and source belong to an item, or to prompt with image")
        return self

    def all_items(self) -> Mapping[str, WireItem]:
        """Return the items of any form, by their JSON pointer."""
        if self.items is not None:
            return {f"/items/{index}": item for index, item in enumerate(self.items)}
        if self.image is not None:
            return {"": WireItem.model_construct(**{name: getattr(self, name) for name in OF_AN_ITEM})}
        return {
            f"/images/{index}": WireItem.model_construct(prompt=self.prompt or "", image=image)
            for index, image in enumerate(self.images or ())
        }


class WireCascade(Strict):
    """A cheap metric that orders all pictures, and how many of the best go on."""

    metric: Name
    keep: Count


class RankRequest(Clipped):
    """
    Body of `POST /rank`: pictures for one prompt, and how to order and accept them.

    `on_deadline: "cheap"` needs a cascade, whose metric is not the ranking's.
    """

    options: Options = Options()
    prompt: Prompt
    images: list[WireImage]
    metric: Name
    top_k: Count | None = None
    threshold: Annotated[float, Field(allow_inf_nan=False)] | None = None
    cascade: WireCascade | None = None
    on_error: Literal["raise", "pass", "block"] = "raise"
    on_deadline: Literal["fail", "cheap"] = "fail"
    orient: Orient | None = None
    priority: Priority = None
    timeout_ms: Timeout | None = None
    explain: bool = False

    @field_validator("cascade")
    @classmethod
    def _of_another_metric(cls, cascade: WireCascade | None, info: ValidationInfo) -> WireCascade | None:
        if cascade and cascade.metric == info.data.get("metric"):
            raise ValueError("orders by the metric that decides; leave it out, or name a cheaper metric")
        return cascade

    @field_validator("on_deadline")
    @classmethod
    def _has_a_cheap_metric(cls, on_deadline: str, info: ValidationInfo) -> str:
        if on_deadline == "cheap" and info.data.get("cascade", ...) is None:
            raise ValueError('"cheap" needs a cascade, whose metric stands in')
        return on_deadline

    @property
    def metrics(self) -> dict[str, str]:
        """Return the requested metrics, by their place in the request."""
        cheap = {"/cascade/metric": self.cascade.metric} if self.cascade else {}
        return {"/metric": self.metric, **cheap}

    def to_score(self) -> ScoreRequest:
        """Return the request that scores all of it."""
        return ScoreRequest.model_construct(
            options=self.options,
            prompt=self.prompt,
            images=self.images,
            metrics=[*self.metrics.values()],
            orient=self.orient,
            start=self.start,
            end=self.end,
            fps=self.fps,
        )


class QuestionsRequest(Strict):
    """Body of `POST /questions`; the options say in which way a metric has its sets written."""

    prompts: list[Prompt]
    style: str
    options: Options = Options()
    priority: Priority = None
    timeout_ms: Timeout | None = None


class Requests:
    """
    The requests that can be made where there are these metrics.

    Args:
        by_metric: the options of each metric.
        default: the metrics of a request that names none; a ranking's is the first.
        styles: styles of the metrics' question sets.
        max_items: most items of a request, and most prompts.

    Attributes:
        score: `ScoreRequest` with an options field for each metric.
        rank: `RankRequest` with the same options.
        questions: `QuestionsRequest` with those styles.
    """

    def __init__(
        self,
        by_metric: tuple[tuple[str, type[BaseModel]], ...],
        default: tuple[str, ...],
        styles: tuple[str, ...],
        max_items: int,
    ) -> None:
        fields: dict[str, Any] = {name: (options, options()) for name, options in by_metric}
        options: Any = create_model("Options", __base__=Options, __doc__=Options.__doc__, **fields)
        own = Annotated[options, BeforeValidator(over_the_requests)] | None
        item = create_model("WireItem", __base__=WireItem, __doc__=WireItem.__doc__, options=(own, None))
        names = Annotated[
            list[Name],
            Field(min_length=1, max_length=len(by_metric), fail_fast=True),
            AfterValidator(different),
            schema_keywords(uniqueItems=True),
        ]
        self.score: type[ScoreRequest] = create_model(
            "ScoreRequest",
            __base__=ScoreRequest,
            __doc__=ScoreRequest.__doc__,
            options=(Annotated[options, AfterValidator(of_the_request)], options()),
            items=(listed(item, max_items) | None, None),
            images=(listed(WireImage, max_items) | None, None),
            metrics=(names, [*default]),
        )
        self.rank: type[RankRequest] = create_model(
            "RankRequest",
            __base__=RankRequest,
            __doc__=RankRequest.__doc__,
            options=(options, options()),
            images=(listed(WireImage, min(max_items, MAX_RANKED)), ...),
            metric=(Name, default[0]),
        )
        style: Any = Literal[styles]
        self.questions: type[QuestionsRequest] = create_model(
            "QuestionsRequest",
            __base__=QuestionsRequest,
            __doc__=QuestionsRequest.__doc__,
            prompts=(listed(Prompt, max_items), ...),
            style=(style, styles[0]),
            options=(options, options()),
        )


# One per app of a process; building them takes as long as ten small requests.
_made = lru_cache(maxsize=8)(Requests)


def requests_with(metrics: Mapping[str, Metric], max_items: int = MAX_ITEMS) -> Requests:
    """Return the request types for *metrics*; apps with the same ones share them."""
    by_metric = tuple((name, metric.options) for name, metric in metrics.items())
    default = tuple(name for name, metric in metrics.items() if metric.default)
    asking = [name for m in metrics.values() if m.style for name in (m.style_of().name, m.name, *m.styles)]
    return _made(by_metric, default, tuple(dict.fromkeys(asking)), max_items)
