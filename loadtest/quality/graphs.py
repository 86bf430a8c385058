"""
Semantic error graphs after T2IscoreScore (Saxon et al. 2024), drawn from the demo world.

A graph is a prompt with nodes of pictures.  A node's pictures have the same errors; its level is their
number: a wrong shape, colour, relation or number each count one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

import PIL.Image

from demo.training.language import NUMBERS, Mention, Statement
from demo.training.world import (
    COLOURS,
    RELATIONS,
    SHAPES,
    Scene,
    Thing,
    draw,
    sample_background,
    sample_rgb,
)

LEVELS = 4  # 0 to 3 errors
SIDE = 224  # pixels
CELLS = (1 / 6, 1 / 2, 5 / 6)  # centres, across and down; things stand in different cells
RADIUS, SHIFT = (0.09, 0.13), 0.02
OPPOSITE = dict(zip(RELATIONS, ("right of", "left of", "below", "above"), strict=True))

Look = tuple[str, str]  # shape and colour


@dataclass(frozen=True, slots=True)
class Target:
    """Content of a prompt: one or two things, with an optional relation or count."""

    looks: tuple[Look, ...]
    relation: str = ""
    number: int = 0

    @property
    def prompt(self) -> str:
        """The prompt as a user would type it."""
        first, *others = (Mention(*look) for look in self.looks)
        if self.number:
            return Statement("count", first, number=self.number).text
        kind = "relation" if self.relation else "binding"
        return Statement(kind, first, others[0], self.relation or None).text

    @property
    def facts(self) -> list[str]:
        """The facts that a picture can violate."""
        looks = [f"{part} {n}" for n in range(len(self.looks)) for part in ("shape", "colour")]
        return [*looks, *(["relation"] if self.relation else []), *(["number"] if self.number else [])]


@dataclass(frozen=True, slots=True)
class Node:
    """Pictures that have the same errors."""

    errors: tuple[str, ...]
    pictures: Sequence[PIL.Image.Image]


@dataclass(frozen=True, slots=True)
class Graph:
    """A prompt with its nodes; the first has no errors."""

    prompt: str
    nodes: Sequence[Node]


def graph(random: Random, nodes: int, pictures: int) -> Graph:
    """Return a graph with *nodes* nodes at each level but the first, each with *pictures* pictures."""
    target = sample_target(random)
    chosen: list[tuple[str, ...]] = [()]
    for level in range(1, LEVELS):
        kinds = list(combinations(target.facts, level))
        chosen += random.sample(kinds, min(nodes, len(kinds)))
    drawn = [Node(errors, [picture(target, errors, random) for _ in range(pictures)]) for errors in chosen]
    return Graph(target.prompt, drawn)


def sample_target(random: Random) -> Target:
    """Sample a target: two different things, optionally in a relation, or several equal ones."""
    shapes, colours = random.sample(SHAPES, 2), random.sample(tuple(COLOURS), 2)
    looks = tuple(zip(shapes, colours, strict=True))
    kind = random.choice(("binding", "relation", "count"))
    if kind == "count":
        return Target(looks[:1], number=random.randint(2, len(NUMBERS)))
    return Target(looks, relation=random.choice(RELATIONS) if kind == "relation" else "")


def picture(target: Target, errors: Sequence[str], random: Random) -> PIL.Image.Image:
    """Draw *target* with exactly these errors."""
    shown = with_errors(target, errors, random)
    looks = shown.looks * shown.number if shown.number else shown.looks
    things = [thing(look, cell, random) for look, cell in zip(looks, cells(shown, random), strict=True)]
    return draw(Scene(1.0, 1.0, sample_background(random), tuple(things)), SIDE)


def with_errors(target: Target, errors: Sequence[str], random: Random) -> Target:
    """Return the target with these errors; wrong attributes never match another word of the prompt."""
    taken: Mapping[str, Sequence[str]] = {
        "shape": [shape for shape, _ in target.looks],
        "colour": [colour for _, colour in target.looks],
    }
    others = {
        "shape": [shape for shape in SHAPES if shape not in taken["shape"]],
        "colour": [colour for colour in COLOURS if colour not in taken["colour"]],
    }

    def part(name: str, right: str, n: int) -> str:
        return random.choice(others[name]) if f"{name} {n}" in errors else right

    looks = [
        (part("shape", shape, n), part("colour", colour, n)) for n, (shape, colour) in enumerate(target.looks)
    ]
    relation = OPPOSITE[target.relation] if "relation" in errors else target.relation
    number = target.number
    if "number" in errors:
        number += random.choice([step for step in (-1, 1) if 1 <= number + step <= len(NUMBERS)])
    return Target(tuple(looks), relation, number)


def cells(target: Target, random: Random) -> list[tuple[int, int]]:
    """Return a column and row for each thing."""
    if not target.relation:
        places = [(column, row) for column in range(len(CELLS)) for row in range(len(CELLS))]
        return random.sample(places, target.number or len(target.looks))
    near, far = sorted(random.sample(range(len(CELLS)), 2))
    across = random.randrange(len(CELLS))
    first, second = (near, far) if target.relation in ("left of", "above") else (far, near)
    if target.relation in ("left of", "right of"):
        return [(first, across), (second, across)]
    return [(across, first), (across, second)]


def thing(look: Look, cell: tuple[int, int], random: Random) -> Thing:
    """Return a thing at a random place in its cell."""
    x, y = (CELLS[each] + random.uniform(-SHIFT, SHIFT) for each in cell)
    shape, colour = look
    return Thing(shape, colour, x, y, random.uniform(*RADIUS), sample_rgb(colour, random))
