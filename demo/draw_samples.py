"""`python -m demo.draw_samples`: draw the pictures that `make demo` scores, and write their prompts."""

import json
from dataclasses import dataclass
from typing import Any

from demo.samples import FOLDER, PROMPTS
from demo.training.language import Mention, Statement, metadata_of
from demo.training.world import COLOURS, Scene, Thing, draw

RED_CIRCLE, BLUE_SQUARE = Mention("circle", "red"), Mention("square", "blue")
PURPLE_DIAMOND, WHITE_HEART = Mention("diamond", "purple"), Mention("heart", "white")


@dataclass(frozen=True, slots=True)
class Sample:
    """A scene, its file, and a true and a false statement about it."""

    file: str
    longer_side: int  # pixels
    scene: Scene
    right: Statement
    wrong: Statement


def thing(
    colour: str, shape: str, x: float, y: float, radius: float, tilt: float = 0.0, shade: int = 1
) -> Thing:
    """Return a thing in the *shade*-th anchor of its colour."""
    return Thing(shape, colour, x, y, radius, COLOURS[colour][shade], tilt)


def scene(width: float, height: float, grey: int, *things: Thing) -> Scene:
    return Scene(width, height, (grey, grey, grey), things)


SAMPLES = (
    Sample(
        "presence.jpg",
        480,
        scene(
            1, 0.75, 160, thing("orange", "heart", 0.32, 0.4, 0.16), thing("black", "ring", 0.72, 0.36, 0.15)
        ),
        Statement("presence", Mention("heart", "orange")),
        Statement("presence", Mention("heart", "black")),
    ),
    Sample(
        "binding.png",
        400,
        scene(
            1, 1, 185, thing("green", "circle", 0.3, 0.65, 0.16), thing("red", "square", 0.7, 0.35, 0.16, 5)
        ),
        Statement("binding", Mention("circle", "green"), Mention("square", "red")),
        Statement("binding", Mention("circle", "red"), Mention("square", "green")),
    ),
    Sample(
        "binding-among-three.jpg",
        640,
        scene(
            1,
            0.625,
            140,
            thing("yellow", "diamond", 0.2, 0.33, 0.15),
            thing("blue", "star", 0.53, 0.22, 0.15, -6),
            thing("red", "triangle", 0.82, 0.4, 0.15),
        ),
        Statement("binding", Mention("star", "blue"), Mention("triangle", "red")),
        Statement("binding", Mention("star", "red"), Mention("triangle", "blue")),
    ),
    Sample(
        "count.png",
        480,
        scene(
            1,
            0.8,
            125,
            thing("yellow", "star", 0.2, 0.24, 0.13),
            thing("yellow", "star", 0.55, 0.55, 0.14, 8),
            thing("yellow", "star", 0.82, 0.22, 0.13, -7),
        ),
        Statement("count", Mention("star", "yellow"), number=3),
        Statement("count", Mention("star", "yellow"), number=4),
    ),
    Sample(
        "count-by-colour.jpg",
        420,
        scene(
            0.8,
            1,
            175,
            thing("red", "square", 0.22, 0.25, 0.13),
            thing("red", "square", 0.56, 0.74, 0.14, -8),
            thing("blue", "square", 0.57, 0.24, 0.14, 6),
        ),
        Statement("count", Mention("square", "red"), number=2),
        Statement("count", Mention("square", "red"), number=3),
    ),
    Sample(
        "relation-left.png",
        560,
        scene(
            1, 0.625, 190, thing("red", "circle", 0.24, 0.3, 0.16), thing("blue", "square", 0.74, 0.34, 0.16)
        ),
        Statement("relation", RED_CIRCLE, BLUE_SQUARE, "left of"),
        Statement("relation", BLUE_SQUARE, RED_CIRCLE, "left of"),
    ),
    Sample(
        "relation-above.jpg",
        480,
        scene(
            0.7,
            1,
            130,
            thing("purple", "diamond", 0.33, 0.25, 0.16),
            thing("white", "heart", 0.38, 0.72, 0.16),
        ),
        Statement("relation", PURPLE_DIAMOND, WHITE_HEART, "above"),
        Statement("relation", PURPLE_DIAMOND, WHITE_HEART, "below"),
    ),
    Sample(
        "negation.png",
        360,
        scene(1, 1, 165, thing("red", "star", 0.3, 0.3, 0.16), thing("green", "circle", 0.68, 0.68, 0.16)),
        Statement("negation", Mention("star", "green")),
        Statement("negation", Mention("star", "red")),
    ),
    Sample(
        "size-small.jpg",
        320,
        scene(
            1,
            0.9,
            195,
            thing("black", "cross", 0.24, 0.65, 0.07),
            thing("orange", "circle", 0.64, 0.38, 0.175),
        ),
        Statement("size", Mention("cross", "black", "small")),
        Statement("size", Mention("cross", "black", "large")),
    ),
    Sample(
        "size-large.png",
        600,
        scene(
            1, 0.7, 150, thing("blue", "ring", 0.32, 0.36, 0.175), thing("yellow", "square", 0.76, 0.28, 0.07)
        ),
        Statement("size", Mention("ring", "blue", "large")),
        Statement("size", Mention("ring", "blue", "small")),
    ),
)


def main() -> None:
    """Write every picture, and the prompts to `prompts.json`."""
    for sample in SAMPLES:
        draw(sample.scene, sample.longer_side).save(FOLDER / sample.file, quality=90, optimize=True)
    PROMPTS.write_text(json.dumps([*map(described, SAMPLES)], indent=1) + "\n", "utf-8")


def described(sample: Sample) -> dict[str, Any]:
    """Return a sample's file, its prompts and their metadata."""
    sides = {"right": sample.right, "wrong": sample.wrong}
    metadata = {side: found for side, each in sides.items() if (found := metadata_of(each))}
    return {"file": sample.file, **{side: each.text for side, each in sides.items()}, "geneval": metadata}


if __name__ == "__main__":
    main()
