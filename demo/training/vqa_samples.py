"""Training batches for the demo VQA model: pictures, statements, and the renderer's ground truth."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import PIL.Image
import PIL.ImageDraw
import torch
from torch.nn.utils.rnn import pad_sequence

from demo.training.facts import RELATIVE
from demo.training.language import PLURALS, Mention, Statement, matches
from demo.training.vqa_questions import MIX, REPORTED, TrainingQuestion, sample_question
from demo.training.world import (
    COLOURS,
    RADIUS,
    RELATIONS,
    SHAPES,
    Scene,
    clear_relation,
    draw,
    sample_scene,
)
from models.families.clip_flant5.tokens import IGNORE, T5Tokenizer
from models.images.pixels import Pixels

SIZE, PATCH = 70, 10
GRID = SIZE // PATCH
QUESTIONS = 8  # questions about each picture
AFTER = 16  # tokens after the image, padded
SMALLEST = (RADIUS[0], 0.1)  # radii that the tower finds hard
NEARLY_TOUCHING = (0.05, 0.3)  # gaps, in radii
ANSWER = 3  # tokens of an answer, padded: "left of" and the end


@dataclass(frozen=True, slots=True)
class Batch:
    """
    n pictures, m = n * QUESTIONS; -100 and NaN mean "ignore".

    Attributes:
        pixels: (n, 3, SIZE, SIZE) float32.
        shapes, colours: (n, GRID * GRID) class under each patch, 0 is the background.
        centres: (n, GRID * GRID) 1 where a thing has its centre.
        places: (n, GRID * GRID, 3) the thing's centre from the top left, and its radius, in patches.
        ids: (m, AFTER) token ids after the image, padded with 0.
        answers: (m, ANSWER) token ids of the answer, with its end.
        kinds: (m,) number in REPORTED.
        mentions: (m, 2) index of each mention's noun in `ids`; -1 without one.
        present: (m, 2), counts: (m, 2), spots: (m, 2, 2) what the picture has of each mention.
        belongs: (m, 2, GRID * GRID) patches covered by what each mention means.
        relation_at: (m,) index of the relation word, or -1; relations: (m,) the true relation.
    """

    pixels: torch.Tensor
    shapes: torch.Tensor
    colours: torch.Tensor
    centres: torch.Tensor
    places: torch.Tensor
    ids: torch.Tensor
    answers: torch.Tensor
    kinds: torch.Tensor
    mentions: torch.Tensor
    present: torch.Tensor
    counts: torch.Tensor
    spots: torch.Tensor
    belongs: torch.Tensor
    relation_at: torch.Tensor
    relations: torch.Tensor


class Nouns:
    """Finds the words of a tokenised question that the side heads use."""

    def __init__(self, tokenizer: T5Tokenizer) -> None:
        def ids(*words: str) -> set[int]:
            return {tokenizer.encode(start + word)[0] for word in words for start in ("", '"')}

        self._nouns = ids(*SHAPES, *PLURALS.values())
        self._relations = {*ids(*(word.split()[0] for word in RELATIONS)), tokenizer.encode(RELATIVE)[0]}

    def mentions(self, ids: Sequence[int]) -> list[int]:
        """Return the indices of the first two nouns."""
        return [place for place, id in enumerate(ids) if id in self._nouns][:2]

    def relation(self, ids: Sequence[int]) -> int:
        """Return the index of the last word of a relation, -1 if there is none."""
        return max((place for place, id in enumerate(ids) if id in self._relations), default=-1)


def image_of(scene: Scene, random: Random) -> PIL.Image.Image:
    """Return a picture like users': any size, sometimes through JPEG, sometimes without smoothing."""
    long = random.randint(64, 160) if random.random() < 0.8 else random.randint(160, 384)
    image = draw(scene, long, supersample=random.choice((1, 2, 3, 3)))
    if random.random() < 0.3:
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=random.randint(50, 95))
        image = PIL.Image.open(buffer).convert("RGB")
    return image


