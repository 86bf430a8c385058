"""
`scoregate verify`: compare the service's scores with known ones.

Scores known pictures and compares the scores, and their order where the known ones of a picture or prompt
differ by more than 0.005.

* Without an argument it checks the demo models, `vqascore` and `clipscore` within 0.001.
* `--t2v-metrics DIR` checks published scores in a checkout of t2v_metrics (commit `10d549b`): `vqascore` by
  CLIP-FlanT5-XXL within 0.05, `clipscore` by CLIP ViT-L/14-336 within 0.02. It has not been run yet.
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import scoregate
from scoregate.cli.arguments import NO_SCORE, OK, UsageError, connected
from scoregate.errors import NoResultError
from scoregate.text import complain, fixed, shown, table

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
TOLERANCE = 0.001  # float32 on other processors
TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class KnownCase:
    """A picture with a prompt, and the known score; *name* is for people."""

    name: str
    image: Path
    prompt: str
    score: float


@dataclass(frozen=True, slots=True)
class Known:
    """
    Known scores of one metric by one model.

    Attributes:
        model: a pattern that is searched in the `label` of a model.
        tolerance: for each score.
        groups: cases by name.  The order of the scores must hold within each.
        hint: how to have them checked.
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


def published(checkout: Path) -> list[Known]:
    """Return the published scores, with the pictures of a *checkout* of t2v_metrics."""
    return [
        Known(
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
            "the published scores need --t2v-metrics DIR",
        )
        for metric, (model, tolerance, values) in PUBLISHED_SCORES.items()
    ]


GOLDEN = Path(__file__).with_name("golden")
SCORES = GOLDEN / "demo.json"  # `python -m demo.record_golden` writes it


def shipped() -> list[Known]:
    """Return the shipped scores.  The revision of a demo model is a digest of its weights."""
    return [
        Known(
            metric,
            re.compile(f"^{re.escape(entry['model'])}$"),
            TOLERANCE,
            {
                name: [
                    KnownCase(f"{name}: {prompt}", GOLDEN / name, prompt, score)
                    for prompt, score in row.items()
                ]
                for name, row in entry["scores"].items()
            },
            "the shipped scores are checked without --t2v-metrics",
        )
        for metric, entry in json.loads(SCORES.read_text("utf-8")).items()
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--t2v-metrics",
        type=Path,
        metavar="DIR",
        help="a checkout of linzhiqiu/t2v_metrics, whose scores are published",
    )
    parser.add_argument(
        "--host", dest="base_url", metavar="URL", default=argparse.SUPPRESS, help="the same as --base-url"
    )


def run(arguments: argparse.Namespace) -> int:
    """Return 0 if every checked score holds, otherwise 1."""
    checkout = arguments.t2v_metrics
    ours, theirs = shipped(), published(checkout or Path())
    with connected(arguments, TIMEOUT_S) as client:
        used = models_of(client, {each.metric for each in (*ours, *theirs)})
        chosen = loaded(theirs if checkout else ours, used)
        for line in unchecked([*ours, *theirs], chosen, used):
            print(shown(line))
        if not chosen:
            raise NoResultError("nothing was checked: none of these scores is of a loaded model")
        return OK if all([holds(known, score(client, known)) for known in chosen]) else NO_SCORE


def models_of(client: scoregate.Client, metrics: Set[str]) -> dict[str, list[str]]:
    """Return the labels of the models of each metric; those of *metrics* are loaded."""
    answer = client.models(sorted(metrics))
    labels = {model["name"]: label(model) for model in answer["models"]}
    return {
        metric: [labels[name] for name in entry.get("models", ()) if name in labels]
        for metric, entry in answer["metrics"].items()
    }


def loaded(known: Sequence[Known], used: Mapping[str, Sequence[str]]) -> list[Known]:
    """Return those of *known* whose model is *used* for the metric."""
    return [each for each in known if any(map(each.model.search, used.get(each.metric, ())))]


def unchecked(
    known: Sequence[Known], chosen: Sequence[Known], used: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield a line for each metric of *known* that is not *chosen*, and one for all other metrics."""
    checked, comparable = {each.metric for each in chosen}, {each.metric for each in known}
    for metric in sorted(used.keys() & comparable - checked):
        if found := loaded([each for each in known if each.metric == metric], used):
            yield f"{metric}: not checked; {found[0].hint}"
        else:
            yield f"{metric}: not checked; no scores are known of {', '.join(used[metric]) or 'its model'}"
    if others := [metric for metric in used if metric not in comparable]:
        yield f"not checked, since no scores are known: {', '.join(others)}"


def score(client: scoregate.Client, known: Known) -> list[float | None]:
    """Return the service's scores of the cases, and print the errors of the others."""
    items = [scoregate.Item(prompt=case.prompt, image=bytes_of(case.image)) for case in known.cases]
    results = list(client.score_items(items, [known.metric]))
    for case, result in zip(known.cases, results, strict=True):
        for metric, error in result.errors.items():
            complain(f"{case.name}: no {metric}: {error.code}: {error.detail}")
    return [result.scores.get(known.metric) for result in results]


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a picture.  Raises `UsageError`."""
    try:
        return path.read_bytes()
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror}; is --t2v-metrics a checkout of t2v_metrics?") from exc


def holds(known: Known, scores: Sequence[float | None]) -> bool:
    """Print *scores* next to the known ones.  Return True if order and values hold."""
    left, sound, rows = iter(scores), True, []
    for name, cases in known.groups.items():
        part = [next(left) for _ in cases]
        for case, value in zip(cases, part, strict=True):
            near = value is not None and abs(value - case.score) <= known.tolerance
            sound &= near
            got = "-" if value is None else fixed(value)
            rows.append([case.name, fixed(case.score), got, sign(near)])
        order = ordered(cases, part)
        sound &= order
        rows.append([f"{name}: order", "", "", sign(order)])
    heads = [known.metric, "KNOWN", "SCORE", f"WITHIN {known.tolerance:g}"]
    print(f"{table(heads, rows, right=heads[1:3])}\n")
    return sound


def ordered(cases: Sequence[KnownCase], scores: Sequence[float | None]) -> bool:
    """Return True if all *scores* are there and in the known order."""
    there = [value for value in scores if value is not None]
    return len(there) == len(cases) and not disordered([case.score for case in cases], there)


def sign(sound: bool) -> str:
    """Return the mark of a check."""
    return "✓" if sound else "✗"
