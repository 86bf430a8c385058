"""Figures of logs of decisions: counts, shares, latency, error rates from labels, and drift."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timezone
from heapq import merge
from operator import itemgetter
from typing import Any

import numpy as np

from scoregate.decisions.export import labels_of
from scoregate.decisions.logs import DECISIONS, opened, rows_of
from scoregate.decisions.trial import label_of
from scoregate.evaluation.arrays import Floats
from scoregate.report.decisions.drift import MIN_REFERENCE, Bins, drift, psi
from scoregate.report.decisions.policy_log import DAY_S, NumberedScores, PolicyLog
from scoregate.report.decisions.rates import DrawnRow, as_row, error_rates
from scoregate.report.decisions.settings import ReportSettings

WEEK = 7  # days of a reference
PERCENTILES = (50, 95, 99)

LogFields = dict[str, Any]
DrawingsByPolicy = dict[tuple[str, str], dict[str, Any]]  # keys are ids of policies, and drawings


def content_of(settings: ReportSettings) -> dict[str, Any]:
    """
    Return the figures of logs: single values, and tables as lists of rows.

    Logs without a selected row have empty tables.

    Raises:
        InputError: a log is not valid.
    """
    with opened(settings.logs) as logs:
        for log in logs:
            log.execute("BEGIN")  # all queries see the same rows
        labels = labels_of(logs)
        policies: dict[str, PolicyLog] = {}
        others = dict[tuple[str, str], LogFields]()
        drawn = {id for log in logs for (id,) in log.execute("SELECT DISTINCT decision_id FROM samples")}
        known = set[str]()
        for row in merge(*(rows_of(log, *settings.where()) for log in logs), key=itemgetter("time")):
            policies.setdefault(row["policy"], PolicyLog(row["policy"])).add(row)
            if label := labels.get(row["decision_id"]):
                known.add(row["decision_id"])
                count_label(others, row, label, row["decision_id"] in drawn)
        drawings = drawings_of(logs, settings, labels)
    found = sorted(policies.values(), key=lambda each: (each.name, each.times[0]))
    times = [time for each in found for time in (each.times[0], each.times[-1])]
    return {
        "rows": sum(map(len, found)),
        "from": moment_of(min(times)) if times else None,
        "to": moment_of(max(times)) if times else None,
        "labelled elsewhere": len(labels.keys() - known),
        "policies": [policy_row(each, found) for each in found],
        "days": [row for each in found for row in day_rows(each)],
        "rates": [rate_row(key, each, policies[key[0]], settings.seed) for key, each in drawings.items()],
        "labels": [others[key] for key in sorted(others)],
        "drift": [row for each in found for row in drift_rows(each, settings)],
        "drift days": [row for each in found for row in drift_days(each, settings)],
        "models": [row for each in found for row in model_rows(each)],
        "nearest": [
            {"policy": each.id, "decision": decision, **row}
            for each in found
            for decision in ("accept", "reject")
            for row in each.nearest_rows(decision)
        ],
    }


def count_label(
    others: dict[tuple[str, str], LogFields], row: LogFields, label: LogFields, drawn: bool
) -> None:
    """Count a labelled row by policy and decision."""
    empty = {
        "policy": row["policy"],
        "decision": row["decision"],
        "drawn": 0,
        "good": 0,
        "bad": 0,
        "split": 0,
    }
    counts = others.setdefault((row["policy"], row["decision"]), empty)
    if drawn:
        counts["drawn"] += 1
    else:
        counts[label_of(label["good"])] += 1


def drawings_of(
    logs: Sequence[sqlite3.Connection], settings: ReportSettings, labels: Mapping[str, LogFields]
) -> DrawingsByPolicy:
    """Return the drawn rows of each policy and drawing, with the time of both ends."""
    where, values = settings.where()
    query = (
        "SELECT s.draw, s.probability, s.time AS drawn_at, d.policy, d.decision, d.decision_id, d.time"
        f" FROM (SELECT * FROM decisions WHERE {where}) d JOIN samples s ON s.decision_id = d.decision_id"
        " ORDER BY s.time, s.draw"
    )
    found: DrawingsByPolicy = {}
    for log in logs:
        for row in log.execute(query, values):
            empty = {"rows": [], "first": row["time"], "drawn_at": row["drawn_at"]}
            of = found.setdefault((row["policy"], row["draw"]), empty)
            good = labels[row["decision_id"]]["good"] if row["decision_id"] in labels else None
            of["rows"].append(DrawnRow(row["decision"], row["probability"], good))
            of["first"] = min(of["first"], row["time"])
            of["drawn_at"] = min(of["drawn_at"], row["drawn_at"])
    return dict(sorted(found.items(), key=lambda each: (each[0][0], each[1]["drawn_at"], each[0][1])))


def rate_row(key: tuple[str, str], drawing: Mapping[str, Any], policy: PolicyLog, seed: int) -> LogFields:
    """Return the error rates of a policy by one drawing."""
    rows: Sequence[DrawnRow] = drawing["rows"]
    times = np.asarray(policy.times)
    inside = (times >= drawing["first"]) & (times <= drawing["drawn_at"])
    there = {DECISIONS[code] for code in np.unique(np.asarray(policy.decisions)[inside])}
    undrawn = sorted(there - {row.decision for row in rows})
    return {
        "policy": key[0],
        "drawing": key[1][:8],
        "drawn_at": moment_of(drawing["drawn_at"]),
        "drawn": len(rows),
        "labelled": sum(row.good is not None for row in rows),
        **as_row(error_rates(rows, undrawn, seed)),
    }


def policy_row(policy: PolicyLog, every: Sequence[PolicyLog]) -> LogFields:
    """Return counts and shares of a policy's id, and whether its models are those of the id before it."""
    before = [each for each in every if each.name == policy.name and each.times[0] < policy.times[0]]
    changed = set(before[-1].labels) != set(policy.labels) if before else None
    audited = policy.audits.total()
    ended = policy.audits["complete"] + policy.audits["failed"]
    return {
        "policy": policy.id,
        **counts(policy, np.ones(len(policy), np.bool_)),
        "models_changed": changed,
        "audited": audited,
        "audits_complete": policy.audits["complete"],
        "audits_failed": policy.audits["failed"],
        "audits_dropped": audited - ended,
        "audits_dropped_share": (audited - ended) / audited if audited else None,
    }