def cover(scene: Scene) -> np.ndarray:
    """Return the thing under each patch (GRID * GRID): its number from 1, 0 for none, -1 mixed."""
    canvas = PIL.Image.new("L", (SIZE, SIZE))
    pen = PIL.ImageDraw.Draw(canvas)
    left, top = (1 - scene.width) / 2, (1 - scene.height) / 2
    for number, thing in enumerate(scene.things, 1):
        x, y, r = (thing.x + left) * SIZE, (thing.y + top) * SIZE, thing.radius * 0.9 * SIZE
        pen.ellipse((x - r, y - r, x + r, y + r), fill=number)
    tiles = np.asarray(canvas).reshape(GRID, PATCH, GRID, PATCH).transpose(0, 2, 1, 3)
    patches = tiles.reshape(GRID * GRID, PATCH * PATCH)
    areas = np.stack([(patches == n).sum(1) for n in range(len(scene.things) + 1)], 1)
    best = areas[:, 1:].argmax(1) + 1
    most = areas[:, 1:].max(1)
    return np.where(most >= 16, best, np.where(most == 0, 0, -1))


def centre_patch(scene: Scene, number: int) -> tuple[float, float, int]:
    """Return a thing's centre in patches within the padded square, and the patch that contains it."""
    thing = scene.things[number]
    x = (thing.x + (1 - scene.width) / 2) * GRID
    y = (thing.y + (1 - scene.height) / 2) * GRID
    return x, y, min(int(y), GRID - 1) * GRID + min(int(x), GRID - 1)


@dataclass(frozen=True, slots=True)
class Patches:
    """Targets of the patches of n pictures, as in `Batch`."""

    pixels: torch.Tensor
    shapes: torch.Tensor
    colours: torch.Tensor
    centres: torch.Tensor
    places: torch.Tensor


def label_patches(scene: Scene) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return the thing under each patch, and shapes, colours, centres, places of one picture."""
    under = cover(scene)
    shapes, colours = (np.where(under == 0, 0, IGNORE) for _ in range(2))
    centres = np.zeros(len(under), np.float32)
    places = np.full((len(under), 3), np.nan, np.float32)
    for number, thing in enumerate(scene.things, 1):
        x, y, cell = centre_patch(scene, number - 1)
        where = np.nonzero(under == number)[0]
        shapes[where] = SHAPES.index(thing.shape) + 1
        colours[where] = tuple(COLOURS).index(thing.colour) + 1
        centres[cell] = 1
        places[where] = x, y, thing.radius * GRID
    return under, (shapes, colours, centres, places)


def make_patches(scenes: int, seed: str, pixels: Pixels, small: bool = False) -> Patches:
    """Return the pictures of *seed* with their patches' targets, each also mirrored; half *small*."""
    random = Random(seed)
    images, labels = [], []
    for n in range(scenes):
        scene = sample_scene(random, radii=SMALLEST if small and n % 2 else RADIUS)
        images.append(pixels(image_of(scene, random)))
        labels.append(label_patches(scene)[1])
    image = torch.stack(images)
    plain = [torch.from_numpy(np.stack(column)) for column in zip(*labels, strict=True)]
    mirrored = [t.reshape(len(t), GRID, GRID, -1).flip(2).reshape(t.shape) for t in plain]
    mirrored[3][..., 0] = GRID - mirrored[3][..., 0]
    both = [torch.cat(pair) for pair in zip(plain, mirrored, strict=True)]
    return Patches(torch.cat([image, image.flip(3)]), *both)


def questions(scene: Scene, random: Random, mix: Sequence[str] = MIX) -> list[TrainingQuestion]:
    """Return QUESTIONS questions about *scene*, of the kinds in *mix*."""
    made: list[TrainingQuestion] = []
    while len(made) < QUESTIONS:
        asked = sample_question(scene, random, mix)
        if asked is not None:
            made.append(asked)
    return made


