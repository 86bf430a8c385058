"""The training questions of the demo VQA model, in every form that the service uses."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from demo.training.facts import ask_openly, exactly_one, facts, mentions, unsized
from demo.training.language import KINDS, Mention, Statement, sample_statement, scene_graph
from demo.training.world import Scene
from models.core.contract import CHOICE_QUESTION, QUESTION

YES_NO = "{} Please answer yes or no."
TRUE_FOR = 'is "{}" true for "{}" in this image?'
ONE_WORD = "{} Answer in one word."
UNSURE = "{} Please answer yes, no or unsure."
FORMS = {QUESTION: 50, YES_NO: 12, TRUE_FOR: 10, ONE_WORD: 8, CHOICE_QUESTION: 8, UNSURE: 12}  # percent
NAMES = {
    YES_NO: "yes/no",
    TRUE_FOR: "true for",
    ONE_WORD: "one word",
    CHOICE_QUESTION: "phrase",
    UNSURE: "unsure",
}

THERE = ("What is there?", "What else is there?")
MISSING = "What is missing?"

# Relation and count need more training than the rest.
MIX = (
    *("presence", "binding", "binding", "count", "count", "negation", "size"),
    *["relation"] * 3,
)
COUNTED = (*MIX, *["count"] * 6)  # kinds of questions about things that nearly touch
ARGUABLE = ("size", "relation", "relation")  # kinds with ambiguous cases
REPORTED = (*KINDS, *NAMES.values())


@dataclass(frozen=True, slots=True)
class TrainingQuestion:
    """
    A question about a scene.

    Attributes:
        answer: the text that answers it.
        about: what is true or false; of an open question, what makes *answer* right.
        meant: what each noun of the text means, in order.
        reported: the name in REPORTED.
    """

    text: str
    answer: str
    about: Statement
    meant: tuple[Mention, ...]
    reported: str


def sample_question(scene: Scene, random: Random, mix: Sequence[str] = MIX) -> TrainingQuestion | None:
    """Sample a question of any form and a kind of *mix* about *scene*; None if the sample has no answer."""
    (form,) = random.choices(tuple(FORMS), tuple(FORMS.values()))
    openly = form == CHOICE_QUESTION or (form == ONE_WORD and random.random() < 0.5)
    if form == UNSURE and random.random() < 0.3:
        statement = sample_statement(random.choice(ARGUABLE), None, scene, random)
    else:
        statement = sample_statement(random.choice(mix), openly or random.random() < 0.5, scene, random)
    if statement is None:
        return None
    return opened(form, statement, scene, random) if openly else ask(form, statement, scene, random)


def ask(form: str, statement: Statement, scene: Scene, random: Random) -> TrainingQuestion | None:
    """Return a question in *form* that has a truth, about a part of *statement* or about all of it."""
    if form == QUESTION:
        return closed(form, as_typed(statement.text, random), statement, scene)
    if form == TRUE_FOR:
        return true_for(statement, scene, random)
    graph = [(question.text, question.asks) for question in scene_graph(statement)]
    if random.random() < 0.4:
        graph = graph[-1:]  # the last says most
    else:
        single = [Statement("count", words) for words in exactly_one(statement)]
        graph += [(scene_graph(asks)[-1].text, asks) for asks in single]
    return closed(form, *random.choice(graph), scene)


def as_typed(text: str, random: Random) -> str:
    """Randomly capitalise *text*, or add a full stop."""
    return text if random.random() < 0.9 else f"{text[0].upper()}{text[1:]}" + random.choice(("", "."))


def closed(form: str, text: str, asks: Statement, scene: Scene) -> TrainingQuestion | None:
    """Return a yes/no question about *asks*."""
    truth = asks.true_in(scene)
    if truth is None and form != UNSURE:
        return None
    answer = "Unsure" if truth is None else "Yes" if truth else "No"
    if form == ONE_WORD:
        answer = answer.lower()
    return TrainingQuestion(
        form.replace("{}", text), answer, asks, tuple(mentions(asks)), report_as(form, asks)
    )


def opened(form: str, statement: Statement, scene: Scene, random: Random) -> TrainingQuestion | None:
    """
    Return an open question: what colour, what size, how many, where.

    If several answers are right, one is sampled as the label, so that the model learns their chances.
    """
    asked = ask_openly(statement if random.random() < 0.4 else random.choice(facts(statement))[1])
    right = [word for word, asks in asked.answers.items() if asks.true_in(scene)] if asked else []
    if asked is None or not right:
        return None
    answer = random.choice(right)
    about = asked.answers[answer]
    return TrainingQuestion(
        form.replace("{}", asked.text), answer, about, nouns(about), report_as(form, about)
    )


def true_for(statement: Statement, scene: Scene, random: Random) -> TrainingQuestion | None:
    """Return VQ2's question: a noun phrase that is present or absent, or the answer to an open question."""
    asked = ask_openly(statement if random.random() < 0.3 else random.choice(facts(statement))[1])
    if statement.kind == "negation":
        return vq2(statement.first.words, MISSING, statement, (statement.first,), scene)
    if asked is not None and random.random() < 0.75:
        about = asked.answers[asked.answer]
        return vq2(asked.answer, asked.text, about, nouns(about), scene)
    if statement.kind != "count":
        words = random.choice(mentions(statement))
        statement = Statement("size" if words.size else "presence", words)
    return vq2(statement.text, random.choice(THERE), statement, (statement.first,), scene)


def vq2(
    answer: str, question: str, about: Statement, meant: tuple[Mention, ...], scene: Scene
) -> TrainingQuestion | None:
    truth = about.true_in(scene)
    if truth is None:
        return None
    return TrainingQuestion(
        TRUE_FOR.format(answer, question), "Yes" if truth else "No", about, meant, report_as(TRUE_FOR, about)
    )


def nouns(about: Statement) -> tuple[Mention, ...]:
    """Return the meanings of an open question's nouns: all circles, if it is about the circle's colour."""
    if about.kind == "presence":
        return (Mention(about.first.shape),)
    return tuple(mentions(about)) if about.second else (unsized(about.first),)


def report_as(form: str, about: Statement) -> str:
    """Return the name to report: of statements their kind, of other questions their form."""
    return NAMES.get(form, about.kind)
