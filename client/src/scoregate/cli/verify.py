"""`scoregate verify`: compare the service's scores with known ones."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import scoregate
from scoregate.cli.arguments import connected
from scoregate.cli.exits import NO_SCORE, OK, NoResult, UsageFault
from scoregate.cli.known import Case, Known, disordered, label
from scoregate.cli.published import published
from scoregate.cli.shipped import shipped
from scoregate.text import shown, table

HELP = "compare the scores of known pictures with shipped or published ones"
TIMEOUT_S = 300.0


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
        used = models_of(client)
        chosen = loaded(theirs if checkout else ours, used)
        for line in unchecked([*ours, *theirs], chosen, used):
            print(shown(line))
        if not chosen:
            raise NoResult("nothing was checked: none of these scores is of a loaded model")
        return OK if all([holds(known, score(client, known)) for known in chosen]) else NO_SCORE


def models_of(client: scoregate.Client) -> dict[str, list[str]]:
    """Return the labels of the models of each metric."""
    answer = client.models()
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
    items = [scoregate.Item(prompt=case.prompt, image=read(case.picture)) for case in known.cases]
    results = list(client.score_items(items, [known.metric]))
    for case, result in zip(known.cases, results, strict=True):
        for metric, error in result.errors.items():
            print(shown(f"{case.name}: no {metric}: {error.code}: {error.detail}"), file=sys.stderr)
    return [result.scores.get(known.metric) for result in results]


def read(path: Path) -> bytes:
    """Return the bytes of a picture.  Raises `UsageFault`."""
    try:
        return path.read_bytes()
    except OSError as exc:
        raise UsageFault(f"{path}: {exc.strerror}; is --t2v-metrics a checkout of t2v_metrics?") from exc


def holds(known: Known, scores: Sequence[float | None]) -> bool:
    """Print *scores* next to the known ones.  Return True if order and values hold."""
    left, sound, rows = iter(scores), True, []
    for name, cases in known.groups.items():
        part = [next(left) for _ in cases]
        for case, value in zip(cases, part, strict=True):
            near = value is not None and abs(value - case.score) <= known.tolerance
            sound &= near
            got = "-" if value is None else f"{value:.4f}"
            rows.append([case.name, f"{case.score:.4f}", got, sign(near)])
        order = ordered(cases, part)
        sound &= order
        rows.append([f"{name}: order", "", "", sign(order)])
    heads = [known.metric, "KNOWN", "SCORE", f"WITHIN {known.tolerance:g}"]
    print(f"{table(heads, rows, right=heads[1:3])}\n")
    return sound


def ordered(cases: Sequence[Case], scores: Sequence[float | None]) -> bool:
    """Return True if all *scores* are there and in the known order."""
    there = [value for value in scores if value is not None]
    return len(there) == len(cases) and not disordered([case.score for case in cases], there)


def sign(sound: bool) -> str:
    """Return the mark of a check."""
    return "✓" if sound else "✗"
