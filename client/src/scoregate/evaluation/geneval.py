"""GenEval's summary (Ghosh et al. 2023): the share of correct pictures, by task and over prompts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from scoregate.errors import ColumnError
from scoregate.evaluation.arrays import Codes, Floats, Names, coded, floats
from scoregate.evaluation.bootstrap import Sample, means

TASKS = ("single_object", "two_object", "counting", "colors", "position", "color_attr")

Verdicts = Mapping[tuple[str, str], Sequence[float]]  # keys are tasks and prompts


@dataclass(frozen=True)
class GenEval:
    """
    Attributes:
        tasks: the share of correct pictures of each of the six; None for a task without pictures.
        overall: the mean of the six tasks; None if one of them has no pictures.
        images_correct: the share of correct pictures.
        prompts_correct: the share of prompts with a correct picture.
        agreement: the share of verdicts that are people's; None without these.
        kappa: Cohen's, the agreement beyond chance; None without people's verdicts, or if all are the same.
        agreement_by_task, kappa_by_task: within each task.
    """

    tasks: dict[str, float | None]
    overall: float | None
    images_correct: float
    prompts_correct: float
    agreement: float | None
    kappa: float | None
    agreement_by_task: dict[str, float]
    kappa_by_task: dict[str, float | None]
    images: int
    prompts: int


def geneval(tag: Names, prompt: Names, correct: Any, human: Any = None) -> GenEval:
    """
    Return GenEval's summary.

    Args:
        correct: 1 for a picture that GenEval found correct, else 0; *human* are people's verdicts.

    Raises:
        ColumnError: a task that GenEval does not have, or a verdict that is neither 0 nor 1.
    """
    verdicts = truths(correct, "correct")
    people = None if human is None else truths(human, "human")
    if unknown := [name for name in tag if name not in TASKS]:
        raise ColumnError("tag", f"{unknown[0]!r} is no task of GenEval: {', '.join(TASKS)}")
    tags = np.asarray(tag, dtype=object)
    tasks = {task: float(verdicts[tags == task].mean()) if (tags == task).any() else None for task in TASKS}
    shares = [share for share in tasks.values() if share is not None]
    prompts = by_prompt(tag, prompt, verdicts)
    same, by_task = {}, {}
    if people is not None:
        for task in dict.fromkeys(tag):
            a, b = verdicts[tags == task], people[tags == task]
            same[task], by_task[task] = float((a == b).mean()), kappa(a, b)
    return GenEval(
        tasks,
        float(np.mean(shares)) if len(shares) == len(TASKS) else None,
        float(verdicts.mean()),
        fmean(map(any, prompts.values())),
        None if people is None else float((verdicts == people).mean()),
        None if people is None else kappa(verdicts, people),
        same,
        by_task,
        len(verdicts),
        len(prompts),
    )


def by_prompt(tag: Names, prompt: Names, correct: Any) -> Verdicts:
    """Return the verdicts about each prompt's pictures."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for each, verdict in zip(zip(tag, prompt, strict=True), correct, strict=True):
        found[each].append(float(verdict))
    return found


def sample_of(verdicts: Verdicts, cluster: Mapping[tuple[str, str], str] | None = None) -> Sample:
    """
    Return the sample of prompts, whose figures are the shares of `GenEval`.

    The pictures of a prompt are drawn together: they are not independent of each other.

    Args:
        cluster: of each task and prompt; by default each is drawn by itself.
    """
    prompts = sorted(verdicts)
    names, codes = coded([cluster[each] if cluster else "\0".join(each) for each in prompts])
    images = [
        (unit, each[0], verdict)
        for unit, each in zip(codes, prompts, strict=True)
        for verdict in verdicts[each]
    ]
    units, tags, correct = (np.array(column) for column in zip(*images, strict=True))
    of_tasks = {task: (units[tags == task], correct[tags == task]) for task in TASKS}
    of_prompts = codes, [any(verdicts[each]) for each in prompts]
    shares = of_tasks | {"images_correct": (units, correct), "prompts_correct": of_prompts}
    found = means(shares, len(names), shares=shares)

    def figures(times: Codes) -> dict[str, float]:
        drawn = found.figures(times)
        tasks = [drawn[task] for task in TASKS if task in drawn]
        return {**drawn, **({"overall": fmean(tasks)} if len(tasks) == len(TASKS) else {})}

    fewest = min(found.shares.get(task, 0) for task in TASKS)
    return Sample(len(names), figures, {**found.shares, "overall": fewest * len(TASKS)})


def truths(values: Any, argument: str) -> Floats:
    found = floats(values, argument)
    if not np.isin(found, (0, 1)).all():
        raise ColumnError(argument, "a verdict is 0 or 1")
    return found


def kappa(a: Floats, b: Floats) -> float | None:
    """Return Cohen's kappa of two columns of 0 and 1; None if the expected agreement is 1."""
    by_chance = a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
    return None if by_chance == 1 else float(((a == b).mean() - by_chance) / (1 - by_chance))


def tuned(scores: Floats, human: Floats) -> float:
    """
    Return the threshold of *scores* at which most verdicts are people's; of several, the lowest.

    A picture is correct from the threshold on.  It is infinite if no picture is best called correct.
    """
    thresholds = np.append(np.unique(scores), np.inf)
    return float(thresholds[np.argmax([((scores >= each) == human).sum() for each in thresholds])])


def agreed(a: Floats, b: Floats) -> dict[str, float | None]:
    """Return the share of equal verdicts, and kappa."""
    return {"agreement": float((a == b).mean()), "kappa": kappa(a, b)}
