"""The rows of one policy's id in logs: columns of numbers, and the rows nearest to another decision."""

import re
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heappush, heappushpop
from typing import Any

import numpy as np

from scoregate.decisions.logs import DECISIONS
from scoregate.evaluation.arrays import Floats
from scoregate.expression import Condition, Relation, interval

DAY_S = 86_400
MAX_NEAREST_ROWS = 20  # rows of a list
BY_SCORES = ("expression", "group")  # reasons that are neither an error nor an unreadable picture

WITH_SCORE = re.compile(r"([A-Za-z_][\w.]*) -?[0-9][0-9.]*(?:e[+-]?[0-9]+)?", re.ASCII)


class NumberedScores:
    """The scores of one metric, with the numbers of their rows."""

    def __init__(self) -> None:
        self.rows, self.scores = array("q"), array("d")

    def add(self, row: int, score: float) -> None:
        """Append the score of a row."""
        self.rows.append(row)
        self.scores.append(score)


@dataclass
class PolicyLog:
    """
    The rows of one policy's id, by column.

    Attributes:
        times: seconds since 1970.
        decisions: the index in `DECISIONS`.
        open: 1 for a row that was decided without a score, 2 for an unreadable picture, else 0.
        models: the index in `labels`, the names and labels of the models of a row.
        scored: the scores of each metric that the decisions had.
        audited: the scores of each metric in complete audits.
        readable: the number of rows with a picture that could be read.
        started: the number of these that started a metric.  One that orders groups may be neither started nor
            skipped.
        audits: rows by the state of their audit.
        nearest: of accepted and rejected rows those with the least margin, as a heap.
    """

    id: str
    times: Any = field(default_factory=lambda: array("d"))
    decisions: Any = field(default_factory=lambda: array("b"))
    open: Any = field(default_factory=lambda: array("b"))
    milliseconds: Any = field(default_factory=lambda: array("d"))
    models: Any = field(default_factory=lambda: array("l"))
    labels: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)
    scored: dict[str, NumberedScores] = field(default_factory=dict)
    audited: dict[str, NumberedScores] = field(default_factory=dict)
    readable: int = 0
    started: Counter[str] = field(default_factory=Counter)
    audits: Counter[str] = field(default_factory=Counter)
    nearest: dict[str, list[Any]] = field(default_factory=lambda: {"accept": [], "reject": []})

    def __len__(self) -> int:
        return len(self.times)

    @property
    def name(self) -> str:
        """The policy's name, of all its ids."""
        return self.id.partition("@")[0]

    @property
    def days(self) -> Floats:
        """The day of each row (UTC), since 1970."""
        found: Floats = np.floor_divide(np.asarray(self.times), DAY_S)
        return found

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row of the table of decisions, whose objects are parsed."""
        number = len(self)
        unreadable = row["reason"] == "unreadable"
        self.times.append(row["time"])
        self.decisions.append(DECISIONS.index(row["decision"]))
        self.open.append(2 if unreadable else row["reason"] not in BY_SCORES)
        self.milliseconds.append(row["milliseconds"])
        self.models.append(self.labels.setdefault(tuple(row["models"].items()), len(self.labels)))
        if row["audit"]:
            self.audits[row["audit"]] += 1
        if unreadable:  # then no metric has a score, whatever the decision needed
            return
        self.readable += 1
        self.started.update(dict.fromkeys(row["skipped"], 0))
        self.started.update({*row["scores"], *row["errors"]} - {*row["skipped"]})
        for metric, score in row["scores"].items():
            if metric not in row["skipped"] and metric not in row["errors"]:  # audits added the others
                self.scored.setdefault(metric, NumberedScores()).add(number, score)
            if row["audit"] == "complete":
                self.audited.setdefault(metric, NumberedScores()).add(number, score)
        if row["reason"] == "expression" and row["decision"] in self.nearest:
            self._add_nearest(number, row)

    def _add_nearest(self, number: int, row: Mapping[str, Any]) -> None:
        """Keep a row if its margin is among the least."""
        found = margin(row["because"], row["scores"])
        if found is None:
            return
        heap, sign = self.nearest[row["decision"]], 1 if row["decision"] == "accept" else -1
        shown = {name: row[name] for name in ("decision_id", "caller_id", "because", "picture", "prompt")}
        entry = (-found, -number, {"margin": sign * found, **shown})
        if len(heap) < MAX_NEAREST_ROWS:
            heappush(heap, entry)
        else:
            heappushpop(heap, entry)

    def nearest_rows(self, decision: str) -> list[dict[str, Any]]:
        """Return the rows with the least margin, that one first."""
        return [row for _, _, row in sorted(self.nearest[decision], key=lambda each: (-each[0], -each[1]))]


def margin(because: str, scores: Mapping[str, float]) -> float | None:
    """
    Return the least difference between the two sides of the comparisons from which a decision follows.

    None if no comparison has all of its scores.
    """
    found = []
    for part in because.split(" and "):
        relation = relation_of(WITH_SCORE.sub(r"\1", part))
        try:
            left, right = (interval(side, scores) for side in relation.parts) if relation else (None, None)
        except KeyError:  # a score that was unknown
            continue
        if left and right and not (left.lack or right.lack):
            found.append(abs(left.low - right.low))
    return min(found, default=None)


@lru_cache(4096)
def relation_of(text: str) -> Relation | None:
    """Return a comparison; None for another text, such as one with an unknown score."""
    try:
        tree = Condition.of(text).tree
    except ValueError:
        return None
    return tree if isinstance(tree, Relation) else None
