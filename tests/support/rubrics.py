"""The rubrics of the service, as a model reads them, and a rubric of several calls."""

from service.metrics.rubrics.options import RUBRICS

LETTERS = {"1-5": False, "A-E": True}
VALUES = {
    labels: {
        symbol: int(answer)
        for symbol, answer in RUBRICS["aesthetics"].numbers["grade"].symbols(letters).items()
    }
    for labels, letters in LETTERS.items()
}

TWO_CALLS = """
score = "sqrt(min(sc1, sc2) * min(pq1, pq2))"
retries = 1

[[calls]]
instructions = 'The picture {source} was changed: "{prompt}" ({data.group}). Grade picture {candidate}.'
images = ["source", "candidate"]
captions = { source = "Before:" }

[calls.outputs.sc1]
range = [0, 10]
meaning = "the success of the change"
[calls.outputs.sc2]
range = [0, 10]
[calls.outputs.why]
kind = "text"

[[calls]]
instructions = "How natural is the picture?"
answer = "lines"
[calls.outputs.pq1]
range = [0, 10]
title = "Natural look"
[calls.outputs.pq2]
range = [0, 10]
"""


def question(name: str, prompt: str, labels: str) -> str:
    """The text of the only call of a rubric of the service."""
    [call] = RUBRICS[name].calls
    return call.text(call.instructions.strip().replace("{prompt}", prompt), LETTERS[labels])


def grades(name: str) -> list[str]:
    """The meanings of its grades, the worst first."""
    return list(RUBRICS[name].numbers["grade"].grades or ())
