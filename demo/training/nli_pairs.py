"""
Premises and hypotheses of the demo world: a prompt, and a question with its answer.

A pair is right if the prompt entails it.  A wrong one has another answer, or is about another
thing; most of them are one word from right.
"""

from dataclasses import dataclass
from random import Random

from demo.training.exchanges import reworded
from demo.training.facts import ask_openly, mentions, open_question
from demo.training.language import Mention, Statement, scene_graph
from demo.training.question_prompts import MIX, any_statement, foreign_word, held_out, typed
from demo.training.world import RELATIONS

RIGHT = 0.5  # share of the tries
OPPOSITE = {
    one: other
    for a, b in zip(RELATIONS[::2], RELATIONS[1::2], strict=True)
    for one, other in ((a, b), (b, a))
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A prompt, a question with its answer, and True if the prompt entails it."""

    premise: str
    hypothesis: str
    entailed: bool


def draw(random: Random, *, unseen: bool = False) -> Pair:
    """Sample a pair about any statement, or about an *unseen* one that is never trained on."""
    while True:
        statement = any_statement(random.choice(MIX), random)
        if held_out(statement) is not unseen:
            continue
        hypothesis = right(statement, random) if random.random() < RIGHT else wrong(statement, random)
        if hypothesis is not None:
            return Pair(typed(statement.text, random), *hypothesis)


def right(statement: Statement, random: Random) -> tuple[str, bool]:
    """Sample a question that *statement* answers, with that answer."""
    question = random.choice(scene_graph(statement))
    asked = open_question(question.asks, statement)
    if asked is not None and random.random() < 0.5:
        return f"{asked.text} {asked.answer}", True
    return f"{question.text} yes", True


def wrong(statement: Statement, random: Random) -> tuple[str, bool] | None:
    """Sample a question with an answer that *statement* does not entail; None if this try found none."""
    choice = random.random()
    if choice < 0.1:
        return f"{random.choice(scene_graph(statement)).text} no", False
    if choice < 0.2:
        words = right(statement, random)[0].split()
        words[random.randrange(len(words))] = foreign_word(random)
        return " ".join(words), False
    if choice < 0.45:
        return other_answer(statement, random)
    other = (
        reworded(statement, random) if random.random() < 0.7 else any_statement(random.choice(MIX), random)
    )
    if len(set(mentions(other))) < len(mentions(other)):
        return None
    question = random.choice(scene_graph(other))
    if says(statement, question.asks) is not False:
        return None
    asked = open_question(question.asks, other)
    if asked is not None and random.random() < 0.5:
        return f"{asked.text} {asked.answer}", False
    return f"{question.text} yes", False


def other_answer(statement: Statement, random: Random) -> tuple[str, bool] | None:
    """Sample an open question of *statement* with another of its answers."""
    asked = ask_openly(random.choice(scene_graph(statement)).asks)
    if asked is None:
        return None
    answer, meant = random.choice([*asked.answers.items()])
    return (f"{asked.text} {answer}", False) if says(statement, meant) is False else None


def says(statement: Statement, asks: Statement) -> bool | None:
    """Return True if *statement* entails *asks*; None if it is ambiguous."""
    if "negation" in (statement.kind, asks.kind):
        return None if statement.kind == asks.kind and covers(statement.first, asks.first) else False
    if asks.kind == "count":
        same = covers(asks.first, statement.first) and statement.second is None
        return (
            None if same and asks.number == (statement.number if statement.kind == "count" else 1) else False
        )
    if asks.second is None or asks.relation is None:
        return any(covers(asks.first, words) for words in mentions(statement))
    if statement.second is None or statement.relation is None:
        return False
    held = (statement.first, statement.second, statement.relation)
    turned = (statement.second, statement.first, OPPOSITE[statement.relation])
    return any(
        covers(asks.first, first) and covers(asks.second, second) and asks.relation == relation
        for first, second, relation in (held, turned)
    )


def covers(general: Mention, words: Mention) -> bool:
    """Return True if *general* includes *words*, as "a circle" includes "a small red circle"."""
    return (
        general.shape == words.shape
        and general.colour in (None, words.colour)
        and general.size in (None, words.size)
    )
