"""
`scoregate decide`: pictures of a prompt, accepted or not by a policy of the service.

Accepts, reviews or rejects pictures by a policy of the service; that of the demo is `show`. The status is 0
if all are accepted, else 1:

```console
$ scoregate decide binding.png count.png -p "a green circle and a red square" --policy show
PICTURE      DECISION  BECAUSE
binding.png  accept    vqascore 0.999896 >= 0.5
count.png    reject    vqascore 0.0131889 < 0.5
```

With `--local` the policies are in the profile, or in `--policy-file FILE`. `--keep N` accepts the best N at
most, by the policy's `rank_by`. `--policy` may be given several times: the first decides, and the table
shows all. `-o FILE` writes JSON. A file that is no picture is decided by the policy's `unreadable`.
"""

import argparse
from collections.abc import Iterator, Sequence

import scoregate
from scoregate.cli.arguments import NO_SCORE, OK, add_settings, service_of, settings_of
from scoregate.cli.warnings import warn
from scoregate.runs.request import DecisionSettings, decide_images
from scoregate.text import complain, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, DecisionSettings)


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some picture is not accepted."""
    settings = settings_of(DecisionSettings, arguments)
    decisions, names, faults = decide_images(settings, service_of(arguments))
    complain(*faults)
    print(as_text(decisions, names))
    complain(*complaints(decisions, names))
    warn(decisions, names)
    return OK if len(decisions.accepted) == len(decisions) else NO_SCORE


def as_text(decisions: scoregate.Decisions, names: Sequence[str]) -> str:
    """Return a table of the decisions, with a column for each policy."""
    policies = list(decisions[0].policies)
    rows = [
        [
            name,
            *([one.policies[policy].decision for policy in policies] or [one.decision]),
            one.because,
        ]
        for name, one in zip(names, decisions, strict=True)
    ]
    return table(["PICTURE", *(policies or ["DECISION"]), "BECAUSE"], rows)


def complaints(decisions: scoregate.Decisions, names: Sequence[str]) -> Iterator[str]:
    """Yield why scores are missing."""
    for name, one in zip(names, decisions, strict=True):
        for metric, error in one.errors.items():
            yield f"{name}: no {metric}: {error.code}: {error.detail}"
