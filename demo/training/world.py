"""
The demo world: plain pictures of a few coloured shapes, drawn from a description.

A scene is a description; `draw` makes a picture of it.  Lengths are fractions of the longer side.
"""

import math
from dataclasses import dataclass
from random import Random

import PIL.Image
import PIL.ImageDraw

SHAPES = ("circle", "square", "triangle", "star", "diamond", "cross", "heart", "ring")

# A colour word covers all colours between these anchors.
COLOURS = {
    "red": ((255, 0, 0), (220, 20, 60), (190, 20, 20), (230, 60, 50)),
    "green": ((0, 128, 0), (0, 220, 0), (46, 170, 67), (34, 139, 34), (0, 255, 60)),
    "blue": ((0, 0, 255), (30, 60, 200), (65, 105, 225), (20, 110, 235), (0, 0, 160)),
    "yellow": ((255, 255, 0), (245, 225, 40), (255, 220, 0), (240, 240, 80)),
    "purple": ((128, 0, 128), (160, 32, 240), (142, 68, 173), (110, 40, 150), (90, 20, 140)),
    "orange": ((255, 165, 0), (255, 140, 0), (240, 120, 20), (230, 126, 34)),
    "black": ((0, 0, 0), (45, 45, 45), (15, 15, 25)),
    "white": ((255, 255, 255), (238, 238, 238), (250, 248, 240)),
}
RELATIONS = ("left of", "right of", "above", "below")

MAX_THINGS = 5
RADIUS = (0.06, 0.18)
SMALL, LARGE = 0.09, 0.135  # radius up to which a thing is small, from which it is large
TILT = 15  # degrees
CLOSE = 0.4  # share of scenes whose things are neighbours
GAPS = (0.05, 1.0)  # gaps between their rims, in radii of the smaller


@dataclass(frozen=True, slots=True)
class Thing:
    """One shape: centre (x, y) from the top left, radius of its circumscribed circle."""

    shape: str
    colour: str
    x: float
    y: float
    radius: float
    rgb: tuple[int, int, int]
    tilt: float = 0.0  # degrees
    style: float = 0.5  # 0..1, proportions within the shape: slim to stout


@dataclass(frozen=True, slots=True)
class Scene:
    """Content of a picture; width and height are 1 for the longer side, less for the other."""

    width: float
    height: float
    background: tuple[int, int, int]
    things: tuple[Thing, ...]


def relation(one: Thing, other: Thing) -> str:
    """Return the position of *one* relative to *other*: by centres, along the dominant axis."""
    dx, dy = one.x - other.x, one.y - other.y
    if abs(dx) > abs(dy):
        return "left of" if dx < 0 else "right of"
    return "above" if dy < 0 else "below"


def clear_relation(one: Thing, other: Thing) -> str | None:
    """Return the relation if it is unambiguous, else None."""
    small, big = sorted((abs(one.x - other.x), abs(one.y - other.y)))
    return relation(one, other) if big > 1.3 * small else None


# --- sampling -----------------------------------------------------------------------------------


def sample_scene(random: Random, gap: float | None = None, radii: tuple[float, float] = RADIUS) -> Scene:
    """
    Sample a scene with 1 to 5 things; many hold equal or nearly equal ones, which are hard to count.

    With a *gap* the things form a row or a cluster, at that distance in radii.
    """
    while True:
        long = 1.0
        short = 1.0 if random.random() < 0.3 else random.uniform(0.6, 1.0)
        width, height = (long, short) if random.random() < 0.5 else (short, long)
        things = place(sample_looks(random), width, height, random, gap, radii)
        if things:
            return Scene(width, height, sample_background(random), things)


def sample_looks(random: Random) -> list[tuple[str, str]]:
    """Sample shapes with their colours: all different, a group of equals, or near twins."""
    colours = tuple(COLOURS)
    count = random.randint(1, MAX_THINGS)
    looks = [(random.choice(SHAPES), random.choice(colours)) for _ in range(count)]
    mode = random.random()
    if mode < 0.4:  # equals among others
        looks = [looks[0]] * random.randint(1, MAX_THINGS) + looks[1:]
    elif mode < 0.6:  # one shape in several colours, or one colour on several shapes
        looks = [
            (looks[0][0], colour) if random.random() < 0.6 else (shape, looks[0][1])
            for shape, colour in looks
        ]
    return looks[: random.randint(1, MAX_THINGS) if mode >= 0.4 else MAX_THINGS]


def sample_background(random: Random) -> tuple[int, int, int]:
    grey = random.uniform(95, 210)
    red, green, blue = (min(215, max(90, round(grey + random.gauss(0, 4)))) for _ in range(3))
    return red, green, blue


def sample_rgb(colour: str, random: Random) -> tuple[int, int, int]:
    """Sample a colour between two anchors of the word."""
    one, other = random.choice(COLOURS[colour]), random.choice(COLOURS[colour])
    share = random.random()
    red, green, blue = (
        min(255, max(0, round(a + share * (b - a) + random.gauss(0, 3))))
        for a, b in zip(one, other, strict=True)
    )
    return red, green, blue


