"""`python -m demo.show`: start the service, score the sample pictures, show the results."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpx

from demo.page import html
from demo.pairs import METRICS, Pair
from demo.process import SERVICE, Failed, free_port, running, url, wait_until_ready
from demo.scoring import TIMEOUT_S, scored
from demo.table import table, verdicts

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


def show(pairs: Sequence[Pair], page: Path) -> int:
    """Print the table and the verdicts, write the page; return 1 if VQAScore was wrong, else 0."""
    print(f"\n{table(pairs, sys.stdout.isatty())}\n")
    print(f"{verdicts(pairs)}\n{LISTED}\n{CAVEAT}\n")
    for pair in pairs:
        for judged in (pair.right, pair.wrong):
            for metric, detail in judged.errors.items():
                print(f'No {METRICS[metric]} for {pair.file}, "{judged.prompt}": {detail}')
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(html(pairs, verdicts(pairs), CAVEAT), "utf-8")
    print(f"Pictures, scores and questions: {page.resolve()}")
    beaten = [pair for pair in pairs if not pair.distinguishes("vqascore")]
    for pair in beaten:
        print(f'✗ {pair.file}: under VQAScore "{pair.right.prompt}" does not beat "{pair.wrong.prompt}"')
    return 1 if beaten else 0


if __name__ == "__main__":
    sys.exit(main())
