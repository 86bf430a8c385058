"""`scoregate verify`: compare the service's scores with published ones."""

import argparse
import sys
from pathlib import Path

import scoregate
from scoregate.cli.arguments import connected
from scoregate.cli.exits import NO_SCORE, OK, NoResult, UsageFault
from scoregate.cli.published import PICTURES, PROMPTS, PUBLISHED, disordered
from scoregate.cli.text import shown, table

HELP = "compare the scores of known pictures with published ones"
TIMEOUT_S = 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--t2v-metrics", type=Path, metavar="DIR", required=True, help="a checkout of linzhiqiu/t2v_metrics"
    )
    parser.add_argument(
        "--host", dest="base_url", metavar="URL", default=argparse.SUPPRESS, help="the same as --base-url"
    )


def run(arguments: argparse.Namespace) -> int:
    """Return 0 if every checked score holds, otherwise 1."""
    with connected(arguments, TIMEOUT_S) as client:
        metrics = checked(client)
        if not metrics:
            raise NoResult("nothing was checked: no model with published scores is loaded")
        items = [
            scoregate.Item(prompt=prompt, image=read(arguments.t2v_metrics / folder / name))
            for folder, prompt in PROMPTS.items()
            for name in PICTURES
        ]
        results = list(client.score_items(items, metrics))
    for number, result in enumerate(results):
        for metric, error in result.errors.items():
            print(shown(f"item {number}: no {metric}: {error.code}: {error.detail}"), file=sys.stderr)
    return OK if all([holds(metric, results) for metric in metrics]) else NO_SCORE


def checked(client: scoregate.Client) -> list[str]:
    """Return the metrics with the published model, and print the others."""
    answer = client.models()
    ids = {model["name"]: model["id"] for model in answer["models"]}
    found = []
    for metric, published in PUBLISHED.items():
        used = [ids.get(name, "") for name in answer["metrics"].get(metric, {}).get("models", ())]
        if any(map(published.model.search, used)):
            found.append(metric)
        else:
            loaded = f"its model is {', '.join(used)}" if used else "it is not loaded"
            print(shown(f"{metric}: not checked; {loaded}, not {published.model.pattern}"))
    return found


def read(path: Path) -> bytes:
    """Return the bytes of a picture.  Raises `UsageFault`."""
    try:
        return path.read_bytes()
    except OSError as exc:
        raise UsageFault(f"{path}: {exc.strerror}; is --t2v-metrics a checkout of t2v_metrics?") from exc


def holds(metric: str, results: list[scoregate.Result]) -> bool:
    """Print the scores of *metric* next to the published ones.  Return True if order and values hold."""
    published, sound, rows = PUBLISHED[metric], True, []
    for number, (folder, values) in enumerate(published.values.items()):
        part = results[number * len(PICTURES) : (number + 1) * len(PICTURES)]
        scores = [result.scores.get(metric) for result in part]
        for name, value, score in zip(PICTURES, values, scores, strict=True):
            near = score is not None and abs(score - value) <= published.tolerance
            sound &= near
            got = "-" if score is None else f"{score:.3f}"
            rows.append([f"{folder}/{name}", f"{value:.3f}", got, "✓" if near else "✗"])
        known = [score for score in scores if score is not None]
        order = len(known) == len(values) and not disordered(values, known)
        sound &= order
        rows.append([f"{folder}: order", "", "", "✓" if order else "✗"])
    heads = [metric, "PUBLISHED", "SCORE", f"WITHIN {published.tolerance:g}"]
    print(f"{table(heads, rows, right=heads[1:3])}\n")
    return sound
