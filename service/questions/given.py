"""Question sets that callers send along or name by id."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    StringConstraints,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from service.fields import CLEAN, FILLED, WHOLE, Strict, branch, clean, filled, told
from service.questions.sets import MAX_CHARACTERS, MAX_ID, MAX_QUESTIONS, Question, check

Id = Annotated[int, Field(ge=1, le=MAX_ID), WHOLE]
Text = Annotated[
    str,
    StringConstraints(max_length=MAX_CHARACTERS),
    AfterValidator(filled),
    told(pattern=FILLED, minLength=1),
]
Kind = Annotated[str, StringConstraints(max_length=100), AfterValidator(clean), told(pattern=CLEAN)]


class YesNoQuestion(Strict):
    """One question of a set that the caller sends along, answered by yes or no."""

    id: Id
    text: Text
    kind: Kind = ""
    depends_on: list[Id] = Field([], max_length=MAX_QUESTIONS)
    expected: Literal["yes"] = "yes"

    def question(self) -> Question:
        """As metrics take it."""
        return Question(self.id, self.text, self.kind, tuple(self.depends_on), self.expected)


class Sound(list[YesNoQuestion]):
    """Questions that were checked together, and need not be again where many items share them."""


def sound(questions: Any, validate: ValidatorFunctionWrapHandler) -> Sound:
    """Refuse repeated ids or texts, unknown parents and cycles."""
    if isinstance(questions, Sound):
        return questions
    checked = Sound(validate(questions))
    check([question.question() for question in checked])
    return checked


def form(value: Any) -> str:
    """Whether a question set is sent along or named."""
    return "<questions>" if isinstance(value, list) else "<id>"


SetId = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
OwnQuestions = Annotated[
    list[YesNoQuestion], Field(min_length=1, max_length=MAX_QUESTIONS), WrapValidator(sound)
]
GivenSet = Annotated[
    Annotated[SetId, branch("<id>")] | Annotated[OwnQuestions, branch("<questions>")], Discriminator(form)
]
