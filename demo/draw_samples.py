"""`python -m demo.draw_samples`: draw the pictures that `make demo` scores."""

import json
from typing import Any

from demo.samples import FOLDER, PROMPTS
from demo.samples.scenes import SAMPLES, Sample
from demo.training.metadata import metadata_of
from demo.training.world import draw


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
