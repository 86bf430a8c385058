"""
Wire types of requests: shapes and limits, and options, of which an item's override those of its request.

Everything here is checked in a request's JSON alone; `service.images.loader` reads the content of images.
Types that depend on metrics are made from their declarations.  The JSON schema holds what generators of
clients can read; rules between fields are descriptions there, and are checked here.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    GetPydanticSchema,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError, core_schema, to_jsonable_python

from service.core.fields import (
    CLEAN_PATTERN,
    WHOLE,
    Name,
    Orient,
    Prompt,
    Strict,
    branch,
    clean,
    schema_keywords,
)
from service.core.settings.sections import MAX_TIMEOUT_MS
from service.images.frames import MAX_FILES, MAX_FPS
from service.images.loader import Base64
from service.metrics.common.contract import MAX_REFERENCES, MetricOptions

MAX_ITEMS = 128  # the default of the settings
MAX_RANKED = 64  # pictures of a ranking
MAX_ENTRY_FAULTS = 1_000  # faults of the entries of a list
FAULT_COUNT_KEY = "faults"  # the key of a validation's context that counts the faults of a list's entries

# A text that only its source holds, which frees it after decoding.
Base64Text = Annotated[
    Base64,
    GetPydanticSchema(
        lambda _source, _handler: core_schema.no_info_after_validator_function(
            Base64, core_schema.str_schema(strict=True)
        )
    ),
]


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


def options_of(options: Options, metrics: Sequence[str]) -> dict[str, MetricOptions]:
    """Return the options of each requested metric; an output's are by default those of its metric."""
    given = options.model_fields_set
    return {
        name: getattr(options, whole if name not in given and whole in given else name)
        for name in metrics
        if name in type(options).model_fields and (whole := name.partition(".")[0])
    }


class ImageData(Strict):
    """
    A picture as base64, or as a `data:` URI that holds base64.

    Attributes:
        data: base64 in the standard alphabet, with padding and without line breaks, or a `data:` URI.
    """

    data: Base64Text


class ImagePart(Strict):
    """
    A picture in a file part of the same multipart body.

    Attributes:
        part: the name of the file part.
    """

    part: Annotated[str, StringConstraints(min_length=1, max_length=256)]


class ImageUrl(Strict):
    """
    A picture that the server downloads, if the operator allows it.

    Attributes:
        url: `http` or `https`, of a host that the operator lists.
    """

    url: Annotated[str, StringConstraints(min_length=1, max_length=4096)]


def image_form(value: Any) -> str:
    """Return the form of an image, so that errors are about that form alone."""
    if isinstance(value, str):
        return "<base64>"
    if isinstance(value, dict):
        return next((f"<{key}>" for key in ("part", "url") if key in value), "<data>")
    return "<frames>" if isinstance(value, list) else "<data>"


SingleImage = Annotated[
    Annotated[Base64Text, branch("<base64>")]
    | Annotated[ImageData, branch("<data>")]
    | Annotated[ImagePart, branch("<part>")]
    | Annotated[ImageUrl, branch("<url>")],
    Discriminator(image_form),
]
References = Annotated[list[SingleImage], Field(max_length=MAX_REFERENCES, fail_fast=True)]
FrameList = Annotated[list[SingleImage], Field(min_length=1, max_length=MAX_FILES, fail_fast=True)]
WireImage = Annotated[
    Annotated[Base64Text, branch("<base64>")]
    | Annotated[ImageData, branch("<data>")]
    | Annotated[ImagePart, branch("<part>")]
    | Annotated[ImageUrl, branch("<url>")]
    | Annotated[FrameList, branch("<frames>")],
    Discriminator(image_form),
]


def listed(entry: Any, most: int, least: int = 1) -> Any:
    """Build the type of a list of *least* to *most* entries; a longer one is refused without reading it."""

    def counted(values: Any) -> Any:
        if isinstance(values, list) and len(values) > most:
            message = "has {given} entries; at most {most} are allowed"
            raise PydanticCustomError("too_many_items", message, {"given": len(values), "most": most})
        return values

    checked = Annotated[entry, WrapValidator(unless_enough_is_wrong)]
    return Annotated[
        list[checked], Field(min_length=least), BeforeValidator(counted), schema_keywords(maxItems=most)
    ]


