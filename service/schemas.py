"""
Wire types of requests: shapes and limits, nothing else.

Everything here is told from a request's JSON alone; an image's content is looked at later, by
`inputs`.  Strict: a number in a string is refused, and so is an unknown field.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

METRICS = ("vqascore", "clipscore", "dsg")
MAX_PROMPT = 4000  # characters
MAX_FRAMES = 64


class Wire(BaseModel):
    """Base of all wire types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def clean(text: str) -> str:
    """Refuse what no later stage can hold; everything else is kept byte for byte."""
    if "\0" in text:
        raise ValueError("holds a NUL character")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("holds a lone surrogate, which is no character")
    return text


def said(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return clean(text)


Text = Annotated[str, StringConstraints(max_length=MAX_PROMPT), AfterValidator(clean)]
Prompt = Annotated[str, StringConstraints(max_length=MAX_PROMPT), AfterValidator(said)]


class ImageData(Wire):
    """An image as base64, or as a `data:` URI that holds base64."""

    data: str


class ImagePart(Wire):
    """An image in a file part of the same multipart body."""

    part: Annotated[str, StringConstraints(min_length=1, max_length=256)]


class ImageUrl(Wire):
    """An image to be fetched, where the operator allows it."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=4096)]


def image_form(value: Any) -> str:
    """Which of its forms an image has, so that an error speaks of that form alone."""
    if isinstance(value, str):
        return "base64"
    if isinstance(value, dict | Wire):
        keys = value if isinstance(value, dict) else value.model_fields_set
        return next((key for key in ("part", "url") if key in keys), "data")
    return "frames" if isinstance(value, list) else "data"


Picture = Annotated[
    Annotated[str, Tag("base64")]
    | Annotated[ImageData, Tag("data")]
    | Annotated[ImagePart, Tag("part")]
    | Annotated[ImageUrl, Tag("url")],
    Discriminator(image_form),
]
Frames = Annotated[list[Picture], Field(min_length=1, max_length=MAX_FRAMES)]
WireImage = Annotated[
    Annotated[str, Tag("base64")]
    | Annotated[ImageData, Tag("data")]
    | Annotated[ImagePart, Tag("part")]
    | Annotated[ImageUrl, Tag("url")]
    | Annotated[Frames, Tag("frames")],
    Discriminator(image_form),
]


class WireItem(Wire):
    """One image with the prompt it is judged against."""

    id: Annotated[str, StringConstraints(max_length=256), AfterValidator(clean)] | None = None
    prompt: Prompt
    image: WireImage


class WireQuestion(Wire):
    """One question of a set that the caller brings along."""

    id: Annotated[int, Field(ge=1)]
    text: Annotated[str, StringConstraints(max_length=1000), AfterValidator(said)]
    kind: Annotated[str, StringConstraints(max_length=100), AfterValidator(clean)] = ""
    depends_on: list[int] = []
    expected: Literal["yes"] = "yes"


def slotted(template: str) -> str:
    if template.count("{}") != 1:
        raise ValueError("must hold {} exactly once, where the text goes")
    return template


Template = Annotated[Prompt, AfterValidator(slotted)]


class VqaScoreOptions(Wire):
    """Options of `vqascore`."""

    question: Template = 'Does this figure show "{}"? Please answer yes or no.'
    answer: Prompt = "Yes"
    output: Literal["probability", "logit"] = "probability"
    normalization: Literal["mean", "product", "first_token"] = "mean"
    frames: Literal["mean"] = "mean"


class ClipScoreOptions(Wire):
    """Options of `clipscore`."""

    scale: Literal["cosine", "hessel"] = "cosine"
    frames: Literal["mean"] = "mean"


class DsgOptions(Wire):
    """Options of `dsg`."""

    dependencies: Literal["direct", "transitive", "none"] = "direct"
    question: Template = "{} Please answer yes or no."
    question_set: (
        Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
        | Annotated[list[WireQuestion], Field(min_length=1, max_length=64)]
        | None
    ) = None
    frames: Literal["mean"] = "mean"


class Options(Wire):
    """Options by metric."""

    vqascore: VqaScoreOptions = VqaScoreOptions()
    clipscore: ClipScoreOptions = ClipScoreOptions()
    dsg: DsgOptions = DsgOptions()


class ScoreRequest(Wire):
    """Body of `POST /score`: items, or one prompt with many images."""

    items: Annotated[list[WireItem], Field(min_length=1)] | None = None
    prompt: Prompt | None = None
    images: Annotated[list[WireImage], Field(min_length=1)] | None = None
    metrics: Annotated[list[str], Field(min_length=1, max_length=len(METRICS))] = ["vqascore"]
    options: Options = Options()
    priority: Literal["interactive", "bulk"] = "interactive"
    timeout_ms: Annotated[int, Field(ge=1, le=600_000)] | None = None
    explain: bool = False

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        short = self.prompt is not None and self.images is not None
        if (self.prompt is None) != (self.images is None) or short == (self.items is not None):
            raise ValueError("give either items, or prompt with images")
        if len(set(self.metrics)) < len(self.metrics):
            raise ValueError("metrics names one twice")
        return self

    def all_items(self) -> Sequence[WireItem]:
        """The items, whichever form they came in."""
        if self.items is not None:
            return self.items
        return [
            WireItem.model_construct(prompt=self.prompt, image=image, id=None) for image in self.images or ()
        ]


class QuestionsRequest(Wire):
    """Body of `POST /questions`."""

    prompts: Annotated[list[Prompt], Field(min_length=1)]
    style: Literal["dsg"] = "dsg"
    timeout_ms: Annotated[int, Field(ge=1, le=600_000)] | None = None
