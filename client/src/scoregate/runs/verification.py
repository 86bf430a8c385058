"""The scores of known pictures, shipped with the demo models or published, compared with a service's."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import scoregate
from scoregate.errors import InputError, NoResultError, named
from scoregate.local import Service
from scoregate.settings import Setting

MAX_TIE_DIFFERENCE = 0.005  # known scores that differ by no more have no order

# `genai_image_teaser.json` of t2v_metrics at 60ce07b, rounded.  Its README says which prompt a picture has.
IMAGES = ("DALLE3.png", "DeepFloyd.jpg", "Midjourney.jpg", "SDXL.jpg")
PROMPTS = {
    "images/0": "The brown dog chases the black dog around the tree.",
    "images/1": "Two cats sit at the window, the blue one intently watching the rain,"
    " the red one curled up asleep.",
}

# The tolerance is wide: the pictures may be compressed copies of the scored ones.
PUBLISHED_SCORES = {
    "vqascore": (
        re.compile("clip-flant5-xxl", re.IGNORECASE),
        0.05,
        {"images/0": (0.904, 0.317, 0.685, 0.602), "images/1": (0.848, 0.335, 0.780, 0.638)},
    ),
    "clipscore": (
        re.compile("ViT-L-14-336|vit-large-patch14-336", re.IGNORECASE),
        0.02,
        {"images/0": (0.273, 0.254, 0.314, 0.282), "images/1": (0.359, 0.327, 0.363, 0.364)},
    ),
}
SCORE_TOLERANCE = 0.001  # float32 on other processors

GOLDEN = Path(__file__).with_name("golden")
SCORES = GOLDEN / "demo.json"  # `python -m demo.record_golden` writes it


@dataclass(frozen=True, kw_only=True)
class VerificationSettings:
    """Settings of a comparison with known scores; those of the demo models are shipped."""

    t2v_metrics: Annotated[
        Path | None,
        Setting("a checkout of linzhiqiu/t2v_metrics, whose scores are published", metavar="DIR"),
    ] = None


@dataclass(frozen=True, slots=True)
class KnownCase:
    """A picture with a prompt, and the known score; *name* is for people."""

    name: str
    image: Path
    prompt: str
    score: float


@dataclass(frozen=True, slots=True)
class KnownScores:
    """
    Known scores of one metric by one model.

    Attributes:
        model: a pattern that is searched in the `label` of a model.
        tolerance: for each score.
        groups: cases by name.  The order of the scores must hold within each.
        hint: how to have them checked, with settings as `named`.
    """

    metric: str
    model: re.Pattern[str]
    tolerance: float
    groups: Mapping[str, Sequence[KnownCase]]
    hint: str

    @property
    def cases(self) -> list[KnownCase]:
        """All cases, group by group."""
        return [case for group in self.groups.values() for case in group]


@dataclass(frozen=True)
class GroupCheck:
    """The service's scores of the cases of a group, None for a missing one, and the *tolerance* of each."""

    name: str
    cases: Sequence[KnownCase]
    scores: Sequence[float | None]
    tolerance: float

    @property
    def near(self) -> list[bool]:
        """Whether each score is there, and within the tolerance."""
        pairs = zip(self.cases, self.scores, strict=True)
        return [value is not None and abs(value - case.score) <= self.tolerance for case, value in pairs]

    @property
    def ordered(self) -> bool:
        """Whether all scores are there and in the known order."""
        there = [value for value in self.scores if value is not None]
        complete = len(there) == len(self.cases)
        return complete and not disordered([case.score for case in self.cases], there)


@dataclass(frozen=True)
class ScoreCheck:
    """The check of one metric; *errors* are lines about missing scores."""

    known: KnownScores
    groups: Sequence[GroupCheck]
    errors: Sequence[str]

    @property
    def holds(self) -> bool:
        """Whether all values and orders hold."""
        return all(group.ordered and all(group.near) for group in self.groups)


@dataclass(frozen=True)
class Verification:
    """The checks of the metrics whose scores are known; *unchecked* are errors about the others."""

    checks: Sequence[ScoreCheck]
    unchecked: Sequence[NoResultError]

    @property
    def holds(self) -> bool:
        """Whether there is a check, and all hold."""
        return bool(self.checks) and all(check.holds for check in self.checks)


def verify(settings: VerificationSettings, service: Service) -> Verification:
    """
    Score known pictures, and compare the scores and their order with the known ones.

    Raises:
        InputError: a picture of the checkout cannot be read.
        ScoregateError: a request failed as a whole.
    """
    checkout = settings.t2v_metrics
    ours, theirs = shipped(), published(checkout or Path())
    with service.client() as client:
        used = models_of(client, {each.metric for each in (*ours, *theirs)})
        chosen = loaded(theirs if checkout else ours, used)
        errors = [NoResultError(line) for line in unchecked([*ours, *theirs], chosen, used)]
        return Verification([checked(client, known) for known in chosen], errors)


