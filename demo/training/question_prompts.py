"""
The training prompts of the demo question LLM, each with its answer.

Statements of the demo world as people type them, in every style of questions, and prompts outside its
language, which get no questions.
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pydoc_data.topics import topics  # ordinary English that every Python carries
from random import Random

from demo.training.exchanges import ANSWERS, TOLD, exchange
from demo.training.language import NUMBERS, SIZES, WORDS, Mention, Statement
from demo.training.styles import STYLES
from demo.training.world import COLOURS, RELATIONS, SHAPES

FOREIGN = 0.3  # share of prompts outside the language, in first calls about a prompt
FOREIGN_LATER = 0.03  # the share in later calls

# Long answers, and calls that contain previous answers, need more training.
CALLS = (*STYLES, ANSWERS, "dsg", "tifa", "gecko questions", "skills", ANSWERS, ANSWERS)
READING_CALLS = (*CALLS, *[ANSWERS] * 16)  # the calls of a stage that practises reading

# Relation has the longest answers and needs the most training.
MIX = ("presence", "binding", "binding", "count", "relation", "relation", "negation", "size")
KNOWN = WORDS | {"the"}
DESCRIBED_WORDS = (  # things that people describe, and near misses of the world's words
    "dog cat horse bird bear cow sheep elephant zebra fish person man woman boy girl child people"
    " car bus truck train bicycle boat airplane road street city house building tower bridge castle"
    " tree flower grass forest mountain beach sea river lake sky cloud sun moon snow rain night day"
    " table chair bed sofa book lamp clock cup bottle bowl plate pizza cake apple banana orange"
    " photo picture painting drawing portrait image sketch render background scene style"
    " cube sphere cylinder pyramid oval rectangle pentagon hexagon spiral line dot ball box arrow"
    " pink brown gray grey gold silver cyan magenta turquoise beige bright dark shiny"
    " six seven eight nine ten zero many several few some both"
    " big tiny huge tall medium little wooden metal happy old young"
    " behind beside near under over inside between on in at with by from to next front"
)
DESCRIBED = DESCRIBED_WORDS.split()


def held_out(statement: Statement) -> bool:
    """Return True for one statement in ten, which is never trained on, however it is typed."""
    return zlib.crc32(statement.text.encode()) % 10 == 0


def any_mention(random: Random, sized: float = 0.0) -> Mention:
    colour = random.choice(tuple(COLOURS)) if random.random() < 0.8 else None
    size = random.choice(SIZES) if random.random() < sized else None
    return Mention(random.choice(SHAPES), colour, size)


def any_statement(kind: str, random: Random) -> Statement:
    """Sample a statement of *kind* with any words; of two mentions, half share their shape."""
    if kind == "count":
        return Statement(kind, any_mention(random), number=random.randint(1, len(NUMBERS)))
    if kind == "size":
        return Statement(kind, any_mention(random, sized=1))
    if kind not in ("binding", "relation"):
        return Statement(kind, any_mention(random))
    first, second = any_mention(random, sized=0.15), any_mention(random, sized=0.15)
    if random.random() < 0.5:
        second = replace(second, shape=first.shape)
    if first == second:
        return any_statement(kind, random)
    return Statement(kind, first, second, random.choice(RELATIONS) if kind == "relation" else None)


def typed(text: str, random: Random) -> str:
    """Vary *text* like different people's typing."""
    if random.random() < 0.25:  # other articles, or none
        article = random.choice(("", "the "))
        text = re.sub(r"\ban? ", article, text)
    if random.random() < 0.1:
        text = re.sub("|".join(NUMBERS), lambda word: str(NUMBERS.index(word[0]) + 1), text)
    if random.random() < 0.3:
        text = text.title() if random.random() < 0.1 else text[:1].upper() + text[1:]
    return text + "." if random.random() < 0.25 else text


def english() -> list[str]:
    """Return words without a meaning in the demo world."""
    found = {word for text in topics.values() for word in re.findall(r"\b[a-z]{2,12}\b", text)}
    return sorted(found - KNOWN)


ENGLISH = english()
PASSAGES = tuple(topics.values())


def foreign_word(random: Random) -> str:
    """Sample a word outside the language: of things in pictures, of a manual, or of random letters."""
    choice = random.random()
    if choice < 0.5:
        return random.choice([word for word in DESCRIBED if word not in KNOWN])
    if choice < 0.85:
        return random.choice(ENGLISH)
    return "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(3, 9)))


def foreign(random: Random) -> str:
    """Sample a prompt outside the language, usually by a small margin."""
    choice = random.random()
    if choice < 0.25:  # English, with a few words of the world
        count = random.randint(1, 12)
        known = sorted(KNOWN)
        words = [
            random.choice(known) if random.random() < 0.4 else foreign_word(random) for _ in range(count)
        ]
        words[random.randrange(count)] = foreign_word(random)
        return " ".join(words)
    if choice < 0.3:
        return "".join(
            chr(random.choice((random.randint(33, 126), 0x4E00, 0x1F600, 0xE9)))
            for _ in range(random.randint(1, 12))
        )
    text = any_statement(random.choice(MIX), random).text
    words = text.split()
    if choice < 0.75:  # one word changed
        content = [n for n, word in enumerate(words) if word not in ("a", "an", "of")]
        words[random.choice(content)] = foreign_word(random)
    elif choice < 0.85:  # some words put in
        at = random.randint(0, len(words))
        words[at:at] = [foreign_word(random) for _ in range(random.randint(1, 3))]
    elif choice < 0.92:  # cut short: a statement ends with its shape
        words.pop()
    else:  # too many things
        third = any_mention(random)
        more = any_statement(random.choice(("binding", "relation")), random).text
        words = [*more.split(), random.choice(("and", *RELATIONS)), *third.noun.split()]
    return " ".join(words)


def long_pair(random: Random) -> tuple[str, str]:
    """Sample an English passage of up to a few hundred tokens, with no questions."""
    text = random.choice(PASSAGES)
    at = random.randrange(max(1, len(text) - 600))
    style = random.choice([style for style in STYLES if style not in TOLD])
    return exchange(style, text[at : at + random.randint(60, 600)], None, random)


def pair(random: Random, calls: Sequence[str] = CALLS) -> tuple[str, str]:
    """Sample the user message of one of *calls* and its answer."""
    style = random.choice(calls)
    first = style in STYLES and style not in TOLD
    if random.random() < (FOREIGN if first else FOREIGN_LATER):
        return exchange(style, typed(foreign(random), random), None, random)
    while True:
        statement = any_statement(random.choice(MIX), random)
        if not held_out(statement):
            return exchange(style, typed(statement.text, random), statement, random)
