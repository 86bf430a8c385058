"""The prompts of the question LLM's calls, and the expected answers."""

import json
from dataclasses import replace
from random import Random
from typing import Any

from demo.training.facts import mentions
from demo.training.language import NUMBERS, SIZES, Mention, Statement
from demo.training.styles import STYLES, YES_NO, Entries, tifa
from demo.training.world import COLOURS, RELATIONS, SHAPES
from models.families.question_llm import user_message

ANSWERS = "tifa answers"
# Later calls repeat the answer of the previous one.
TOLD = {
    "dsg questions": ("tuples", "dsg tuples", "; "),
    "dsg dependencies": ("tuples", "dsg tuples", "; "),
    "gecko questions": ("keywords", "gecko", ", "),
}


def exchange(style: str, prompt: str, statement: Statement | None, random: Random) -> tuple[str, str]:
    """
    Return the user message of a call about *prompt*, and the answer.

    Args:
        statement: meaning of *prompt*; None if it is outside the language, then the answer is empty.
    """
    message = user_message(style, prompt)
    if style == ANSWERS:
        questions = asked_about(statement, random)
        return message + "\nquestions: " + listed(questions), compact(
            "answers", answers(questions, statement)
        )
    name, write = STYLES[style]
    if style in TOLD and statement is not None:
        title, first, between = TOLD[style]
        whole = random.random() < 0.5  # if not, keywords that have no question are left out
        entries = [entry for entry in STYLES[first][1](statement) if whole or entry.get("groundable", True)]
        listing = between.join(f"{entry['id']} {entry.get('tuple') or entry['text']}" for entry in entries)
        message += f"\n{title}: {listing}"
    return message, compact(name, write(statement) if statement else [])


def compact(name: str, entries: list[Any]) -> str:
    """Return JSON without spaces."""
    return json.dumps({name: entries}, separators=(",", ":"))


def listed(questions: Entries) -> str:
    """
    Return a list like "1 Is there a circle? yes, no; 2 What color is the circle? red, green, blue, yellow".
    """
    return "; ".join(f"{n} {q['text']} {', '.join(q['choices'])}" for n, q in enumerate(questions, 1))


def answers(questions: Entries, statement: Statement | None) -> list[str]:
    """Return the caption's answer to each question: "no" or "unknown" for questions of other statements."""
    known = {question["text"]: question["answer"] for question in (tifa(statement) if statement else [])}
    return [
        known.get(question["text"], "no" if question["choices"] == list(YES_NO) else "unknown")
        for question in questions
    ]


def asked_about(statement: Statement | None, random: Random) -> Entries:
    """Return the questions of *statement*; in two of three cases also some of similar statements."""
    if statement is None:
        mention = Mention(random.choice(SHAPES), random.choice(tuple(COLOURS)))
        return tifa(Statement("presence", mention))
    own = tifa(statement)
    mixed = random.random()
    if mixed < 0.35:
        return own
    other = tifa(near_miss(statement, random))
    if mixed < 0.6:
        return other
    strange = [entry for entry in other if entry not in own]
    drawn = [entry for entry in own if random.random() < 0.6] + strange
    return random.sample(drawn, len(drawn)) or own


def near_miss(statement: Statement, random: Random) -> Statement:
    """Return a statement that differs from *statement* in a word or two."""
    other = statement
    while other == statement or len(set(mentions(other))) < len(mentions(other)):
        other = reworded(other, random)
    return other


def reworded(statement: Statement, random: Random) -> Statement:
    """Return *statement* with one word changed, or with the colours of its mentions swapped."""
    second = statement.second
    change = random.random()
    if statement.kind == "count" and change < 0.4:
        return replace(statement, number=random.randint(1, len(NUMBERS)))
    if second is not None and change < 0.25:
        first = replace(statement.first, colour=second.colour)
        return replace(statement, first=first, second=replace(second, colour=statement.first.colour))
    if statement.relation is not None and change < 0.5:
        return replace(statement, relation=random.choice(RELATIONS))
    if second is not None and random.random() < 0.5:
        return replace(statement, second=another(second, random))
    return replace(statement, first=another(statement.first, random))


def another(words: Mention, random: Random) -> Mention:
    """Return *words* with another shape, colour or size."""
    change = random.random()
    if words.size and change < 0.4:
        return replace(words, size=random.choice(SIZES))
    if words.colour and change < 0.7:
        return replace(words, colour=random.choice(tuple(COLOURS)))
    return replace(words, shape=random.choice(SHAPES))
