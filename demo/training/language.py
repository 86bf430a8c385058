"""
The language of the demo world: statements about scenes, their truth, and questions about them.

A statement is a prompt a user may type ("a red circle left of a blue square"); its truth in a scene
is True, False, or None if it is ambiguous; ambiguous statements are not used.
"""

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from demo.training.world import (
    COLOURS,
    LARGE,
    MAX_THINGS,
    RELATIONS,
    SHAPES,
    SMALL,
    Scene,
    Thing,
    clear_relation,
)

NUMBERS = ("one", "two", "three", "four", "five")
SIZES = ("small", "large")
KINDS = ("presence", "binding", "count", "relation", "negation", "size")

PLURALS = {shape: f"{shape}es" if shape.endswith("s") else f"{shape}s" for shape in SHAPES}
WORDS = frozenset(
    {"a", "an", "and", "no", "left", "right", "of", "above", "below"}
    | {*SHAPES, *PLURALS.values(), *COLOURS, *NUMBERS, *SIZES}
)


@dataclass(frozen=True, slots=True)
class Mention:
    """Words for a thing: a shape, optionally a colour and a size."""

    shape: str
    colour: str | None = None
    size: str | None = None

    def matches(self, thing: Thing) -> bool:
        """Return True if *thing* matches, ignoring size."""
        return thing.shape == self.shape and self.colour in (None, thing.colour)

    @property
    def words(self) -> str:
        """Such as "small red circle"."""
        return " ".join(word for word in (self.size, self.colour, self.shape) if word)

    @property
    def noun(self) -> str:
        """Such as "a small red circle"."""
        return f"{'an' if self.words[0] in 'aeiou' else 'a'} {self.words}"

    def plural(self, number: int) -> str:
        """Return "red circles", or "red circle" for one."""
        shape = self.shape if number == 1 else PLURALS[self.shape]
        return " ".join(word for word in (self.colour, shape) if word)


@dataclass(frozen=True, slots=True)
class Statement:
    """One kind of statement about one or two mentions."""

    kind: str
    first: Mention
    second: Mention | None = None
    relation: str | None = None
    number: int = 1

    @property
    def text(self) -> str:
        """The statement as a user would type it."""
        if self.kind == "negation":
            return f"no {self.first.words}"
        if self.kind == "count":
            return f"{NUMBERS[self.number - 1]} {self.first.plural(self.number)}"
        if self.second is None:
            return self.first.noun
        return f"{self.first.noun} {self.relation or 'and'} {self.second.noun}"

    def true_in(self, scene: Scene) -> bool | None:
        """Return its truth in *scene*; None if it is ambiguous (a middling size, one of several twins)."""
        found = present(self.first, scene)
        if self.kind == "negation":
            return None if found is None else not found
        if self.kind == "count":
            return len(matches(self.first, scene)) == self.number
        if self.second is None:
            return found
        both = (found, present(self.second, scene))
        if False in both:
            return False
        if None in both or self.relation is None:
            return None if None in both else True
        ones, others = matches(self.first, scene), matches(self.second, scene)
        if len(ones) > 1 or len(others) > 1 or ones == others:
            return None
        held = clear_relation(ones[0], others[0])
        return None if held is None else held == self.relation


def matches(mention: Mention, scene: Scene) -> list[Thing]:
    """Return the things *mention* may mean, ignoring size."""
    return [thing for thing in scene.things if mention.matches(thing)]


def present(mention: Mention, scene: Scene) -> bool | None:
    """Return True if at least one such thing exists; None if that depends on a thing of middling size."""
    things = matches(mention, scene)
    if mention.size is None:
        return bool(things)
    small = mention.size == "small"
    if any(t.radius <= SMALL if small else t.radius >= LARGE for t in things):
        return True
    return None if any(SMALL - 0.005 < t.radius < LARGE + 0.005 for t in things) else False


# --- sampling -----------------------------------------------------------------------------------


def sample_statement(kind: str, truth: bool | None, scene: Scene, random: Random) -> Statement | None:
    """
    Sample a statement of *kind* with that *truth* in *scene*; most false ones are one word from a true one.
    """
    for _ in range(12):
        statement = about(kind, scene, random)
        if not truth and statement.true_in(scene):
            statement = one_word_off(statement, scene, random)
        if statement.true_in(scene) is truth and statement.first != statement.second:
            return statement
    return None


