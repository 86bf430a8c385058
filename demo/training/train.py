"""
`python -m demo.training.train`: train all demo models from scratch, then print their evaluation.

Seeded and resumable: stop it at any time and start it again.  State is kept under `build/`.
"""

import argparse
from pathlib import Path

from demo.training import (
    clip_training,
    detector_training,
    nli_training,
    question_training,
    vqa_training,
)
from demo.training.evaluation import report, report_detector, report_questions
from demo.training.language import WORDS
from models.checkpoints.locate import DEMO
from models.families.clip.model import Clip
from models.families.clip_flant5.model import ClipFlanT5
from models.families.detector.mask2former import Mask2Former
from models.families.question_llm.model import QuestionLLM


def say(line: str) -> None:
    """Print and flush, also into a pipe."""
    print(line, flush=True)


TRAININGS = {
    "vqa": ("clip_flant5", vqa_training.train),
    "clip": ("clip", clip_training.train),
    "questions": ("question_llm", question_training.train),
    "nli": ("nli", nli_training.train),
    "detector": ("detector", detector_training.train),
}


def main() -> None:
    """Train, then evaluate on held-out scenes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, default=DEMO, help="where the checkpoints go")
    parser.add_argument("--state", type=Path, default=Path("build/demo-training"))
    parser.add_argument("--cases", type=int, default=500, help="held-out pictures per kind")
    parser.add_argument("--style-cases", type=int, default=200, help="the same where questions are written")
    parser.add_argument("--only", choices=TRAININGS, help="train one model, and evaluate nothing")
    arguments = parser.parse_args()
    weights, state = arguments.weights, arguments.state
    for role in [arguments.only] if arguments.only else TRAININGS:
        name, train = TRAININGS[role]
        train(weights / name, state, say=say)
        if role != "detector":  # a detector is given no words
            (weights / name / "vocabulary.txt").write_text("\n".join(sorted(WORDS)) + "\n")
    if arguments.only:
        return
    vqa = ClipFlanT5(weights / "clip_flant5", dtype="float32", device="cpu")
    clip = Clip(str(weights / "clip"), dtype="float32", device="cpu")
    report(vqa, clip, arguments.cases, say)
    llm = QuestionLLM(weights / "question_llm", dtype="float32", device="cpu")
    report_questions(llm, arguments.style_cases, say)
    detector = Mask2Former(weights / "detector", dtype="float32", device="cpu")
    report_detector(detector, arguments.cases, say)


if __name__ == "__main__":
    main()