def day_rows(policy: PolicyLog) -> Iterator[LogFields]:
    """Yield counts and shares of each day."""
    days = policy.days
    for day in np.unique(days):
        yield {"policy": policy.id, "day": day_of(day), **counts(policy, days == day)}


def counts(policy: PolicyLog, chosen: Any) -> LogFields:
    """Return the figures of some rows of a policy."""
    number = int(chosen.sum())
    codes, open_ = np.asarray(policy.decisions)[chosen], np.asarray(policy.open)[chosen]
    of_each = {name: int((codes == code).sum()) for code, name in enumerate(DECISIONS)}
    times = np.percentile(np.asarray(policy.milliseconds)[chosen], PERCENTILES)
    return {
        "rows": number,
        **of_each,
        **{f"{name}_share": count / number for name, count in of_each.items()},
        "without_score_share": int((open_ == 1).sum()) / number,
        "unreadable_share": int((open_ == 2).sum()) / number,
        **{f"p{each}_ms": float(time) for each, time in zip(PERCENTILES, times, strict=True)},
    }


def model_rows(policy: PolicyLog) -> Iterator[LogFields]:
    """Yield each set of models of a policy's id, with its first and last row."""
    codes, times = np.asarray(policy.models), np.asarray(policy.times)
    for models, code in policy.labels.items():
        rows = times[codes == code]
        named = ", ".join(f"{name}: {label}" for name, label in models)
        yield {
            "policy": policy.id,
            "models": named,
            "first": moment_of(rows[0]),
            "last": moment_of(rows[-1]),
            "rows": len(rows),
        }


def reference_of(policy: PolicyLog, settings: ReportSettings) -> tuple[int, int]:
    """Return the first day of a policy's reference and the last one, since 1970."""
    if settings.reference:
        first, last = (each.toordinal() - date(1970, 1, 1).toordinal() for each in settings.reference)
        return first, last
    first = int(policy.times[0] // DAY_S)
    return first, first + WEEK - 1


def places_of(policy: PolicyLog) -> Iterator[tuple[str, str, NumberedScores]]:
    """Yield each metric, which rows have a fair sample of its scores, and these."""
    for metric in sorted(policy.started):
        if policy.started[metric] == policy.readable:
            yield metric, "all", policy.scored.get(metric, NumberedScores())
        else:
            yield metric, "audits", policy.audited.get(metric, NumberedScores())


def drift_rows(policy: PolicyLog, settings: ReportSettings) -> Iterator[LogFields]:
    """Yield the drift of each metric of a policy's id: all later rows against the reference."""
    first, last = reference_of(policy, settings)
    days, models = policy.days, np.asarray(policy.models)
    sets = [set(models[chosen]) for chosen in ((days >= first) & (days <= last), days > last)]
    for metric, kind, places in places_of(policy):
        before, later = parted(places, days, first, last)
        of = drift(before, later)
        unseen = kind == "audits" and not len(places.rows)
        yield {
            "policy": policy.id,
            "metric": metric,
            "of": kind,
            "reference": f"{day_of(first)} to {day_of(last)}",
            "before": len(before),
            "later": len(later),
            "psi": of.psi,
            "ks": of.ks,
            "p": of.p,
            "models_changed": sets[0] != sets[1] if all(sets) else None,
            "note": "some decisions skipped it, and no row has a complete audit" if unseen else of.note,
        }


def drift_days(policy: PolicyLog, settings: ReportSettings) -> Iterator[LogFields]:
    """Yield the index of each later day, by metric."""
    first, last = reference_of(policy, settings)
    days = policy.days
    for metric, _, places in places_of(policy):
        before, _ = parted(places, days, first, last)
        if len(before) < MIN_REFERENCE:
            continue
        bins, scores = Bins(before), np.asarray(places.scores)
        expected, of_scores = bins.counts(before), days[np.asarray(places.rows)]
        for day in np.unique(of_scores[of_scores > last]):
            there = scores[of_scores == day]
            found = psi(expected, bins.counts(there))
            yield {
                "policy": policy.id,
                "metric": metric,
                "day": day_of(day),
                "rows": len(there),
                "psi": found,
            }


def parted(places: NumberedScores, days: Floats, first: int, last: int) -> tuple[Floats, Floats]:
    """Return the scores of the reference, and those after it."""
    scores = np.asarray(places.scores)
    of_scores = days[np.asarray(places.rows, np.int64)]
    return scores[(of_scores >= first) & (of_scores <= last)], scores[of_scores > last]


def day_of(day: float) -> str:
    """Return the date of a day since 1970."""
    return date.fromordinal(int(day) + date(1970, 1, 1).toordinal()).isoformat()


def moment_of(time: float) -> str:
    """Return a time as text."""
    return datetime.fromtimestamp(time, timezone.utc).isoformat(timespec="seconds")
