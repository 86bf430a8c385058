"""
`scoregate verify`: compare the service's scores with known ones.

Scores known pictures and compares the scores, and their order where the known ones of a picture or prompt
differ by more than 0.005.

* Without an argument it checks the demo models, `vqascore` and `clipscore` within 0.001.
* `--t2v-metrics DIR` checks published scores in a checkout of t2v_metrics (commit `10d549b`): `vqascore` by
  CLIP-FlanT5-XXL within 0.05, `clipscore` by CLIP ViT-L/14-336 within 0.02. It has not been run yet.
"""

import argparse

from scoregate.cli.arguments import NO_SCORE, OK, add_settings, service_of, settings_of, with_flags
from scoregate.errors import NoResultError
from scoregate.runs.verification import ScoreCheck, VerificationSettings, verify
from scoregate.text import complain, fixed, shown, table

TIMEOUT_S = 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, VerificationSettings)
    parser.add_argument(
        "--host", dest="base_url", metavar="URL", default=argparse.SUPPRESS, help="the same as --base-url"
    )


def run(arguments: argparse.Namespace) -> int:
    """Return 0 if every checked score holds, otherwise 1."""
    found = verify(settings_of(VerificationSettings, arguments), service_of(arguments, TIMEOUT_S))
    for error in found.unchecked:
        print(shown(with_flags(error, arguments)))
    if not found.checks:
        raise NoResultError("nothing was checked: none of these scores is of a loaded model")
    for check in found.checks:
        complain(*check.errors)
        print(f"{as_text(check)}\n")
    return OK if found.holds else NO_SCORE


def as_text(check: ScoreCheck) -> str:
    """Return a table of the scores next to the known ones, and of the orders."""
    rows = []
    for group in check.groups:
        for case, value, near in zip(group.cases, group.scores, group.near, strict=True):
            rows.append([case.name, fixed(case.score), "-" if value is None else fixed(value), sign(near)])
        rows.append([f"{group.name}: order", "", "", sign(group.ordered)])
    heads = [check.known.metric, "KNOWN", "SCORE", f"WITHIN {check.known.tolerance:g}"]
    return table(heads, rows, right=heads[1:3])


def sign(sound: bool) -> str:
    """Return the mark of a check."""
    return "✓" if sound else "✗"