def make_batch(
    scenes: int,
    seed: str,
    tokenizer: T5Tokenizer,
    nouns: Nouns,
    pixels: Pixels,
    close: bool = False,
    mix: Sequence[str] = MIX,
) -> Batch:
    """
    Return the batch of *seed*, deterministic.

    Args:
        close: in half of the scenes things nearly touch, and the kinds of questions are those of *mix*.
    """
    random = Random(seed)
    cells, rows = GRID * GRID, scenes * QUESTIONS
    images, labels = [], []
    ids = np.zeros((rows, AFTER), np.int64)
    answers = np.full((rows, ANSWER), IGNORE)
    kinds = np.zeros(rows, np.int64)
    mentions = np.full((rows, 2), -1)
    present = np.full((rows, 2), IGNORE)
    counts = np.full((rows, 2), IGNORE)
    spots = np.full((rows, 2, 2), np.nan, np.float32)
    belongs = np.full((rows, 2, cells), np.nan, np.float32)
    relation_at = np.full(rows, -1)
    relations = np.full(rows, IGNORE)
    for n in range(scenes):
        near = close and n % 2
        scene = sample_scene(random, random.uniform(*NEARLY_TOUCHING) if near else None)
        images.append(pixels(image_of(scene, random)))
        under, known = label_patches(scene)
        labels.append(known)
        middles = [centre_patch(scene, number) for number in range(len(scene.things))]
        for row, asked in enumerate(questions(scene, random, mix if near else MIX), n * QUESTIONS):
            after, answer = tokenizer.around_image(asked.text)[1], tokenizer.encode(asked.answer)
            ids[row, : len(after)], answers[row, : len(answer)] = after, answer
            kinds[row] = REPORTED.index(asked.reported)
            for slot, (place, words) in enumerate(zip(nouns.mentions(after), asked.meant, strict=False)):
                found = [m for m, thing in enumerate(scene.things) if words.matches(thing)]
                mentions[row, slot] = place
                present[row, slot], counts[row, slot] = bool(found), len(found)
                belongs[row, slot] = np.isin(under, [m + 1 for m in found])
                belongs[row, slot, under == -1] = np.nan
                if len(found) == 1:
                    spots[row, slot] = middles[found[0]][:2]
            held = holds(asked.about, scene)
            if held is not None:
                relation_at[row] = nouns.relation(after)
                relations[row] = RELATIONS.index(held)
    patches = [np.stack(column) for column in zip(*labels, strict=True)]
    rest = (ids, answers, kinds, mentions, present, counts, spots, belongs, relation_at, relations)
    return Batch(torch.stack(images), *(torch.from_numpy(array) for array in (*patches, *rest)))


def make_captions(
    scenes: int, seed: str, tokenizer: T5Tokenizer, pixels: Pixels
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return pictures, the first words of their captions (n, AFTER), and the rest as labels (n, longest)."""
    random = Random(seed)
    images: list[torch.Tensor] = []
    labels: list[torch.Tensor] = []
    ids = torch.zeros(scenes, AFTER, dtype=torch.long)
    while len(images) < scenes:
        scene = sample_scene(random)
        words = caption(scene).split()
        split = random.randrange(len(words))
        after = tokenizer.around_image(" ".join(words[:split]))[1]
        if len(after) > AFTER:
            continue
        ids[len(images), : len(after)] = torch.tensor(after)
        images.append(pixels(image_of(scene, random)))
        labels.append(torch.tensor(tokenizer.encode(" ".join(words[split:]))))
    return torch.stack(images), ids, pad_sequence(labels, batch_first=True, padding_value=IGNORE)


def caption(scene: Scene) -> str:
    """Return a description of the whole picture, from left to right."""
    things = sorted(scene.things, key=lambda thing: thing.x)
    return " and ".join(Mention(thing.shape, thing.colour).noun for thing in things)


def holds(statement: Statement, scene: Scene) -> str | None:
    """Return the true relation between the two things of a relation statement."""
    if statement.relation is None or statement.second is None:
        return None
    ones, others = matches(statement.first, scene), matches(statement.second, scene)
    if len(ones) != 1 or len(others) != 1 or ones == others:
        return None
    return clear_relation(ones[0], others[0])
