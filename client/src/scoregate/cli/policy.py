"""
`scoregate policy`: a new policy, tried on logged decisions or fitted to labelled scores.

Changes of a policy, before users see them.

```sh
scoregate policy try new.toml decisions-*.sqlite3
scoregate policy fit labelled.jsonl --false-accept-rate 0.05 -o policy.toml
```

`try` decides again from the scores in logs, and prints for each logged policy how many decisions change,
from what to what, and by label. The file is a profile, or has `[policies.NAME]` alone; `--name` chooses one
of several. `--policy` and `--since` choose rows, and `--json` prints JSON.

* A row without a metric on which the new policy depends is open, and the metric is named. A metric that
  failed fails again. With no row decided the status is 1.
* Skipping metrics selects rows. So only audited rows give the share of all decisions that change, with its
  interval (Wilson).
* The scores are those of the log, with the options and models of its policies. Rows that their group
  decided are left out.

`fit` reads labelled scores: a result of `batch`, of `decisions export`, or any `.jsonl`, `.csv` or
`.parquet`. It writes a policy with the options of the scores, for a profile or `--policy-file`. The columns
are `good` and `prompt`, or those of `--label` and `--prompt`; `--metric` chooses one metric or two.

* **One metric**: the threshold of calibrate, with the figures of the same rows.
* **Two**, as `a >= x and b >= y`: the prompts are drawn into halves (`--seed`). On the first half it is the
  pair that accepts the most good rows, among pairs whose interval of the false-accept rate (Wilson, 95 %)
  ends at the wanted share at most. The figures are of the other half.
* Without such thresholds the status is 1, and the line says why. For 5 % the first half needs 73 bad rows
  at least.
* Label rows that were drawn without regard to their decision. Rows of `decisions sample` are not: rare
  decisions are in them more often.
"""

import argparse
import json
from collections import Counter

from scoregate.calibration import noted
from scoregate.cli.arguments import NO_SCORE, OK, CommandText, add_commands, add_settings, settings_of
from scoregate.decisions.fit import FitSettings, fit_policy
from scoregate.decisions.trial import LABELS, DecisionChange, Trial, TrialSettings, tried
from scoregate.policy import Verdict
from scoregate.text import say, shown, table

ACTIONS = {
    "try": CommandText(
        "decide again by another policy from the scores of logs, and print what would change",
        "policies.toml decisions.sqlite3",
    ),
    "fit": CommandText(
        "write the policy of one metric or two for a false-accept rate, from labelled scores",
        "scores.jsonl -m vqascore --label good --false-accept-rate 0.01 -o policy.toml",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_commands(parser, "action", ACTIONS, declare, "ACTION")


def declare(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of one action."""
    add_settings(parser, TrialSettings if name == "try" else FitSettings)
    if name == "try":
        parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if no logged row can be decided, or no threshold is good enough."""
    return run_trial(arguments) if arguments.action == "try" else run_fit(arguments)


def run_trial(arguments: argparse.Namespace) -> int:
    """Print what a policy would change."""
    policy, trials = tried(settings_of(TrialSettings, arguments))
    if policy.options:
        note = "the logged scores have the options of their own policies, whatever those of the new one are"
        say(f"warning: {note}")
    if arguments.json:
        found = {id: trial.as_json() for id, trial in trials.items()}
        print(json.dumps({"policy": policy.name, "logged": found}))
    else:
        print("\n\n".join(as_text(id, trial) for id, trial in trials.items()))
    return OK if any(trial.decided for trial in trials.values()) else NO_SCORE


def as_text(id: str, trial: Trial) -> str:
    """Return the changes of one logged policy for people."""
    lines = [f"{shown(id)}: {trial.changed} of {trial.decided} decisions change; {trial.rows} rows"]
    if trial.decided:
        pairs = Counter[tuple[str, Verdict]]()
        for each, count in trial.changes.items():
            pairs[each.old, each.new] += count
        rows = [
            (old, new, count, *(trial.changes[DecisionChange(old, new, label)] or "" for label in LABELS))
            for (old, new), count in sorted(pairs.items())
        ]
        heads = ["FROM", "TO", "ROWS", "GOOD", "BAD", "SPLIT", "NO LABEL"]
        lines += ["", table(heads, rows, right=heads[2:]), ""]
    if trial.open:
        lacking = ", ".join(f"{name} {count}" for name, count in sorted(trial.lacking.items()))
        lines.append(shown(f"{trial.open} rows are open, since they lack a metric: {lacking}"))
    if trial.group:
        lines.append(f"{trial.group} rows were decided by their group, which no log has, and are left out")
    return "\n".join([*lines, of_all(trial)])


def of_all(trial: Trial) -> str:
    """Return the line about all decisions."""
    if not trial.audited:
        return "of all decisions: not known, since no row has a complete audit"
    if trial.of_all is None:
        return (
            f"of all decisions: not known, since {trial.audit_open} of {trial.audited} audited rows are open"
        )
    others = trial.audits.total() - trial.audited
    lost = f"; {others} further audits are not complete, a possible bias" * bool(others)
    return f"of all decisions, by the audited rows: {trial.of_all}{lost}"


def run_fit(arguments: argparse.Namespace) -> int:
    """Write a policy, and print its figures."""
    found = fit_policy(settings_of(FitSettings, arguments))
    for note in (*found.table.warnings, *noted(found.table.left_out, found.table.read)):
        say(f"warning: {note}")
    print("\n".join([f"accept = {found.accept}", *(f"  {line}" for line in found.lines())]))
    return OK