def place(
    looks: list[tuple[str, str]],
    width: float,
    height: float,
    random: Random,
    gap: float | None = None,
    radii: tuple[float, float] = RADIUS,
) -> tuple[Thing, ...]:
    """
    Place all objects without overlap; return nothing if that fails.

    In CLOSE of the scenes things are neighbours; with a *gap* in all of them.
    """
    things: list[Thing] = []
    close = gap is not None or random.random() < CLOSE
    alike = random.uniform(*radii) if random.random() < 0.5 else None  # things in a row are often of one size
    for shape, colour in looks:
        for _ in range(30):
            radius = alike * random.uniform(0.9, 1.1) if close and alike else random.uniform(*radii)
            radius = min(max(radius, radii[0]), radii[1])
            x, y = random.uniform(radius, width - radius), random.uniform(radius, height - radius)
            if close and things:
                apart = random.uniform(*GAPS) if gap is None else gap
                x, y = beside(random.choice(things), radius, apart, random)
            inside = radius <= x <= width - radius and radius <= y <= height - radius
            if inside and all(clear(x, y, radius, thing, close) for thing in things):
                tilt, style = random.uniform(-TILT, TILT), random.random()
                rgb = sample_rgb(colour, random)
                things.append(Thing(shape, colour, x, y, radius, rgb, tilt, style))
                break
        else:
            return ()
    random.shuffle(things)
    return tuple(things)


def beside(thing: Thing, radius: float, gap: float, random: Random) -> tuple[float, float]:
    """
    Return a centre in any direction from *thing*, with *gap* of the smaller radius between the two rims.
    """
    distance = thing.radius + radius + gap * min(thing.radius, radius)
    angle = random.uniform(0, 2 * math.pi)
    return thing.x + distance * math.cos(angle), thing.y + distance * math.sin(angle)


def clear(x: float, y: float, radius: float, thing: Thing, close: bool) -> bool:
    """Return True if a thing at that place keeps its distance from *thing*."""
    distance, touching = math.hypot(x - thing.x, y - thing.y), radius + thing.radius
    if close:
        return distance >= touching + 0.999 * GAPS[0] * min(radius, thing.radius)
    return distance > 1.05 * touching + 0.01


# --- drawing ------------------------------------------------------------------------------------


def outline(shape: str, style: float) -> list[tuple[float, float]]:
    """Return the corners of *shape* in its unit circle, y downwards; round shapes have none."""
    if shape == "square":
        half = 0.70 + 0.12 * style
        return [(-half, -half), (half, -half), (half, half), (-half, half)]
    if shape == "triangle":
        base = 0.75 + 0.2 * style
        return [(0, -1), (base, 0.6), (-base, 0.6)]
    if shape == "diamond":
        wide = 0.6 + 0.3 * style
        return [(0, -1), (wide, 0), (0, 1), (-wide, 0)]
    if shape == "cross":
        arm = 0.2 + 0.16 * style
        quarter = [(arm, -1.0), (arm, -arm), (1.0, -arm), (1.0, arm)]
        turned = [(-y, x) for x, y in quarter]
        half_turn = [(-x, -y) for x, y in quarter]
        return [*quarter[:3], *turned[:3], *half_turn[:3], *[(-x, -y) for x, y in turned[:3]]]
    if shape == "star":
        inner = 0.36 + 0.16 * style
        radii = (1.0, inner) * 5
        corners = enumerate(radii)
        return [(r * math.sin(k * math.pi / 5), -r * math.cos(k * math.pi / 5)) for k, r in corners]
    if shape == "heart":
        turns = [2 * math.pi * k / 40 for k in range(40)]
        deep = 0.9 + 0.2 * style
        return [
            (
                16 * math.sin(t) ** 3 / 17,
                -deep * (13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)) / 17,
            )
            for t in turns
        ]
    return []


def draw(scene: Scene, longer_side: int, supersample: int = 4) -> PIL.Image.Image:
    """Draw an anti-aliased RGB picture of *scene*, *longer_side* pixels wide or high."""
    scale = longer_side * supersample
    size = (round(scene.width * longer_side), round(scene.height * longer_side))
    canvas = PIL.Image.new("RGB", (size[0] * supersample, size[1] * supersample), scene.background)
    pen = PIL.ImageDraw.Draw(canvas)
    for thing in scene.things:
        draw_thing(pen, thing, scene.background, scale)
    return canvas.resize(size, PIL.Image.Resampling.BOX) if supersample > 1 else canvas


def draw_thing(
    pen: PIL.ImageDraw.ImageDraw, thing: Thing, background: tuple[int, int, int], scale: float
) -> None:
    x, y, radius = thing.x * scale, thing.y * scale, thing.radius * scale
    if thing.shape in ("circle", "ring"):
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=thing.rgb)
        if thing.shape == "ring":
            hole = radius * (0.72 - 0.24 * thing.style)
            pen.ellipse((x - hole, y - hole, x + hole, y + hole), fill=background)
        return
    sin, cos = math.sin(math.radians(thing.tilt)), math.cos(math.radians(thing.tilt))
    corners = [
        (x + radius * (cos * u - sin * v), y + radius * (sin * u + cos * v))
        for u, v in outline(thing.shape, thing.style)
    ]
    pen.polygon(corners, fill=thing.rgb)
