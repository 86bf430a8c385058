"""`python -m demo.draw_samples`: draw the pictures that `make demo` scores."""

import json

from demo.samples import FOLDER, PROMPTS
from demo.samples.scenes import SAMPLES
from models.demo.world import draw


def main() -> None:
    """Write every picture and, beside them, the prompts."""
    for sample in SAMPLES:
        draw(sample.scene, sample.longer_side).save(FOLDER / sample.file, quality=90, optimize=True)
    prompts = [{"file": s.file, "right": s.right.text, "wrong": s.wrong.text} for s in SAMPLES]
    PROMPTS.write_text(json.dumps(prompts, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