def about(kind: str, scene: Scene, random: Random) -> Statement:
    """Sample a statement of *kind* about things of *scene*, mostly true."""
    one, other = random.choice(scene.things), random.choice(scene.things)
    first, second = mention(one, random), Mention(other.shape, other.colour)
    if kind == "count":
        things = matches(first, scene)
        return Statement(kind, first, number=min(len(things), MAX_THINGS))
    if kind == "negation":
        return Statement(kind, random_mention(random, scene))
    if kind == "size":
        size = random.choice(SIZES)
        return Statement(kind, replace(first, size=size))
    if kind == "presence":
        return Statement(kind, first)
    first = Mention(one.shape, one.colour)
    if first == second:  # twins: nothing to bind or relate, so look for another pair
        second = random_mention(random, scene)
    held = clear_relation(one, other) or random.choice(RELATIONS)
    return Statement(kind, first, second, held if kind == "relation" else None)


def mention(thing: Thing, random: Random) -> Mention:
    return Mention(thing.shape, thing.colour if random.random() < 0.75 else None)


def random_mention(random: Random, scene: Scene) -> Mention:
    """Sample arbitrary words, or words that each fit something in *scene*."""
    if random.random() < 0.5:
        shape, colour = random.choice(SHAPES), random.choice(tuple(COLOURS))
    else:
        shape, colour = random.choice(scene.things).shape, random.choice(scene.things).colour
    return Mention(shape, colour if random.random() < 0.75 else None)


def one_word_off(statement: Statement, scene: Scene, random: Random) -> Statement:
    """Return the statement with one word changed, or its two mentions swapped."""
    if statement.kind == "count":
        near = [n for n in (statement.number - 1, statement.number + 1) if 1 <= n <= MAX_THINGS]
        number = random.choice(near) if random.random() < 0.7 else random.randint(1, MAX_THINGS)
        return replace(statement, number=number)
    if statement.kind == "negation":
        return replace(statement, first=mention(random.choice(scene.things), random))
    if statement.kind == "size" and random.random() < 0.6:
        size = SIZES[statement.first.size == SIZES[0]]
        return replace(statement, first=replace(statement.first, size=size))
    if statement.second is None:
        return replace(statement, first=reworded(statement.first, scene, random))
    if statement.relation and random.random() < 0.6:
        if random.random() < 0.5:
            return replace(statement, relation=random.choice(RELATIONS))
        return replace(statement, first=statement.second, second=statement.first)
    if random.random() < 0.4:
        first = replace(statement.first, colour=statement.second.colour)
        second = replace(statement.second, colour=statement.first.colour)
        return replace(statement, first=first, second=second)
    if random.random() < 0.5:
        return replace(statement, first=reworded(statement.first, scene, random))
    return replace(statement, second=reworded(statement.second, scene, random))


def reworded(words: Mention, scene: Scene, random: Random) -> Mention:
    """Return *words* with another shape or colour, preferably one of another thing in *scene*."""
    thing = random.choice(scene.things)
    seen = random.random() < 0.6
    if words.colour and random.random() < 0.5:
        return replace(words, colour=thing.colour if seen else random.choice(tuple(COLOURS)))
    return replace(words, shape=thing.shape if seen else random.choice(SHAPES))


# --- questions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a Davidsonian scene graph (DSG, Cho et al. 2024): all expect "yes"."""

    id: int
    kind: str
    text: str
    depends_on: tuple[int, ...]
    asks: Statement


def scene_graph(statement: Statement) -> list[Question]:
    """Return the DSG questions of a statement: entities, then attributes and numbers, then relations."""
    graph: list[Question] = []

    def ask(kind: str, text: str, asks: Statement, *parents: int) -> int:
        for known in graph:
            if known.text == text:
                return known.id
        graph.append(Question(len(graph) + 1, kind, text, parents, asks))
        return len(graph)

    def describe(words: Mention) -> int:
        shape = words.shape
        entity = Statement("presence", Mention(shape))
        last = ask("entity - whole", f"Is there a {shape}?", entity)
        if words.colour:
            asks = Statement("presence", Mention(shape, words.colour))
            last = ask("attribute - color", f"Is the {shape} {words.colour}?", asks, last)
        if words.size:
            asks = Statement("size", words)
            coloured = replace(words, size=None).words
            last = ask("attribute - size", f"Is the {coloured} {words.size}?", asks, last)
        return last

    if statement.kind == "negation":
        ask("other - absence", f"Is there {statement.text}?", statement)
        return graph
    first = describe(statement.first)
    if statement.kind == "count":
        verb = "Is" if statement.number == 1 else "Are"
        ask("other - count", f"{verb} there exactly {statement.text}?", statement, first)
    if statement.second is not None:
        second = describe(statement.second)
        if statement.relation is not None:
            words = f"Is the {statement.first.words} {statement.relation} the {statement.second.words}?"
            ask("relation - spatial", words, statement, first, second)
    return graph


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
