"""Statements about scenes as GenEval's metadata: objects, counts, colours and positions."""

from typing import Any

from demo.training.language import Mention, Statement


def metadata_of(statement: Statement) -> dict[str, Any] | None:
    """
    Return the value of `options.geneval`; None if GenEval cannot express the statement.

    It cannot express that a thing is absent, its size, or two things of one shape.  It counts things by shape
    alone, so for "two red squares" there must not be a third square in blue.
    """
    first, second, number = statement.first, statement.second, statement.number
    if second and first.shape == second.shape:
        return None
    match statement.kind:
        case "presence":
            return {"tag": "colors" if first.colour else "single_object", "include": [clause_of(first)]}
        case "count":
            more = {"class": first.shape, "count": number + 1}
            return {"tag": "counting", "include": [clause_of(first, number)], "exclude": [more]}
        case "binding" if second:
            tag = "color_attr" if first.colour and second.colour else "two_object"
            return {"tag": tag, "include": [clause_of(first), clause_of(second)]}
        case "relation" if second:
            placed = {**clause_of(first), "position": [statement.relation, 0]}
            return {"tag": "position", "include": [clause_of(second), placed]}
    return None


def clause_of(words: Mention, count: int = 1) -> dict[str, Any]:
    """Return a number of things of a shape, optionally of a colour."""
    colour = {"color": words.colour} if words.colour else {}
    return {"class": words.shape, "count": count, **colour}
