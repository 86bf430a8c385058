"""DSG's questions by the prompts of its released code (j-min/DSG): three calls that are answered in lines."""

from service.questions.parser import Parser, Texts
from service.questions.sets import Question
from service.questions.style import Ask
from service.questions.styles.completion import CompletionStyle, before, numbered
from service.questions.styles.dsg import DSG

TUPLES, QUESTIONS, DEPENDENCIES = "tuples", "questions", "dependencies"
ALONE = "input: {prompt}\noutput: "
WITH_TUPLES = "input: {prompt}\n{written}\noutput: "


class DsgLines(CompletionStyle):
    """Tuples first, then a question and the parents of each; the lines of tuples are sent back unchanged."""

    async def write(self, ask: Ask, prompt: str) -> tuple[Question, ...]:
        """Return the questions about *prompt*.  Raises the errors of *ask*, and `ValueError`."""
        listed = before(await ask(self.step(TUPLES, prompt)), "input:")
        if not listed:
            return ()
        tuples = numbered(listed)
        asked, related = [
            numbered(before(await ask(self.step(name, prompt, listed)), "input:"), [*tuples])
            for name in (QUESTIONS, DEPENDENCIES)
        ]
        return tuple(
            Question(id, asked[id], content.partition("(")[0].strip(), parents(related[id]))
            for id, content in tuples.items()
        )


def parents(listed: str) -> tuple[int, ...]:
    """Parse "1, 2"; 0 means none, and words are dropped, as in the released code."""
    ids = (part.strip() for part in listed.split(","))
    return tuple(dict.fromkeys(int(id) for id in ids if id.isdecimal() and int(id)))


def dsg_lines(name: str, texts: Texts) -> DsgLines:
    """Return the style with these texts before the prompt."""
    endings = {TUPLES: ALONE, QUESTIONS: WITH_TUPLES, DEPENDENCIES: WITH_TUPLES}
    return DsgLines(name, "", {}, lambda answer: (), texts=texts, endings=endings)


parser = Parser("dsg_lines", DSG, dsg_lines, (TUPLES, QUESTIONS, DEPENDENCIES))
