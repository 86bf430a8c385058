"""Details of a score for people: questions with answers and probabilities, and other numbers."""

from collections.abc import Mapping
from typing import Any

from scoregate.text import number, shown, table

HEADS = ("ID", "QUESTION", "AFTER", "EXPECTED", "ANSWER", "P", "SCORE", "ZEROED BY")
NUMBERS = ("ID", "P", "SCORE")


def explained(details: Mapping[str, Any]) -> str:
    """Return the questions as a table, a line for each plain value, and the details of parts and frames."""
    parts = []
    questions = details.get("questions")
    if isinstance(questions, list):
        parts.append(table(HEADS, map(question_row, questions), right=NUMBERS))
    for name, value in details.items():
        if isinstance(value, str | int | float | bool):
            parts.append(f"{shown(name)}: {number(value) if isinstance(value, float) else shown(value)}")
    if missed := details.get("uncovered"):
        parts.append(shown(f"no question about: {', '.join(map(str, missed))}"))
    parts += [f"{name}:\n{text}" for name, inner in nested(details).items() if (text := explained(inner))]
    return indented("\n".join(parts))


def nested(details: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the details within *details* by name: of a composite's parts, of frames, of a grid of frames."""
    found = {name: details.get(name) for name in ("details", "grid")}
    if isinstance(parts := details.get("parts"), Mapping):
        found |= parts
    if isinstance(frames := details.get("frames"), list):
        found |= {f"frame {place}": frame for place, frame in enumerate(frames, 1)}
    return {shown(name): inner for name, inner in found.items() if isinstance(inner, Mapping)}


def question_row(question: Mapping[str, Any]) -> list[Any]:
    """Return a question's cells."""
    return [
        question.get("id", ""),
        question.get("text", ""),
        numbers(question.get("depends_on")),
        question.get("expected") or "",
        question.get("answer") or "",
        number(probability(question)),
        number(question.get("score")),
        numbers(question.get("zeroed_by")),
    ]


def numbers(ids: Any) -> str:
    """Return the ids of other questions."""
    return " ".join(map(str, ids or ()))


def probability(question: Mapping[str, Any]) -> float | None:
    """Return the probability of "yes" among yes and no; with choices, that of the answer."""
    found = question.get("probability")
    among = question.get("probabilities")
    if found is None and isinstance(among, Mapping):
        found = among.get(question.get("answer"))
    return found if isinstance(found, int | float) else None


def indented(text: str) -> str:
    """Indent *text* by two columns."""
    return "\n".join(f"  {line}" for line in text.splitlines())
