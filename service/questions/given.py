"""Question sets that callers send along or name by id."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, StringConstraints

from service.fields import Strict, branch, clean, filled
from service.questions.sets import MAX_CHARACTERS, MAX_QUESTIONS, Question, check


class YesNoQuestion(Strict):
    """One question of a set that the caller sends along, answered by yes or no."""

    id: Annotated[int, Field(ge=1)]
    text: Annotated[str, StringConstraints(max_length=MAX_CHARACTERS), AfterValidator(filled)]
    kind: Annotated[str, StringConstraints(max_length=100), AfterValidator(clean)] = ""
    depends_on: list[int] = Field([], max_length=MAX_QUESTIONS)
    expected: Literal["yes"] = "yes"

    def question(self) -> Question:
        """As metrics take it."""
        return Question(self.id, self.text, self.kind, tuple(self.depends_on), self.expected)


def sound(questions: list[YesNoQuestion]) -> list[YesNoQuestion]:
    """Refuse repeated ids or texts, unknown parents and cycles."""
    check([question.question() for question in questions])
    return questions


def form(value: Any) -> str:
    """Whether a question set is sent along or named."""
    return "<questions>" if isinstance(value, list) else "<id>"


SetId = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
OwnQuestions = Annotated[
    list[YesNoQuestion], Field(min_length=1, max_length=MAX_QUESTIONS), AfterValidator(sound)
]
GivenSet = Annotated[
    Annotated[SetId, branch("<id>")] | Annotated[OwnQuestions, branch("<questions>")], Discriminator(form)
]
