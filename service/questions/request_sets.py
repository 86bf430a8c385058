"""Question sets in requests: sent along, or named by id."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    StringConstraints,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from service.core.fields import (
    CLEAN_PATTERN,
    FILLED_PATTERN,
    WHOLE,
    Strict,
    branch,
    clean,
    filled,
    schema_keywords,
)
from service.questions.sets import MAX_CHARACTERS, MAX_CHOICES, MAX_ID, MAX_QUESTIONS, Question, check

QuestionId = Annotated[int, Field(ge=1, le=MAX_ID), WHOLE]
Parent = Annotated[int, Field(ge=0, le=MAX_ID), WHOLE]  # 0 means that a question has no parent
QuestionText = Annotated[
    str,
    StringConstraints(max_length=MAX_CHARACTERS),
    AfterValidator(filled),
    schema_keywords(pattern=FILLED_PATTERN, minLength=1),
]
QuestionKind = Annotated[
    str, StringConstraints(max_length=100), AfterValidator(clean), schema_keywords(pattern=CLEAN_PATTERN)
]
Phrase = Annotated[
    str,
    StringConstraints(max_length=MAX_CHARACTERS),
    AfterValidator(clean),
    schema_keywords(pattern=CLEAN_PATTERN),
]


class GivenQuestion(Strict):
    """One question of a set that is sent along."""

    id: QuestionId
    text: QuestionText
    kind: QuestionKind = ""
    phrase: Phrase = ""
    depends_on: list[Parent] = Field([], max_length=MAX_QUESTIONS, fail_fast=True)
    expected: str

    def question(self) -> Question:
        """Convert to the type of question sets."""
        parents, choices = tuple(filter(None, self.depends_on)), tuple(getattr(self, "choices", ()))
        return Question(self.id, self.text, self.kind, parents, self.expected, choices, self.phrase)


class YesNoQuestion(GivenQuestion):
    """A yes-no question."""

    expected: Literal["yes"] = "yes"


class ChoiceQuestion(GivenQuestion):
    """A question with choices, one of which is expected."""

    expected: QuestionText
    choices: list[QuestionText] = Field(min_length=2, max_length=MAX_CHOICES, fail_fast=True)


class AnswerQuestion(GivenQuestion):
    """A question with an expected answer, and optional choices."""

    expected: QuestionText
    choices: list[QuestionText] = Field([], max_length=MAX_CHOICES, fail_fast=True)


class CheckedQuestions(list[GivenQuestion]):
    """Questions that passed the check of the set, done once even if many items share them."""


def check_set(questions: Any, validate: ValidatorFunctionWrapHandler) -> CheckedQuestions:
    """Refuse repeated ids or texts, unknown parents, cycles and an expected answer that is no choice."""
    if isinstance(questions, CheckedQuestions):
        return questions
    checked = CheckedQuestions(validate(questions))
    check([question.question() for question in checked])
    return checked


def form(value: Any) -> str:
    """Return the branch of the schema: a list of questions or an id."""
    return "<questions>" if isinstance(value, list) else "<id>"


Bounds = Field(min_length=1, max_length=MAX_QUESTIONS, fail_fast=True)
SetId = Annotated[
    Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")],
    branch("<id>"),
]
YesNoSet = Annotated[
    SetId
    | Annotated[Annotated[list[YesNoQuestion], Bounds, WrapValidator(check_set)], branch("<questions>")],
    Discriminator(form),
]
ChoiceSet = Annotated[
    SetId
    | Annotated[Annotated[list[ChoiceQuestion], Bounds, WrapValidator(check_set)], branch("<questions>")],
    Discriminator(form),
]
AnswerSet = Annotated[
    SetId
    | Annotated[Annotated[list[AnswerQuestion], Bounds, WrapValidator(check_set)], branch("<questions>")],
    Discriminator(form),
]
