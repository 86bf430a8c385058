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

from service.core.fields import CLEAN, FILLED, WHOLE, Strict, branch, clean, filled, schema_keywords
from service.questions.sets import MAX_CHARACTERS, MAX_CHOICES, MAX_ID, MAX_QUESTIONS, Question, check

Id = Annotated[int, Field(ge=1, le=MAX_ID), WHOLE]
Text = Annotated[
    str,
    StringConstraints(max_length=MAX_CHARACTERS),
    AfterValidator(filled),
    schema_keywords(pattern=FILLED, minLength=1),
]
Kind = Annotated[
    str, StringConstraints(max_length=100), AfterValidator(clean), schema_keywords(pattern=CLEAN)
]
Phrase = Annotated[
    str, StringConstraints(max_length=MAX_CHARACTERS), AfterValidator(clean), schema_keywords(pattern=CLEAN)
]


class GivenQuestion(Strict):
    """One question of a set that the caller sends along."""

    id: Id
    text: Text
    kind: Kind = ""
    phrase: Phrase = ""
    depends_on: list[Id] = Field([], max_length=MAX_QUESTIONS, fail_fast=True)
    expected: str

    def question(self) -> Question:
        """As metrics take it."""
        parents, choices = tuple(self.depends_on), tuple(getattr(self, "choices", ()))
        return Question(self.id, self.text, self.kind, parents, self.expected, choices, self.phrase)


class YesNoQuestion(GivenQuestion):
    """One that is answered by yes or no."""

    expected: Literal["yes"] = "yes"


class ChoiceQuestion(GivenQuestion):
    """One with choices, of which one is expected."""

    expected: Text
    choices: list[Text] = Field(min_length=2, max_length=MAX_CHOICES, fail_fast=True)


class AnswerQuestion(GivenQuestion):
    """One with an expected answer, and perhaps with choices."""

    expected: Text
    choices: list[Text] = Field([], max_length=MAX_CHOICES, fail_fast=True)


class Sound(list[GivenQuestion]):
    """Questions that were checked together, and need not be again where many items share them."""


def sound(questions: Any, validate: ValidatorFunctionWrapHandler) -> Sound:
    """Refuse repeated ids or texts, unknown parents, cycles and an expected answer that is no choice."""
    if isinstance(questions, Sound):
        return questions
    checked = Sound(validate(questions))
    check([question.question() for question in checked])
    return checked


def form(value: Any) -> str:
    """Whether a question set is sent along or named."""
    return "<questions>" if isinstance(value, list) else "<id>"


Bounds = Field(min_length=1, max_length=MAX_QUESTIONS, fail_fast=True)
SetId = Annotated[
    Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")],
    branch("<id>"),
]
YesNoSet = Annotated[
    SetId | Annotated[Annotated[list[YesNoQuestion], Bounds, WrapValidator(sound)], branch("<questions>")],
    Discriminator(form),
]
ChoiceSet = Annotated[
    SetId | Annotated[Annotated[list[ChoiceQuestion], Bounds, WrapValidator(sound)], branch("<questions>")],
    Discriminator(form),
]
AnswerSet = Annotated[
    SetId | Annotated[Annotated[list[AnswerQuestion], Bounds, WrapValidator(sound)], branch("<questions>")],
    Discriminator(form),
]