def unless_enough_is_wrong(entry: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Check an entry, unless earlier ones have enough faults: a problem names 20 and counts the rest."""
    found = info.context if info.context is not None else {}
    if found.get(FAULT_COUNT_KEY, 0) >= MAX_ENTRY_FAULTS:
        return entry
    try:
        return check(entry)
    except ValidationError as exc:
        found[FAULT_COUNT_KEY] = found.get(FAULT_COUNT_KEY, 0) + exc.error_count()
        raise


Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=MAX_FPS)]  # frames a second


class Clipped(Strict):
    """The part of videos and animations that is scored; by default 16 frames of the whole video."""

    start: Seconds | None = Field(None, description="Where the scored part of a video begins, in seconds.")
    end: Annotated[Seconds, Field(gt=0)] | None = Field(None, description="Where it ends, in seconds.")
    fps: Rate | None = Field(None, description="Frames that are taken from each second.")

    @field_validator("end")
    @classmethod
    def _after_the_start(cls, end: float | None, info: ValidationInfo) -> float | None:
        if end is not None and end <= (info.data.get("start") or 0):
            raise ValueError("is not after start")
        return end


def shared(default: BaseModel) -> Any:
    """Return a field whose default is *default* itself.  Pydantic copies a default that cannot be hashed."""
    shown = to_jsonable_python(default.model_dump())  # without digests, which are not among the names
    return Field(default_factory=lambda: default, json_schema_extra={"default": shown})


def different(names: list[str]) -> list[str]:
    """Refuse duplicate names."""
    if len(set(names)) < len(names):
        raise ValueError("contains a name twice")
    return names


ItemId = Annotated[
    str, StringConstraints(max_length=256), AfterValidator(clean), schema_keywords(pattern=CLEAN_PATTERN)
]
TIMEOUT = (
    "Time for the request; by default the header `X-Request-Timeout-Ms`, else `server.default_timeout_ms`."
)
Timeout = Annotated[int, Field(ge=1, le=MAX_TIMEOUT_MS, description=TIMEOUT), WHOLE]
# The default is `interactive`, unless the key may not use it.
Priority = Annotated[
    Literal["interactive", "bulk"] | None,
    Field(description="The lane; the default of a key for bulk alone is `bulk`."),
    schema_keywords(default="interactive"),
]
RankedCount = Annotated[int, Field(ge=1, le=MAX_RANKED), WHOLE]


class WireItem(Clipped):
    """
    One picture with its prompt, which metrics that read none do not need (`reads_prompt` in `GET /models`).

    Its options, `metrics`, `required`, `orient`, `start`, `end` and `fps` override those of the request.

    Attributes:
        id: returned with the result.
        prompt: used exactly as sent; white space alone, NUL and lone surrogates are rejected.
        image: one picture or video, or a list of pictures, which are frames of one scene.
        metrics: in place of those of the request: only these are computed, cached and charged.
        required: without a score by these metrics the result is not `usable`.
        options: over those of the request, option by option.
        orient: the pixels of pictures as stored, or rotated as their EXIF data says.
        references: pictures that it is compared with, for metrics that use them: see `uses` in `GET /models`.
        source: the picture before an edit, likewise.
    """

    id: ItemId | None = None
    prompt: Prompt | None = None
    image: WireImage
    metrics: list[Name] | None = None
    required: list[Name] | None = None
    options: Options | None = None
    orient: Orient | None = None
    references: References | None = None
    source: SingleImage | None = None


def one_form(body: Any) -> Any:
    """Return a body of items, or of an image or images; raise `ValueError` for several of these or none."""
    forms = [body.items, body.image, body.images]
    if sum(form is not None for form in forms) != 1 or (body.prompt and body.items is not None):
        raise ValueError("give either items, or image or images with prompt")
    if body.image is None and any(each is not None for each in (body.id, body.references, body.source)):
        raise ValueError("id, references and source belong to an item, or to an image alone")
    return body


class ScoreRequest(Clipped):
    """
    Body of `POST /score`: `items`, or an `image` or many `images`, with one `prompt`.

    An `image` with its `prompt` is one item, and may have an item's `id`, `references` and `source`.

    Attributes:
        items: pictures with their prompts, in place of the fields of a single one.
        images: many pictures of one prompt.
        id, image, references, source: as of an item.
        prompt: of the picture or of all pictures.
        options: of the metrics, for all items; an item's own override them.
        metrics: which scores to compute.
        required: the metrics without which an item is of no use.
        orient: the pixels of pictures as stored, or rotated as their EXIF data says; by default
            `images.orient`.
        explain: whether to return `details`.
    """

    options: Options = Options()  # the items' own options override these, so they are read later
    items: list[WireItem] | None = None
    id: ItemId | None = None
    prompt: Prompt | None = None
    image: WireImage | None = None
    images: list[WireImage] | None = None
    references: References | None = None
    source: SingleImage | None = None
    metrics: list[Name]
    required: list[Name] | None = None
    orient: Orient | None = None
    priority: Priority = None
    timeout_ms: Timeout | None = None
    explain: bool = False

    _one_form = model_validator(mode="after")(one_form)

    def asked(self) -> dict[str, str]:
        """Return the metrics that score an item, by their place in the request."""
        items = self.items or ()
        own = {
            f"/items/{index}/metrics/{number}": name
            for index, item in enumerate(items)
            for number, name in enumerate(item.metrics or ())
        }
        if items and all(item.metrics for item in items):
            return own
        return {f"/metrics/{number}": name for number, name in enumerate(self.metrics)} | own


class WireCascade(Strict):
    """
    A cheap metric that orders all pictures, and how many of the best go on.

    Attributes:
        metric: the cheap one.
        keep: pictures that the metric of the ranking scores.
    """

    metric: Name
    keep: RankedCount


class RankRequest(Clipped):
    """
    Body of `POST /rank`: pictures for one prompt, and how to order and accept them.

    Metrics that read no prompt need none.
    `on_deadline: "cheap"` needs a cascade, whose metric is not the ranking's.

    Attributes:
        metric: orders the pictures, and decides which are accepted.
        top_k: most pictures that are accepted; by default all.
        threshold: the score that an accepted picture has at least, or at most if lower is better.
        cascade: orders all pictures first, so that only the best of them are scored by `metric`.
        on_error: of a picture without a score: reject the request, accept the picture, or do not.
        on_deadline: what decides when the time is over: an error, or the metric of the cascade.
        options: of the metric, and of that of the cascade.
        orient: the pixels of pictures as stored, or rotated as their EXIF data says.
        explain: whether to return `details`.
        prompt: of all pictures.
        images: the pictures to order.
    """

    options: Options = Options()
    prompt: Prompt | None = None
    images: list[WireImage]
    metric: Name
    top_k: RankedCount | None = None
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
    """
    Body of `POST /questions`.

    Attributes:
        style: the name of a metric, or a style of the profile; `soft_tifa` uses the sets of `tifa`.
        options: those of the metrics that affect how a set is written: `dsg.generation`, `tifa.verify` and
            `skills.singular`.
        prompts: those that need a set.
    """

    prompts: list[Prompt]
    style: str
    options: Options = Options()
    priority: Priority = None
    timeout_ms: Timeout | None = None
