"""
Wire types of requests: shapes and limits, nothing else.

Everything here is told from a request's JSON alone; an image's content is looked at later, by
`inputs`.  Strict: a number in a string is refused, and so is an unknown field.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from service.questions.sets import MOST_CHARACTERS, MOST_QUESTIONS, Question, check
from service.settings import LONGEST_TIMEOUT_MS

MAX_PROMPT = 4000  # characters
MAX_FRAMES = 64
MAX_FIELDS = 16  # of one object; none of ours has as many

# Names of a union's branches.  Pydantic puts them into an error's place; `problems` takes them out.
BRANCHES = frozenset({"<base64>", "<data>", "<part>", "<url>", "<frames>", "<id>", "<questions>"})

T = TypeVar("T")


class Wire(BaseModel):
    """Base of all wire types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        """One error for a heap of unknown fields instead of one for each."""
        if isinstance(value, dict) and len(value) > MAX_FIELDS:
            raise PydanticCustomError("too_many_fields", "holds unknown fields, and more than will be named")
        return value


def clean(text: str) -> str:
    """Refuse NUL, as pydantic does lone surrogates; everything else is kept byte for byte."""
    if "\0" in text:
        raise ValueError("holds a NUL character")
    return text


def counted(values: Any, info: ValidationInfo) -> Any:
    """Refuse more than the server's `max_items` before looking at any of them."""
    most = (info.context or {}).get("max_items")
    if most is not None and isinstance(values, list) and len(values) > most:
        message = "{given} of them; at most {most}"
        raise PydanticCustomError("too_many_items", message, {"given": len(values), "most": most})
    return values


def different(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("names one twice")
    return names


def said(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return clean(text)


Text = Annotated[str, StringConstraints(max_length=MAX_PROMPT), AfterValidator(clean)]
Name = Annotated[str, StringConstraints(max_length=64), AfterValidator(clean)]
Prompt = Annotated[str, StringConstraints(max_length=MAX_PROMPT), AfterValidator(said)]
Timeout = Annotated[int, Field(ge=1, le=LONGEST_TIMEOUT_MS)]
Counted = Annotated[list[T], Field(min_length=1), BeforeValidator(counted)]


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
        return "<base64>"
    if isinstance(value, dict):
        return next((f"<{key}>" for key in ("part", "url") if key in value), "<data>")
    return "<frames>" if isinstance(value, list) else "<data>"


Picture = Annotated[
    Annotated[str, Tag("<base64>")]
    | Annotated[ImageData, Tag("<data>")]
    | Annotated[ImagePart, Tag("<part>")]
    | Annotated[ImageUrl, Tag("<url>")],
    Discriminator(image_form),
]
Frames = Annotated[list[Picture], Field(min_length=1, max_length=MAX_FRAMES, fail_fast=True)]
WireImage = Annotated[
    Annotated[str, Tag("<base64>")]
    | Annotated[ImageData, Tag("<data>")]
    | Annotated[ImagePart, Tag("<part>")]
    | Annotated[ImageUrl, Tag("<url>")]
    | Annotated[Frames, Tag("<frames>")],
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
    text: Annotated[str, StringConstraints(max_length=MOST_CHARACTERS), AfterValidator(said)]
    kind: Annotated[str, StringConstraints(max_length=100), AfterValidator(clean)] = ""
    depends_on: Annotated[list[int], Field(max_length=MOST_QUESTIONS)] = []
    expected: Literal["yes"] = "yes"

    def question(self) -> Question:
        """As the metrics take it."""
        return Question(self.id, self.text, self.kind, tuple(self.depends_on), self.expected)


def sound(questions: list[WireQuestion]) -> list[WireQuestion]:
    """Refuse repeated ids, unknown parents, cycles and twins."""
    check([question.question() for question in questions])
    return questions


def slotted(template: str) -> str:
    if template.count("{}") != 1:
        raise ValueError("must hold {} exactly once, where the text goes")
    return template


Template = Annotated[Prompt, AfterValidator(slotted)]


class VqaScoreOptions(Wire):
    """Options of `vqascore`."""

    question: Template | None = None
    answer: Prompt = "Yes"
    output: Literal["probability", "logit"] = "probability"
    normalization: Literal["reference", "product", "first_token"] = "reference"
    frames: Literal["mean"] = "mean"


class ClipScoreOptions(Wire):
    """Options of `clipscore`."""

    scale: Literal["cosine", "hessel"] = "cosine"
    frames: Literal["mean"] = "mean"


class PickScoreOptions(Wire):
    """Options of `pickscore`."""

    scale: Literal["cosine", "logit"] = "cosine"
    frames: Literal["mean"] = "mean"


class HpsV2Options(Wire):
    """Options of `hpsv2`."""

    frames: Literal["mean"] = "mean"


def set_form(value: Any) -> str:
    """Whether a question set is named or brought along."""
    return "<questions>" if isinstance(value, list) else "<id>"


SetId = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
OwnQuestions = Annotated[
    list[WireQuestion], Field(min_length=1, max_length=MOST_QUESTIONS), AfterValidator(sound)
]


class DsgOptions(Wire):
    """Options of `dsg`."""

    dependencies: Literal["direct", "transitive", "none"] = "direct"
    question: Template = "{} Please answer yes or no."
    question_set: (
        Annotated[
            Annotated[SetId, Tag("<id>")] | Annotated[OwnQuestions, Tag("<questions>")],
            Discriminator(set_form),
        ]
        | None
    ) = None
    frames: Literal["mean"] = "mean"


class Options(Wire):
    """Options by metric."""

    vqascore: VqaScoreOptions = VqaScoreOptions()
    clipscore: ClipScoreOptions = ClipScoreOptions()
    dsg: DsgOptions = DsgOptions()
    pickscore: PickScoreOptions = PickScoreOptions()
    hpsv2: HpsV2Options = HpsV2Options()


class ScoreRequest(Wire):
    """Body of `POST /score`: items, or one prompt with many images."""

    items: Counted[WireItem] | None = None
    prompt: Prompt | None = None
    images: Counted[WireImage] | None = None
    metrics: Annotated[
        list[Name], Field(min_length=1, max_length=len(Options.model_fields)), AfterValidator(different)
    ] = ["vqascore"]
    options: Options = Options()
    priority: Literal["interactive", "bulk"] = "interactive"
    timeout_ms: Timeout | None = None
    explain: bool = False

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        short = self.prompt is not None and self.images is not None
        if (self.prompt is None) != (self.images is None) or short == (self.items is not None):
            raise ValueError("give either items, or prompt with images")
        return self

    def all_items(self) -> Sequence[WireItem]:
        """The items, whichever form they came in."""
        if self.items is not None:
            return self.items
        return [
            WireItem.model_construct(prompt=self.prompt or "", image=image, id=None)
            for image in self.images or ()
        ]


class QuestionsRequest(Wire):
    """Body of `POST /questions`."""

    prompts: Counted[Prompt]
    style: Literal["dsg"] = "dsg"
    timeout_ms: Timeout | None = None
