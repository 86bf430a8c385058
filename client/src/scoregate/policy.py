"""
Policies: accept, review or reject, from scores of which some are not known.

An unknown score is the interval of its metric's range.  The possible decisions are those that some values of
the unknown scores give; each occurrence varies by itself, see the module of expressions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from .expression import (
    Condition,
    Formula,
    Known,
    Logic,
    NameTerm,
    NumberTerm,
    Relation,
    Term,
    Truth,
    names_in,
    truth,
)

Verdict = Literal["accept", "review", "reject"]
STRICTEST_FIRST: tuple[Verdict, ...] = ("reject", "review", "accept")

# Codes of errors of a picture that cannot be read, whatever the metric.
UNREADABLE = frozenset({"bad_image", "not_base64", "image_undecodable", "image_too_large", "no_frames"})
LATE_CODE = "deadline_exceeded"  # the code of a metric that was not started in time
NO_VALUE_REASON = "no_value"  # all scores are known, and an expression has no value for them

OPPOSITE_SIGNS = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
TIGHTNESS = {"+": 1, "-": 1, "*": 2, "/": 2, "negative": 3}


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """
    The decision about one item.

    Attributes:
        reason: `expression`, `unreadable`, or the code of the error by which it was decided without a score.
        because: the reason in words, with the scores.
    """

    decision: Verdict
    reason: str
    because: str


@dataclass(frozen=True, slots=True)
class Policy:
    """
    The conditions of a decision.

    Attributes:
        accept: of items that are accepted.
        review: of those of the others that people review; None for no item.
        without_score: the decision where the known scores leave several.
        unreadable: the decision about a picture that cannot be read.
        rank_by: orders the accepted items of a group, the largest first; None if there are no groups.
    """

    accept: Condition
    review: Condition | None = None
    without_score: Verdict = "reject"
    unreadable: Verdict = "reject"
    rank_by: Formula | None = None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Its conditions, in the order in which they decide."""
        return (self.accept,) if self.review is None else (self.accept, self.review)

    @property
    def deciding(self) -> list[str]:
        """The metrics of its conditions."""
        return [*dict.fromkeys(each.name for one in self.conditions for each in names_in(one.tree))]

    @property
    def ranking(self) -> list[str]:
        """The metrics that order a group."""
        return [*dict.fromkeys(each.name for each in names_in(self.rank_by.tree))] if self.rank_by else []

    @property
    def metrics(self) -> list[str]:
        """All of its metrics."""
        return [*dict.fromkeys([*self.deciding, *self.ranking])]

    def possible(self, known: Known) -> set[Verdict]:
        """Return the decisions that some values of the unknown scores give."""
        found: set[Verdict] = set()
        for verdict, condition in zip(("accept", "review"), self.conditions, strict=False):
            holds = condition.holds(known)
            if holds is not False:
                found.add(verdict)  # type: ignore[arg-type]
            if holds:
                return found
        return found | {"reject"}

    def open(self, known: Known) -> Iterator[list[str]]:
        """Yield the unknown metrics that may still change whether `accept` holds, then those of `review`."""
        for condition in self.conditions:
            holds = condition.holds(known)
            if holds:
                return
            if holds is None:
                yield [*dict.fromkeys(open_names(condition.tree, known))]

    def decide(self, known: Known, errors: Mapping[str, str]) -> PolicyOutcome:
        """
        Return the decision from what is known.

        Args:
            known: the score of each metric, or the interval of one without a score.
            errors: the codes of the errors of metrics without a score; others were not started in time.
        """
        failed = {name: errors[name] for name in self.deciding if name in errors}
        if broken := next((code for code in failed.values() if code in UNREADABLE), ""):
            return PolicyOutcome(self.unreadable, "unreadable", f"unreadable: {broken}")
        possible = self.possible(known)
        if len(possible) == 1:
            [decision] = possible
            return PolicyOutcome(decision, "expression", self.why(decision, known))
        chosen = self.without_score
        if chosen not in possible:
            chosen = next(each for each in STRICTEST_FIRST if each in possible)
        lacking = [*dict.fromkeys(chain.from_iterable(self.open(known)))]
        codes = {name: failed[name] for name in lacking if name in failed} or dict.fromkeys(
            lacking, LATE_CODE
        )
        said = ", ".join(map(" ".join, codes.items())) or "an expression has no value for these scores"
        return PolicyOutcome(chosen, next(iter(codes.values()), NO_VALUE_REASON), f"without_score: {said}")

    def why(self, decision: Verdict, known: Known) -> str:
        """Return the comparisons from which a decision follows, with the scores."""
        holding = {"accept": 0, "review": 1, "reject": len(self.conditions)}[decision]
        said = [reasons(each.tree, known, holds=False) for each in self.conditions[:holding]]
        said += [reasons(each.tree, known, holds=True) for each in self.conditions[holding : holding + 1]]
        return " and ".join(dict.fromkeys(chain.from_iterable(said)))


def open_names(node: Truth, known: Known) -> Iterator[str]:
    """Yield the unknown names of the comparisons on which an open condition depends."""
    if truth(node, known) is not None:
        return
    if isinstance(node, Logic):
        for part in node.parts:
            yield from open_names(part, known)
    else:
        yield from (each.name for each in names_in(node) if isinstance(known[each.name], tuple))


def reasons(node: Truth, known: Known, *, holds: bool) -> list[str]:
    """Return comparisons from which it follows that a decided condition *holds*, or does not."""
    match node:
        case Relation(sign=sign, parts=(left, right)):
            shown = brief(known)
            if truth(node, shown) is not holds:  # the score is nearer to the limit than its six digits
                shown = known
            return [f"{said(left, shown)} {sign if holds else OPPOSITE_SIGNS[sign]} {said(right, shown)}"]
        case Logic(word="not", parts=(part,)):
            return reasons(part, known, holds=not holds)
        case Logic(word=word, parts=parts):
            agreeing = [part for part in parts if truth(part, known) is holds]
            needed = parts if (word == "and") is holds else agreeing[:1]
            return [*chain.from_iterable(reasons(part, known, holds=holds) for part in needed)]


def said(node: Term, known: Known, tightness: int = 0) -> str:
    """Return the text of a side of a comparison, with the score after each name."""
    match node:
        case NumberTerm(value=value):
            return str(value)
        case NameTerm(name=name):
            score = known[name]
            return f"{name} unknown" if isinstance(score, tuple) else f"{name} {float(score)}"
    own = TIGHTNESS.get(node.function, 0)
    if not own:
        return f"{node.function}({', '.join(said(part, known) for part in node.parts)})"
    first, last = said(node.parts[0], known, own), said(node.parts[-1], known, own + 1)
    text = f"-{last}" if node.function == "negative" else f"{first} {node.function} {last}"
    return f"({text})" if own < tightness else text


def brief(known: Known) -> Known:
    """Return scores with at most six digits, and the intervals of unknown ones."""
    return {
        name: score if isinstance(score, tuple) else float(f"{score:.6g}") for name, score in known.items()
    }
