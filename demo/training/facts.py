"""
The facts of a statement, word by word, and the open question that each word answers.

DSG has a yes/no question for every fact (`scene_graph`).  The other styles also have open ones: "Is the
circle red?" is also "What color is the circle?", with the answer "red".
"""

from dataclasses import dataclass, replace

from demo.training.language import NUMBERS, PLURALS, SIZES, Mention, Statement
from demo.training.world import COLOURS, RELATIONS

RELATIVE = "relative to"
PALETTES = (tuple(COLOURS)[:4], tuple(COLOURS)[4:])  # four colours to choose from


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """
    A question that is answered by a word.

    Attributes:
        answer: according to the statement.
        answers: every possible answer, with the statement that would make it right.
    """

    text: str
    answer: str
    answers: dict[str, Statement]

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices: four colours, or every other answer; their order does not reveal the right one."""
        return next((four for four in PALETTES if self.answer in four), tuple(self.answers))


def mentions(statement: Statement) -> list[Mention]:
    """Return the mentions of *statement* in the order of its words."""
    return [words for words in (statement.first, statement.second) if words is not None]


def ask_openly(asks: Statement) -> OpenQuestion | None:
    """Return the open question that a fact answers, None for a fact about presence."""
    first = asks.first
    if asks.kind == "count":
        answers = {word: replace(asks, number=n) for n, word in enumerate(NUMBERS, 1)}
        return OpenQuestion(f"How many {first.plural(2)} are there?", NUMBERS[asks.number - 1], answers)
    if asks.second is not None and asks.relation is not None:
        text = f"Where is the {first.words} {RELATIVE} the {asks.second.words}?"
        answers = {relation: replace(asks, relation=relation) for relation in RELATIONS}
        return OpenQuestion(text, asks.relation, answers)
    if asks.kind == "size" and first.size is not None:
        text = f"What size is the {unsized(first).words}?"
        answers = {size: replace(asks, first=replace(first, size=size)) for size in SIZES}
        return OpenQuestion(text, first.size, answers)
    if asks.kind == "presence" and first.colour is not None:
        answers = {colour: replace(asks, first=replace(first, colour=colour)) for colour in COLOURS}
        return OpenQuestion(f"What color is the {first.shape}?", first.colour, answers)
    return None


def open_question(asks: Statement, statement: Statement) -> OpenQuestion | None:
    """Return the open question, None if *statement* has two answers: "a red circle and a blue circle"."""
    if asks.kind == "size" and not only(unsized(asks.first), statement):
        return None
    if asks.kind == "presence" and not only(Mention(asks.first.shape), statement):
        return None
    return ask_openly(asks)


def unsized(words: Mention) -> Mention:
    """Return *words* without their size."""
    return replace(words, size=None)


def only(words: Mention, statement: Statement) -> bool:
    """Return True if *words* can mean only one of the things that *statement* names."""
    return sum(overlap(words, other) for other in mentions(statement)) == 1


def overlap(one: Mention, other: Mention) -> bool:
    """Return True if one thing can match both, ignoring size."""
    return one.shape == other.shape and (None in (one.colour, other.colour) or one.colour == other.colour)


def facts(statement: Statement) -> list[tuple[str, Statement]]:
    """Return the content words of *statement* in order, each with its fact."""
    if statement.kind == "negation":
        return [(f"no {statement.first.words}", statement)]
    if statement.kind == "count":
        number = NUMBERS[statement.number - 1]
        return [(number, statement), *words_of(statement.first, plural=statement.number > 1)]
    found = words_of(statement.first)
    if statement.relation is not None:
        found.append((statement.relation, statement))
    return found + (words_of(statement.second) if statement.second else [])


def words_of(words: Mention, plural: bool = False) -> list[tuple[str, Statement]]:
    """Return the words of a mention, each with its fact about the thing."""
    plain = Mention(words.shape)
    found = [(PLURALS[words.shape] if plural else words.shape, Statement("presence", plain))]
    if words.colour:
        found.insert(0, (words.colour, Statement("presence", replace(plain, colour=words.colour))))
    if words.size:
        found.insert(0, (words.size, Statement("size", words)))
    return found


def exactly_one(statement: Statement) -> list[Mention]:
    """Return the things that *statement* names once, such as "a circle", which is not two."""
    if statement.kind in ("count", "negation"):
        return []
    return [words for words in mentions(statement) if words.size is None and only(words, statement)]
