"""`scoregate policy`: a new policy, tried on logged decisions or fitted to labelled scores."""

import argparse
import json
from collections import Counter

from scoregate.calibration import noted
from scoregate.cli.arguments import NO_SCORE, OK, CommandText, add_commands, add_settings, settings_of
from scoregate.decisions.fit import FitSettings, fitted
from scoregate.decisions.policies import as_toml
from scoregate.decisions.trial import LABELS, DecisionChange, Trial, TrialSettings, tried
from scoregate.policy import Verdict
from scoregate.records import BadInput
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
    settings = settings_of(FitSettings, arguments)
    found = fitted(settings)
    for note in (*found.table.warnings, *noted(found.table.left_out, found.table.read)):
        say(f"warning: {note}")
    text = as_toml(found.policy(settings.name), found.lines())
    if settings.out.suffix.lower() != ".toml":
        raise BadInput(f"{settings.out}: the name must end in .toml")
    with settings.out.open("x", encoding="utf-8") as file:  # it may be a profile, which people wrote
        file.write(text)
    print("\n".join([f"accept = {found.accept}", *(f"  {line}" for line in found.lines())]))
    return OK
