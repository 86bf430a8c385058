"""Evaluation of the demo detector on held-out scenes."""

from collections import Counter
from collections.abc import Callable
from random import Random

from demo.training.vqa_samples import picture
from demo.training.world import Scene, sample_scene
from models.core.calls import DetectCall
from models.core.contract import CheckpointError
from models.core.outcomes import Detections
from models.families.detector.mask2former import Mask2Former
from models.images.image import Image

SURE = 0.9  # GenEval's threshold for detections that it counts
CLOSE = 0.15  # of the smaller radius: things that nearly touch
BATCH = 32


def counted_right(detector: Mask2Former, count: int, gap: float | None = None) -> float:
    """
    Return the share of *count* held-out pictures in which the count of every shape is right.

    Args:
        gap: distance between things, in radii.
    """
    random, right = Random("held-out-detector"), 0
    for start in range(0, count, BATCH):
        scenes = [sample_scene(random, gap) for _ in range(start, min(start + BATCH, count))]
        images = [Image.of(picture(scene, random), "scene") for scene in scenes]
        found = detector.score([detector.prepare(DetectCall(image, (), SURE)) for image in images])
        right += sum(shapes_of(one) == shapes_in(scene) for one, scene in zip(found, scenes, strict=True))
    return right / count


def shapes_of(found: Detections | Exception) -> Counter[str]:
    """Count the detected shapes.  Raises `CheckpointError` if the model failed."""
    if not isinstance(found, Detections):
        raise CheckpointError(f"the detector found nothing: {found}")
    return Counter(each.label for each in found.found)


def shapes_in(scene: Scene) -> Counter[str]:
    """Count the shapes in a scene."""
    return Counter(thing.shape for thing in scene.things)


def report(detector: Mask2Former, count: int, say: Callable[[str], None] = print) -> None:
    """Print what the detector finds, by kind of scene."""
    say(f"held-out scenes, {count} pictures: all things found, and nothing else, %")
    say(f"{'any':<16} {100 * counted_right(detector, count):>6.1f}")
    say(f"{f'{CLOSE:.0%} apart':<16} {100 * counted_right(detector, count, CLOSE):>6.1f}")
