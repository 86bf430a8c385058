"""
`python -m models.demo.train`: train all demo models from nothing, then print what they can do.

Seeded and resumable: stop it at any time and start it again.  State is kept under `build/`.
"""

import argparse
from pathlib import Path

from models.checkpoints.locate import DEMO
from models.clip.model import Clip
from models.clip_flant5.model import ClipFlanT5
from models.demo import clip_training, question_training, vqa_training
from models.demo.evaluation import report
from models.demo.language import WORDS


def say(line: str) -> None:
    """Print at once, also into a pipe."""
    print(line, flush=True)


def main() -> None:
    """Train, then evaluate on held-out scenes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, default=DEMO, help="where the checkpoints go")
    parser.add_argument("--state", type=Path, default=Path("build/demo-training"))
    parser.add_argument("--cases", type=int, default=500, help="held-out pictures per kind")
    arguments = parser.parse_args()
    weights, state = arguments.weights, arguments.state
    vqa_training.train(weights / "clip_flant5", state, say=say)
    clip_training.train(weights / "clip", state, say=say)
    question_training.train(weights / "question_llm", state, say=say)
    for name in ("clip_flant5", "clip", "question_llm"):
        (weights / name / "vocabulary.txt").write_text("\n".join(sorted(WORDS)) + "\n")
    vqa = ClipFlanT5(weights / "clip_flant5", dtype="float32", device="cpu")
    clip = Clip(str(weights / "clip"), dtype="float32", device="cpu")
    report(vqa, clip, arguments.cases, say)


if __name__ == "__main__":
    main()
