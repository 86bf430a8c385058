"""DSG's questions (Cho et al. 2024, "Davidsonian Scene Graph"): yes or no, each with its parents."""

from typing import Any

from models.core.calls import GenerateCall
from models.families.question_llm import user_message
from service.questions.sets import Question
from service.questions.style import AnswerParser, Ask, Style, Texts, WrittenQuestions
from service.questions.styles.reading import (
    NUMBER,
    NUMBERS,
    STRING,
    CompletionStyle,
    before,
    entries,
    instructions,
    number,
    numbered,
    schema,
    text,
)

INSTRUCTIONS = instructions("dsg")
SCHEMA = schema("questions", id=NUMBER, kind=STRING, text=STRING, depends_on=NUMBERS)


def parse(answer: str) -> tuple[Question, ...]:
    """Parse an answer that follows `SCHEMA`."""
    return tuple(
        Question(
            number(entry["id"]),
            text(entry["text"]),
            text(entry["kind"]),
            tuple(map(number, entry["depends_on"])),
        )
        for entry in entries(answer, "questions")
    )


class InThreeCalls(Style):
    """As in the paper: tuples first, then a question and the parents of each tuple."""

    async def write(self, ask: Ask, prompt: str) -> WrittenQuestions:
        """Return the questions about *prompt*.  Raises the errors of *ask* and the parsers."""
        tuples = {
            number(entry["id"]): text(entry["tuple"])
            for entry in entries(await ask(self._call("tuples", prompt)), "tuples")
        }
        if not tuples:
            return WrittenQuestions()
        listed = "; ".join(f"{id} {content}" for id, content in tuples.items())
        written = await ask(self._call("questions", prompt, listed))
        asked = {number(entry["id"]): text(entry["text"]) for entry in entries(written, "questions")}
        related = await ask(self._call("dependencies", prompt, listed))
        parents = {
            number(entry["id"]): tuple(map(number, entry["depends_on"]))
            for entry in entries(related, "dependencies")
        }
        return WrittenQuestions(
            tuple(
                Question(id, asked[id], content.partition(" (")[0], parents[id])
                for id, content in tuples.items()
            )
        )

    def _call(self, step: str, prompt: str, tuples: str = "") -> GenerateCall:
        user = user_message(f"{self.name} {step}", prompt) + (f"\ntuples: {tuples}" if tuples else "")
        return GenerateCall(instructions(f"dsg_{step}"), user, schema=STEPS[step])

    def identity(self) -> list[Any]:
        """Return everything in the messages of all three calls but the prompt."""
        return [
            [instructions(f"dsg_{step}"), user_message(f"{self.name} {step}", ""), STEPS[step]]
            for step in STEPS
        ]


STEPS = {
    "tuples": schema("tuples", id=NUMBER, tuple=STRING),
    "questions": schema("questions", id=NUMBER, text=STRING),
    "dependencies": schema("dependencies", id=NUMBER, depends_on=NUMBERS),
}

DSG = Style("dsg", INSTRUCTIONS, SCHEMA, parse)
DSG_IN_THREE_CALLS = InThreeCalls("dsg", "", {}, parse)

parser = AnswerParser.of(DSG)

TUPLES, QUESTIONS, DEPENDENCIES = "tuples", "questions", "dependencies"
PROMPT_ALONE = "input: {prompt}\noutput: "
WITH_TUPLES = "input: {prompt}\n{written}\noutput: "


class DsgLines(CompletionStyle):
    """
    The three calls with the prompts of the released code (j-min/DSG), answered in lines.

    The lines of tuples are sent back unchanged.
    """

    async def write(self, ask: Ask, prompt: str) -> WrittenQuestions:
        """Return the questions about *prompt*.  Raises the errors of *ask*, and `ValueError`."""
        listed = before(await ask(self.step(TUPLES, prompt)), "input:")
        if not listed:
            return WrittenQuestions()
        tuples = numbered(listed)
        asked, related = [
            numbered(before(await ask(self.step(name, prompt, listed)), "input:"), [*tuples])
            for name in (QUESTIONS, DEPENDENCIES)
        ]
        return WrittenQuestions(
            tuple(
                Question(id, asked[id], content.partition("(")[0].strip(), parents_of(related[id]))
                for id, content in tuples.items()
            )
        )


def parents_of(listed: str) -> tuple[int, ...]:
    """Parse "1, 2"; 0 means none, and words are dropped, as in the released code."""
    ids = (part.strip() for part in listed.split(","))
    return tuple(dict.fromkeys(int(id) for id in ids if id.isdecimal() and int(id)))


def dsg_lines(name: str, texts: Texts) -> DsgLines:
    """Return the style with these texts before the prompt."""
    endings = {TUPLES: PROMPT_ALONE, QUESTIONS: WITH_TUPLES, DEPENDENCIES: WITH_TUPLES}
    return DsgLines(name, "", {}, lambda answer: (), texts=texts, endings=endings)


lines_parser = AnswerParser("dsg_lines", DSG, dsg_lines, (TUPLES, QUESTIONS, DEPENDENCIES))
