"""
Evaluation on held-out scenes and statements: how often the demo models are right.

Scenes come from seeds that training never uses.  Pictures vary in file format and size like those of users.
`make figures` measures the service, and the quality of the questions.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp
from random import Random

from demo.training.exchanges import ANSWERS, exchange
from demo.training.facts import mentions
from demo.training.language import KINDS, Statement, matches, sample_statement
from demo.training.question_prompts import MIX, any_statement, held_out, typed
from demo.training.styles import STYLES
from demo.training.vqa_samples import image_of
from demo.training.world import Scene, sample_scene
from models.core.calls import DetectCall, GenerateCall, ImageCall, LikelihoodCall, TextCall
from models.core.contract import QUESTION, CheckpointError
from models.core.outcomes import Detections, Likelihood, Text
from models.families.clip.model import Clip
from models.families.clip_flant5.model import ClipFlanT5
from models.families.detector.mask2former import Mask2Former
from models.families.question_llm.model import QuestionLLM
from models.images.image import Image

BATCH = 64  # calls
CLOSE = 0.15  # the gap between things that nearly touch, in radii of the smaller
SURE = 0.9  # GenEval's threshold for detections that it counts
IMAGES = 32  # a batch of the detector
MAX_TOKENS = 400


@dataclass(frozen=True, slots=True)
class Case:
    """
    A picture with a statement that is true of it and one that is false.

    Attributes:
        statements: both statements, whose texts are the prompts.
    """

    image: Image
    right: str
    wrong: str
    statements: tuple[Statement, Statement]


def cases(
    kind: str, count: int, seed: str = "held-out", gap: float | None = None, single: bool = False
) -> Iterator[Case]:
    """
    Yield *count* cases of one kind, deterministic.

    Args:
        gap: distance between things, in radii.
        single: each thing that the right prompt names exists once, so it is also right if "a circle"
            means exactly one.
    """
    random = Random(f"{seed}-{kind}")
    made = 0
    while made < count:
        scene = sample_scene(random, gap)
        right = sample_statement(kind, True, scene, random)
        wrong = sample_statement(kind, False, scene, random)
        if right is None or wrong is None:
            continue
        if not single or all(len(matches(words, scene)) == 1 for words in mentions(right)):
            made += 1
            image = Image.of(image_of(scene, random), f"{kind}-{made}")
            yield Case(image, right.text, wrong.text, (right, wrong))


def vqa_scores(model: ClipFlanT5, asked: Sequence[tuple[Image, str]]) -> list[tuple[float, float]]:
    """Return VQAScore (as in the released code) and log-odds of each (image, prompt)."""
    calls = [LikelihoodCall(image, QUESTION.replace("{}", text)) for image, text in asked]
    scores = []
    for start in range(0, len(calls), BATCH):
        for outcome in model.score([model.prepare(call) for call in calls[start : start + BATCH]]):
            if not isinstance(outcome, Likelihood):
                raise CheckpointError("the model says no likelihood")
            scores.append((exp(sum(outcome.log_probs) / 2), outcome.logit))
    return scores


def clip_scores(model: Clip, asked: Sequence[tuple[Image, str]]) -> list[float]:
    """Return the cosine of each (image, prompt)."""
    scores = []
    for image, text in asked:
        calls = [model.prepare(ImageCall(image)), model.prepare(TextCall(text))]
        seen, read = model.score(calls)
        if isinstance(seen, Exception) or isinstance(read, Exception):
            raise CheckpointError("the model embeds nothing")
        scores.append(float(seen.vector @ read.vector))
    return scores


def report(vqa: ClipFlanT5, clip: Clip, count: int, say: Callable[[str], None] = print) -> None:
    """Print the table of `docs/demo-world.md`, except DSG."""
    say(f"held-out scenes, {count} pictures per kind: right prompt above the wrong one, %")
    say(f"{'kind':<16} {'VQAScore':>9} {'CLIPScore':>10} {'single yes/no':>14}")
    for kind, gap in (*((kind, None) for kind in KINDS), ("count", CLOSE)):
        held = list(cases(kind, count, gap=gap))
        asked = [(case.image, text) for case in held for text in (case.right, case.wrong)]
        answers, cosines = vqa_scores(vqa, asked), clip_scores(clip, asked)
        single = sum((logit > 0) == (n % 2 == 0) for n, (_, logit) in enumerate(answers))
        beats = sum(answers[n][1] > answers[n + 1][1] for n in range(0, len(answers), 2))
        nearer = sum(cosines[n] > cosines[n + 1] for n in range(0, len(cosines), 2))
        columns = (beats / count, nearer / count, single / len(answers))
        shown = [f"{100 * value:.1f}" for value in columns]
        name = kind if gap is None else f"{kind}, {gap:.0%} apart"
        say(f"{name:<16} {shown[0]:>9} {shown[1]:>10} {shown[2]:>14}")


def counted_right(detector: Mask2Former, count: int, gap: float | None = None) -> float:
    """
    Return the share of *count* held-out pictures in which the count of every shape is right.

    Args:
        gap: distance between things, in radii.
    """
    random, right = Random("held-out-detector"), 0
    for start in range(0, count, IMAGES):
        scenes = [sample_scene(random, gap) for _ in range(start, min(start + IMAGES, count))]
        images = [Image.of(image_of(scene, random), "scene") for scene in scenes]
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


def report_detector(detector: Mask2Former, count: int, say: Callable[[str], None] = print) -> None:
    """Print what the detector finds, by kind of scene."""
    say(f"held-out scenes, {count} pictures: all things found, and nothing else, %")
    say(f"{'any':<16} {100 * counted_right(detector, count):>6.1f}")
    say(f"{f'{CLOSE:.0%} apart':<16} {100 * counted_right(detector, count, CLOSE):>6.1f}")


def written_right(llm: QuestionLLM, style: str, count: int) -> float:
    """Return the share of held-out statements whose answer in *style* is exactly right."""
    random = Random(f"held-out-{style}")
    right = made = 0
    while made < count:
        statement = any_statement(random.choice(MIX), random)
        if held_out(statement):
            made += 1
            message, answer = exchange(style, typed(statement.text, random), statement, random)
            right += answered(llm, message) == answer
    return right / count


def answered(llm: QuestionLLM, message: str) -> str:
    """Return the LLM's answer, empty if it does not end."""
    (outcome,) = llm.score([llm.prepare(GenerateCall("", message, MAX_TOKENS))])
    return outcome.text if isinstance(outcome, Text) else ""


def report_questions(llm: QuestionLLM, count: int, say: Callable[[str], None] = print) -> None:
    """Print a table of the question styles."""
    say(f"held-out statements, {count} per style: answers that are right to the letter, %")
    for style in (*STYLES, ANSWERS):
        say(f"{style:<18} {100 * written_right(llm, style, count):>6.1f}")
