"""VQ²'s pairs (Yarom et al. 2023): spans of the prompt, each with a question that it answers."""

from service.questions.sets import Question
from service.questions.style import AnswerParser, Style
from service.questions.styles.reading import STRING, entries, instructions, schema, text

SCHEMA = schema("pairs", answer=STRING, question=STRING)


def parse(answer: str) -> tuple[Question, ...]:
    """Parse an answer that follows `SCHEMA`; the expected answer of each question is its span."""
    return tuple(
        Question(id, text(entry["question"]), expected=text(entry["answer"]), phrase=text(entry["answer"]))
        for id, entry in enumerate(entries(answer, "pairs"), 1)
    )


VQ2 = Style("vq2", instructions("vq2"), SCHEMA, parse)

parser = AnswerParser.of(VQ2)
