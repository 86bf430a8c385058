"""
Wire types of requests: shapes and limits, nothing else.

Everything here is told from a request's JSON alone; an image's content is looked at later, by
`service.items`.  What depends on the metrics there are is made from their declarations.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from service.fields import Name, Prompt, Strict, clean
from service.http.images import WireImage
from service.metrics.contract import Metric
from service.settings.sections import MAX_TIMEOUT_MS

T = TypeVar("T")


def counted(values: Any, info: ValidationInfo) -> Any:
    """Refuse more than the server's `max_items` before looking at any of them."""
    most = (info.context or {}).get("max_items")
    if most is not None and isinstance(values, list) and len(values) > most:
        message = "{given} of them; at most {most}"
        raise PydanticCustomError("too_many_items", message, {"given": len(values), "most": most})
    return values


def different(names: list[str]) -> list[str]:
    """Refuse a name that stands there twice."""
    if len(set(names)) < len(names):
        raise ValueError("names one twice")
    return names


Counted = Annotated[list[T], Field(min_length=1), BeforeValidator(counted)]
Names = Annotated[list[Name], Field(min_length=1), AfterValidator(different)]
Timeout = Annotated[int, Field(ge=1, le=MAX_TIMEOUT_MS)]


class WireItem(Strict):
    """One image with the prompt it is judged against."""

    id: Annotated[str, StringConstraints(max_length=256), AfterValidator(clean)] | None = None
    prompt: Prompt
    image: WireImage


class Options(Strict):
    """Options by metric; a field for each metric there is."""


class ScoreRequest(Strict):
    """Body of `POST /score`: items, or one prompt with many images."""

    items: Counted[WireItem] | None = None
    prompt: Prompt | None = None
    images: Counted[WireImage] | None = None
    metrics: Names
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


class QuestionsRequest(Strict):
    """Body of `POST /questions`."""

    prompts: Counted[Prompt]
    style: str
    timeout_ms: Timeout | None = None


class Requests:
    """
    The requests that can be made where there are these *metrics*.

    Attributes:
        score: `ScoreRequest` with an options field for each metric.
        questions: `QuestionsRequest` with the styles of question sets that metrics ask for.
    """

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        fields: dict[str, Any] = {name: (m.options, m.options()) for name, m in metrics.items()}
        options = create_model("Options", __base__=Options, __doc__=Options.__doc__, **fields)
        names = Annotated[Names, Field(max_length=len(metrics))]
        default = [name for name, metric in metrics.items() if metric.default]
        styles = tuple(dict.fromkeys(m.style.name for m in metrics.values() if m.style))
        style: Any = Literal[styles]
        self.score: type[ScoreRequest] = create_model(
            "ScoreRequest",
            __base__=ScoreRequest,
            __doc__=ScoreRequest.__doc__,
            metrics=(names, default),
            options=(options, options()),
        )
        self.questions: type[QuestionsRequest] = create_model(
            "QuestionsRequest",
            __base__=QuestionsRequest,
            __doc__=QuestionsRequest.__doc__,
            style=(style, styles[0]),
        )
