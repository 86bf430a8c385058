"""
The expected answer of the demo question LLM in each style of questions, for one statement.

Every function returns the entries of the answer's only list, in the form of the style's schema in
`service/questions/styles`.
"""

from collections.abc import Callable
from typing import Any

from demo.training.facts import exactly_one, facts, mentions, open_question
from demo.training.language import Mention, Question, Statement, scene_graph

Entries = list[dict[str, Any]]

YES_NO = ("yes", "no")
TIFA_TYPES = {
    "entity - whole": "shape",
    "attribute - color": "color",
    "attribute - size": "attribute",
    "other - count": "counting",
    "relation - spatial": "spatial",
    "other - absence": "other",
}
KEYWORD_TYPES = {
    "entity - whole": "entity",
    "attribute - color": "attribute - color",
    "attribute - size": "attribute - size",
    "other - count": "attribute - count",
    "relation - spatial": "relation - spatial",
    "other - absence": "negation",
}
SKILLS = {  # skill, subskill, type of the node
    "entity - whole": ("entities", "object", "presence"),
    "attribute - color": ("attributes", "color", "property"),
    "attribute - size": ("attributes", "size", "property"),
    "other - count": ("attributes", "count", "property"),
    "relation - spatial": ("spatial_arrangement", "position", "relation"),
    "other - absence": ("language_complexity", "negation", "presence"),
}


def dsg(statement: Statement) -> Entries:
    """Return the scene graph in one call."""
    return [
        {"id": q.id, "kind": q.kind, "text": q.text, "depends_on": list(q.depends_on)}
        for q in scene_graph(statement)
    ]


def dsg_tuples(statement: Statement) -> Entries:
    """Return DSG's first call of three: the tuples."""
    return [{"id": q.id, "tuple": f"{q.kind} ({arguments(q)})"} for q in scene_graph(statement)]


def arguments(question: Question) -> str:
    """Return a tuple's arguments: "circle", "circle, red", "red circle, blue square, left of"."""
    asks = question.asks
    if asks.kind == "negation":
        return asks.first.words
    if asks.kind == "count":
        return f"{asks.first.plural(asks.number)}, =={asks.number}"
    if asks.second is not None:
        return f"{asks.first.words}, {asks.second.words}, {asks.relation}"
    if asks.kind == "size":
        return f"{Mention(asks.first.shape, asks.first.colour).words}, {asks.first.size}"
    return ", ".join(word for word in (asks.first.shape, asks.first.colour) if word)


def dsg_questions(statement: Statement) -> Entries:
    """Return DSG's second call: a question for each tuple."""
    return [{"id": q.id, "text": q.text} for q in scene_graph(statement)]


def dsg_dependencies(statement: Statement) -> Entries:
    """Return DSG's third call: each question's dependencies."""
    return [{"id": q.id, "depends_on": list(q.depends_on)} for q in scene_graph(statement)]


def tifa(statement: Statement) -> Entries:
    """Return an open question for every fact that has one, and a yes/no question for every fact."""
    spans = {asks: span for span, asks in facts(statement)}
    entries: Entries = []
    for question in scene_graph(statement):
        named = {"entity": spans[question.asks], "type": TIFA_TYPES[question.kind]}
        asked = open_question(question.asks, statement)
        if asked is not None:
            entries.append({**named, "text": asked.text, **chosen(asked.choices, asked.answer)})
        entries.append({**named, "text": question.text, **chosen(YES_NO, "yes")})
    return entries


def chosen(choices: tuple[str, ...], answer: str) -> dict[str, Any]:
    return {"choices": list(choices), "answer": answer}


def vq2(statement: Statement) -> Entries:
    """Return spans of the prompt, each with a question that it answers."""
    if statement.kind == "negation":
        return [{"answer": statement.first.words, "question": "What is missing?"}]
    whole = [words.noun for words in mentions(statement)] if statement.kind != "count" else [statement.text]
    there = zip(whole, ("What is there?", "What else is there?"), strict=False)
    asked = (open_question(asks, statement) for _, asks in facts(statement))
    pairs = [*there, *((one.answer, one.text) for one in asked if one is not None)]
    return [{"answer": answer, "question": question} for answer, question in pairs]


def gecko(statement: Statement) -> Entries:
    """
    Return GECKO's first call: the content words.

    Of "no green star" only the "no" is visible, and the second circle of "a red circle and a blue
    circle" adds nothing: both are not groundable.
    """
    words = [(word, KEYWORD_TYPES[kind_of(asks)], seen) for word, asks, seen in keywords(statement)]
    return [
        {"id": n, "text": word, "type": kind, "groundable": seen}
        for n, (word, kind, seen) in enumerate(words, 1)
    ]


def keywords(statement: Statement) -> list[tuple[str, Statement, bool]]:
    """Return the content words, each with its fact, and True if there is a question about it."""
    if statement.kind == "negation":
        thing = facts(Statement("presence", statement.first))
        return [("no", statement, True), *((word, asks, False) for word, asks in thing)]
    found = facts(statement)
    said = [asks for _, asks in found]
    return [(word, asks, asks not in said[:n]) for n, (word, asks) in enumerate(found)]


def kind_of(asks: Statement) -> str:
    """Return the kind of the DSG question for exactly this fact."""
    return scene_graph(asks)[-1].kind


def gecko_questions(statement: Statement) -> Entries:
    """Return GECKO's second call: one question for each groundable keyword."""
    entries: Entries = []
    for n, (_, asks, seen) in enumerate(keywords(statement), 1):
        asked = open_question(asks, statement)
        if seen and asked is not None:
            entries.append({"id": n, "text": asked.text, **chosen(asked.choices, asked.answer)})
        elif seen:
            entries.append({"id": n, "text": scene_graph(asks)[-1].text, **chosen(YES_NO, "yes")})
    return entries


def skills(statement: Statement) -> Entries:
    """Return every fact with the skill that it needs; then "a circle", which means one and not two."""
    spans = {asks: span for span, asks in facts(statement)}
    graph = scene_graph(statement)
    entries = [annotation(q.id, q.kind, spans[q.asks], q.text, list(q.depends_on)) for q in graph]
    numbers = {question.asks: question.id for question in graph}
    for words in exactly_one(statement):
        asked = scene_graph(Statement("count", words))[-1]
        parent = numbers[Statement("presence", words)]
        entries.append(annotation(len(entries) + 1, asked.kind, words.noun, asked.text, [parent]))
    return entries


def annotation(id: int, kind: str, phrase: str, question: str, parents: list[int]) -> dict[str, Any]:
    skill, subskill, node = SKILLS[kind]
    return {
        "id": id,
        "skill": skill,
        "subskill": subskill,
        "phrase": phrase,
        "question": question,
        "node_type": node,
        "depends_on": parents,
    }


STYLES: dict[str, tuple[str, Callable[[Statement], Entries]]] = {  # the list's name, its entries
    "dsg": ("questions", dsg),
    "dsg tuples": ("tuples", dsg_tuples),
    "dsg questions": ("questions", dsg_questions),
    "dsg dependencies": ("dependencies", dsg_dependencies),
    "tifa": ("questions", tifa),
    "vq2": ("pairs", vq2),
    "gecko": ("keywords", gecko),
    "gecko questions": ("questions", gecko_questions),
    "skills": ("annotations", skills),
}
