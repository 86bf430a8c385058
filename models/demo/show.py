"""`python -m models.demo.show`: start the service, score the sample pictures, show what it said."""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from models.demo.page import METRICS, Judged, Pair, html
from models.demo.serve import SAMPLES, SERVICE, Failed, free_port, progress, running, url, wait_until_ready

TIMEOUT_S = 300
CAVEAT = (
    "These are tiny demo models, trained on drawings of coloured shapes. "
    "Their scores mean nothing beyond this world."
)


def main(argv: Sequence[str] | None = None, command: Sequence[str] = SERVICE) -> int:
    """0 where every right prompt beats its wrong one under VQAScore, else 1; 2 without an answer."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="default 0, a free one")
    parser.add_argument("--page", type=Path, default=Path("build/demo.html"), help="default %(default)s")
    arguments = parser.parse_args(argv)
    try:
        pairs = scored_by_own_service(free_port(arguments.port), command)
    except KeyboardInterrupt:
        return 130
    except Failed as exc:
        print(f"demo: {exc}", file=sys.stderr)
        return 2
    return show(pairs, arguments.page)


def scored_by_own_service(port: int, command: Sequence[str]) -> list[Pair]:
    """Score with a service that starts with no questions stored and is stopped afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "stderr"
        store = f"sqlite:///{folder}/questions.sqlite3"
        try:
            with running(port, command, log, SCOREGATE_CACHE__QUESTIONS=store) as process:
                wait_until_ready(process, port)
                with httpx.Client(base_url=url(port), timeout=TIMEOUT_S + 10, trust_env=False) as client:
                    return scored(client)
        except Failed as exc:
            said = log.read_text("utf-8", "replace").splitlines()
            raise Failed("\n  ".join([str(exc), *said[-1:]])) from exc


# --- scoring ------------------------------------------------------------------------------------


def scored(client: httpx.Client, samples: Path = SAMPLES) -> list[Pair]:
    """Every sample picture against both of its prompts, in one request."""
    listed = json.loads((samples / "prompts.json").read_text("utf-8"))
    pictures = {sample["file"]: (samples / sample["file"]).read_bytes() for sample in listed}
    request = {
        "items": [
            {"prompt": sample[which], "image": {"part": sample["file"]}}
            for sample in listed
            for which in ("right", "wrong")
        ],
        "metrics": list(METRICS),
        "timeout_ms": TIMEOUT_S * 1000,
        "explain": True,
    }
    progress(f"scoring {len(listed)} pictures against two prompts each")
    results = iter(posted(client, request, pictures))
    progress("")
    return [
        Pair(
            sample["file"],
            pictures[sample["file"]],
            judged(sample["right"], next(results)),
            judged(sample["wrong"], next(results)),
        )
        for sample in listed
    ]


def posted(client: httpx.Client, request: dict[str, Any], pictures: dict[str, bytes]) -> list[dict[str, Any]]:
    """The results of `POST /score`, pictures as file parts.  Raises `Failed` for any other answer."""
    files = {name: (name, data) for name, data in pictures.items()}
    try:
        answer = client.post("/score", data={"request": json.dumps(request)}, files=files)
    except httpx.TransportError as exc:
        raise Failed(f"POST /score got no answer: {exc!r}") from exc
    if answer.status_code != 200:
        raise Failed(f"POST /score was answered {answer.status_code}: {answer.text}")
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def judged(prompt: str, result: dict[str, Any]) -> Judged:
    """What the service says of one picture and prompt."""
    details = result.get("details", {}).get("dsg", {})
    errors = {metric: error["detail"] for metric, error in result.get("errors", {}).items()}
    return Judged(prompt, result["scores"], errors, details.get("questions", []))


# --- showing ------------------------------------------------------------------------------------


def show(pairs: Sequence[Pair], page: Path) -> int:
    """Print the table and the verdicts, write the page; 1 where VQAScore was wrong, else 0."""
    print(f"\n{table(pairs, sys.stdout.isatty())}\n")
    print(f"{verdicts(pairs)}\n{CAVEAT}\n")
    for pair in pairs:
        for judged in (pair.right, pair.wrong):
            for metric, detail in judged.errors.items():
                print(f'No {METRICS[metric]} for {pair.file}, "{judged.prompt}": {detail}')
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(html(pairs, verdicts(pairs), CAVEAT), "utf-8")
    print(f"Pictures, scores and questions: {page.resolve()}")
    beaten = [pair for pair in pairs if not pair.told_apart("vqascore")]
    for pair in beaten:
        print(f'✗ {pair.file}: under VQAScore "{pair.right.prompt}" does not beat "{pair.wrong.prompt}"')
    return 1 if beaten else 0


def table(pairs: Sequence[Pair], colour: bool = False) -> str:
    """
    Two lines a picture: the right prompt, then the wrong one, each with its scores.

    ✓ beside a score says that the right prompt scored above the wrong one, ✗ that it did not.
    """
    wide = max(len(pair.file) for pair in pairs)
    words = max(len(judged.prompt) for pair in pairs for judged in (pair.right, pair.wrong))
    heads = "".join(f"  {label:>9}  " for label in METRICS.values())
    lines = [f"{'PICTURE':{wide}}  {'':5}  {'PROMPT':{words}}{heads}".rstrip()]
    for pair in pairs:
        marks = {metric: "✓" if pair.told_apart(metric) else "✗" for metric in METRICS}
        right = "".join(f"{number(pair.right, m)} {painted(mark, colour)}" for m, mark in marks.items())
        wrong = "".join(f"{number(pair.wrong, m)}  " for m in METRICS)
        lines += [
            f"{pair.file:{wide}}  right  {pair.right.prompt:{words}}{right}",
            f"{'':{wide}}  wrong  {pair.wrong.prompt:{words}}{wrong}".rstrip(),
        ]
    return "\n".join(lines)


def number(judged: Judged, metric: str) -> str:
    """A score in its column, a dash where there is none."""
    score = judged.scores.get(metric)
    return f"  {'–' if score is None else f'{score:.3f}':>9}"


def painted(mark: str, colour: bool) -> str:
    return f"\033[{32 if mark == '✓' else 31}m{mark}\033[0m" if colour else mark


def verdicts(pairs: Sequence[Pair]) -> str:
    """How many pairs each metric tells apart."""
    told = (f"{sum(pair.told_apart(metric) for pair in pairs)} of {len(pairs)}" for metric in METRICS)
    return "VQAScore tells {} apart, CLIPScore {}, DSG {}.".format(*told)


if __name__ == "__main__":
    sys.exit(main())
