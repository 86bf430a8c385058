"""
What a statement says, word by word, and the open question that each word answers.

DSG asks for every fact by yes or no (`scene_graph`).  The other styles also ask openly: "Is the circle
red?" is also "What color is the circle?", with the answer "red".
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
        answer: what the statement says.
        answers: every possible answer, with the statement that would make it right.
    """

    text: str
    answer: str
    answers: dict[str, Statement]

    @property
    def choices(self) -> tuple[str, ...]:
        """What to choose from: four colours, or every other answer; the order tells nothing."""
        return next((four for four in PALETTES if self.answer in four), tuple(self.answers))


def mentions(statement: Statement) -> list[Mention]:
    """The mentions of *statement* in the order of its words."""
    return [words for words in (statement.first, statement.second) if words is not None]


def ask_openly(asks: Statement) -> OpenQuestion | None:
    """The open question that a fact answers, None for a fact that is just there or not."""
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
    """The same, but None where *statement* gives it two answers: "a red circle and a blue circle"."""
    if asks.kind == "size" and not only(unsized(asks.first), statement):
        return None
    if asks.kind == "presence" and not only(Mention(asks.first.shape), statement):
        return None
    return ask_openly(asks)


def unsized(words: Mention) -> Mention:
    """*words* without their size."""
    return replace(words, size=None)


def only(words: Mention, statement: Statement) -> bool:
    """Whether *words* can mean just one of the things that *statement* names."""
    return sum(overlap(words, other) for other in mentions(statement)) == 1


def overlap(one: Mention, other: Mention) -> bool:
    """Whether one thing can be both, size left aside."""
    return one.shape == other.shape and (None in (one.colour, other.colour) or one.colour == other.colour)


def facts(statement: Statement) -> list[tuple[str, Statement]]:
    """The content words of *statement* in order, each with what it says."""
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
    """The words of a mention, each with what it says of the thing."""
    plain = Mention(words.shape)
    found = [(PLURALS[words.shape] if plural else words.shape, Statement("presence", plain))]
    if words.colour:
        found.insert(0, (words.colour, Statement("presence", replace(plain, colour=words.colour))))
    if words.size:
        found.insert(0, (words.size, Statement("size", words)))
    return found


def exactly_one(statement: Statement) -> list[Mention]:
    """The things that *statement* has one of in so many words: "a circle" is not two."""
    if statement.kind in ("count", "negation"):
        return []
    return [words for words in mentions(statement) if words.size is None and only(words, statement)]
