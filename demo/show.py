"""`python -m demo.show`: start the service, score the sample pictures, show the results."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpx

from demo.process import SERVICE, Failed, free_port, running, url, wait_until_ready
from demo.scoring import METRICS, TIMEOUT_S, Judged, Pair, scored

LISTED = (
    "GenEval has lists of objects for these prompts, from demo/samples/prompts.json. "
    "A prompt without a list must be one of GenEval's own."
)
CAVEAT = (
    "These are tiny demo models, trained on drawings of coloured shapes. "
    "Their scores mean nothing beyond this world."
)


def main(argv: Sequence[str] | None = None, command: Sequence[str] = SERVICE) -> int:
    """Return 0 if VQAScore prefers every right prompt, else 1; 2 without a result."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="default 0, a free one")
    parser.add_argument("--page", type=Path, default=Path("build/demo.html"), help="default %(default)s")
    parser.add_argument(
        "--no-page", dest="page", action="store_const", const=None, help="print the table alone"
    )
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
    """Score with a temporary service that has no stored questions."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "stderr"
        store = f"sqlite:///{folder}/questions.sqlite3"
        try:
            with running(port, command, log, SCOREGATE_CACHE__QUESTIONS=store) as process:
                wait_until_ready(process, port)
                with httpx.Client(base_url=url(port), timeout=TIMEOUT_S + 10, trust_env=False) as client:
                    return scored(client)
        except Failed as exc:
            lines = log.read_text("utf-8", "replace").splitlines()
            raise Failed("\n  ".join([str(exc), *lines[-1:]])) from exc


def show(pairs: Sequence[Pair], page: Path | None) -> int:
    """Print the table and the verdicts, write a page; return 1 if VQAScore was wrong, else 0."""
    print(f"\n{table(pairs, sys.stdout.isatty())}\n")
    print(f"{verdicts(pairs)}\n{LISTED}\n{CAVEAT}\n")
    for pair in pairs:
        for judged in (pair.right, pair.wrong):
            for metric, detail in judged.errors.items():
                print(f'No {METRICS[metric]} for {pair.file}, "{judged.prompt}": {detail}')
    if page:
        from demo.page import html  # both need the client, which the service's image lacks
        from scoregate.report.html import write_html

        page.parent.mkdir(parents=True, exist_ok=True)
        write_html(page, html(pairs, verdicts(pairs), CAVEAT))
        print(f"Pictures, scores and questions: {page.resolve()}")
    beaten = [pair for pair in pairs if not pair.distinguishes("vqascore")]
    for pair in beaten:
        print(f'✗ {pair.file}: under VQAScore "{pair.right.prompt}" does not beat "{pair.wrong.prompt}"')
    return 1 if beaten else 0


def table(pairs: Sequence[Pair], colour: bool = False) -> str:
    """
    Return two lines a picture: the right prompt, then the wrong one, each with its scores.

    ✓ next to a score means that the right prompt scored above the wrong one, ✗ that it did not.  There is no
    mark if the metric was not requested.
    """
    wide = max(len(pair.file) for pair in pairs)
    words = max(len(judged.prompt) for pair in pairs for judged in (pair.right, pair.wrong))
    heads = "".join(f"  {label:>9}  " for label in METRICS.values())
    lines = [f"{'PICTURE':{wide}}  {'':5}  {'PROMPT':{words}}{heads}".rstrip()]
    for pair in pairs:
        marks = {metric: mark(pair, metric) for metric in METRICS}
        right = "".join(f"{number(pair.right, m)} {painted(mark, colour)}" for m, mark in marks.items())
        wrong = "".join(f"{number(pair.wrong, m)}  " for m in METRICS)
        lines += [
            f"{pair.file:{wide}}  right  {pair.right.prompt:{words}}{right}".rstrip(),
            f"{'':{wide}}  wrong  {pair.wrong.prompt:{words}}{wrong}".rstrip(),
        ]
    return "\n".join(lines)


def mark(pair: Pair, metric: str) -> str:
    """Return the mark of a metric for a pair."""
    if not pair.requested(metric):
        return " "
    return "✓" if pair.distinguishes(metric) else "✗"


def number(judged: Judged, metric: str) -> str:
    """Return a score in its column, a dash if there is none."""
    score = judged.scores.get(metric)
    return f"  {'–' if score is None else f'{score:.3f}':>9}"


def painted(mark: str, colour: bool) -> str:
    return f"\033[{32 if mark == '✓' else 31}m{mark}\033[0m" if colour and mark.strip() else mark


def verdicts(pairs: Sequence[Pair]) -> str:
    """Return how many pairs each metric distinguishes."""
    scored = {metric: [pair for pair in pairs if pair.requested(metric)] for metric in METRICS}
    shares = (
        f"{sum(pair.distinguishes(metric) for pair in some)} of {len(some)}"
        for metric, some in scored.items()
    )
    return "VQAScore tells {} apart, CLIPScore {}, DSG {}, GenEval {}.".format(*shares)


if __name__ == "__main__":
    sys.exit(main())