def checked(client: scoregate.Client, known: KnownScores) -> ScoreCheck:
    """Score the cases."""
    items = [scoregate.Item(prompt=case.prompt, image=bytes_of(case.image)) for case in known.cases]
    results = list(client.score_items(items, [known.metric]))
    errors = [
        f"{case.name}: no {metric}: {error.code}: {error.detail}"
        for case, result in zip(known.cases, results, strict=True)
        for metric, error in result.errors.items()
    ]
    left = (result.scores.get(known.metric) for result in results)
    groups = [
        GroupCheck(name, cases, [next(left) for _ in cases], known.tolerance)
        for name, cases in known.groups.items()
    ]
    return ScoreCheck(known, groups, errors)


def label(model: Mapping[str, str]) -> str:
    """Return the identity of a model of `GET /models`, on which its scores depend."""
    return f"{model['id']}@{model.get('revision', '')} in {model.get('dtype', '')}"


def disordered(known: Sequence[float], scores: Sequence[float]) -> list[tuple[int, int]]:
    """Return the pairs whose order differs; known scores within `MAX_TIE_DIFFERENCE` have none."""
    pairs = [(a, b) for a in range(len(scores)) for b in range(a)]
    return [
        (a, b)
        for a, b in pairs
        if abs(known[a] - known[b]) > MAX_TIE_DIFFERENCE
        and (known[a] - known[b]) * (scores[a] - scores[b]) <= 0
    ]


def published(checkout: Path) -> list[KnownScores]:
    """Return the published scores, with the pictures of a *checkout* of t2v_metrics."""
    return [
        KnownScores(
            metric,
            model,
            tolerance,
            {
                folder: [
                    KnownCase(f"{folder}/{name}", checkout / folder / name, PROMPTS[folder], score)
                    for name, score in zip(IMAGES, scores, strict=True)
                ]
                for folder, scores in values.items()
            },
            f"the published scores need {named('t2v_metrics', 'DIR')}",
        )
        for metric, (model, tolerance, values) in PUBLISHED_SCORES.items()
    ]


def shipped() -> list[KnownScores]:
    """Return the shipped scores.  The revision of a demo model is a digest of its weights."""
    return [
        KnownScores(
            metric,
            re.compile(f"^{re.escape(entry['model'])}$"),
            SCORE_TOLERANCE,
            {
                name: [
                    KnownCase(f"{name}: {prompt}", GOLDEN / name, prompt, score)
                    for prompt, score in row.items()
                ]
                for name, row in entry["scores"].items()
            },
            f"the shipped scores are checked without {named('t2v_metrics')}",
        )
        for metric, entry in json.loads(SCORES.read_text("utf-8")).items()
    ]


def models_of(client: scoregate.Client, metrics: Set[str]) -> dict[str, list[str]]:
    """Return the labels of the models of each metric; those of *metrics* are loaded."""
    answer = client.models(sorted(metrics))
    labels = {model["name"]: label(model) for model in answer["models"]}
    return {
        metric: [labels[name] for name in entry.get("models", ()) if name in labels]
        for metric, entry in answer["metrics"].items()
    }


def loaded(known: Sequence[KnownScores], used: Mapping[str, Sequence[str]]) -> list[KnownScores]:
    """Return those of *known* whose model is *used* for the metric."""
    return [each for each in known if any(map(each.model.search, used.get(each.metric, ())))]


def unchecked(
    known: Sequence[KnownScores], chosen: Sequence[KnownScores], used: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield a line for each metric of *known* that is not *chosen*, and one for all other metrics."""
    with_check, comparable = {each.metric for each in chosen}, {each.metric for each in known}
    for metric in sorted(used.keys() & comparable - with_check):
        if found := loaded([each for each in known if each.metric == metric], used):
            yield f"{metric}: not checked; {found[0].hint}"
        else:
            yield f"{metric}: not checked; no scores are known of {', '.join(used[metric]) or 'its model'}"
    if others := [metric for metric in used if metric not in comparable]:
        yield f"not checked, since no scores are known: {', '.join(others)}"


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a picture.  Raises `InputError`."""
    try:
        return path.read_bytes()
    except OSError as exc:
        raise InputError(
            f"{path}: {exc.strerror}; is {named('t2v_metrics')} a checkout of t2v_metrics?"
        ) from exc
