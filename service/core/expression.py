"""
Formulas, `sqrt(min(a, b) * c)`, and conditions, `a >= 0.6 and not b.c < 3`, over numbers with names.

The grammar has numbers, names, which may have dots, `+ - * /`, the functions `min`, `max`, `sqrt` and `mean`,
the comparisons `< <= > >= == !=`, `and`, `or`, `not`, and parentheses.  Python's `ast` parses the text, which
is never run: the tree of nodes below is computed here.

A name stands for a number, or for an interval if its number is unknown.  Each occurrence of an unknown varies
by itself: `a - a` of 0 to 1 is -1 to 1, and `a < b < c` is `a < b and b < c`.  A comparison is decided if all
numbers of both sides agree.  `and`, `or` and `not` have the truth tables of Kleene (1952); unknown is None.
"""

import ast
import math
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import ClassVar, NamedTuple

MAX_CHARACTERS = 500
MAX_DEPTH = 24
MAX_DIGITS = 32  # characters of a number
MAX_SHOWN = 40  # characters of a part in an error

# Python's parser gets no strings, brackets or comments, and no number that it warns about, such as `1if`.
FOREIGN_CHARACTER = re.compile(r"[^\w.+*/(),<>=!\s-]", re.ASCII)
MISWRITTEN = re.compile(
    r"(?<![\w.])(?!(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))[\d.][\w.]{0,40}", re.ASCII
)
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)

OPERATORS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
SIGNS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
FUNCTIONS = ("min", "max", "sqrt", "mean")
GRAMMAR = f"numbers, names, + - * /, {', '.join(FUNCTIONS)}, comparisons, and, or, not"

# An expression has no value for one of these reasons.
BY_ZERO = "divides by zero"
NEGATIVE_ROOT = "has the root of a negative number"
NOT_FINITE = "is not a finite number"


class NoValueError(ArithmeticError):
    """A formula has no finite value for some numbers; the message says why."""


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression; *column*, from 1, is where it begins in the text."""

    column: int


@dataclass(frozen=True, slots=True)
class NumberTerm(Node):
    """A number of the text."""

    value: float
    parts: ClassVar[tuple[()]] = ()


@dataclass(frozen=True, slots=True)
class NameTerm(Node):
    """A name, such as `fit` or `edit.fit`."""

    name: str
    parts: ClassVar[tuple[()]] = ()


@dataclass(frozen=True, slots=True)
class Apply(Node):
    """An operator, a function, or `negative`, over numbers."""

    function: str
    parts: tuple["Term", ...]


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """Two sides and the sign between them."""

    sign: str
    parts: tuple["Term", "Term"]


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """`and` or `or` of several conditions, or `not` of one."""

    word: str
    parts: tuple["Truth", ...]


Term = NumberTerm | NameTerm | Apply
Truth = Relation | Logic


class Interval(NamedTuple):
    """
    The least and the largest number that a part of an expression may be.

    Attributes:
        lack: why some of the numbers that are possible give no value; empty if all do.
    """

    low: float
    high: float
    lack: str = ""


ANY = Interval(-math.inf, math.inf)  # a name whose values have no known bounds may have any
Known = Mapping[str, float | tuple[float, float] | Interval]


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression whose value is a number."""

    text: str
    tree: Term

    @classmethod
    def of(cls, text: str, names: Collection[str] | None = None) -> "Formula":
        """Parse *text*, which may use *names*; None for any.  Raises `ValueError` with the column."""
        parser = Parser(text, names)
        return cls(" ".join(text.split()), parser.term(parser.body))

    def value(self, numbers: Mapping[str, float]) -> float:
        """Return the value for *numbers* by name.  Raises `NoValueError`."""
        value, _, lack = interval(self.tree, numbers)
        if lack:
            raise NoValueError(f"{self.text} {lack}")
        return value

    def range(self, known: Known) -> tuple[float, float]:
        """Return bounds of its values.  Raises `NoValueError` if some may be too large for a number."""
        low, high, lack = interval(self.tree, known)
        if lack == NOT_FINITE:
            raise NoValueError(f"{self.text} {lack} in some cases")
        return low, high


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression that holds or not."""

    text: str
    tree: Truth

    @classmethod
    def of(cls, text: str, names: Collection[str] | None = None) -> "Condition":
        """Parse *text*, which may use *names*; None for any.  Raises `ValueError` with the column."""
        parser = Parser(text, names)
        return cls(" ".join(text.split()), parser.truth(parser.body))

    def holds(self, known: Known) -> bool | None:
        """Return whether it holds; None if that is open for the intervals of its names."""
        return truth(self.tree, known)


def nodes(tree: Term | Truth) -> Iterator[Term | Truth]:
    """Yield a node and all its parts, in the order of the text."""
    yield tree
    for part in tree.parts:
        yield from nodes(part)


def names_in(tree: Term | Truth) -> list[NameTerm]:
    """Return all occurrences of names, in the order of the text."""
    return [node for node in nodes(tree) if isinstance(node, NameTerm)]


def fault(column: int, said: str) -> ValueError:
    """Return the error of a text at a column, from 1."""
    return ValueError(f"column {column}: {said}")


class Parser:
    """Parses one text into nodes.  Raises `ValueError` with the column of the first part that is wrong."""

    def __init__(self, text: str, names: Collection[str] | None) -> None:
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"an expression has at most {MAX_CHARACTERS} characters")
        if strange := FOREIGN_CHARACTER.search(text):
            raise fault(strange.start() + 1, f"{strange[0]!r} is not of the grammar: {GRAMMAR}")
        if miswritten := MISWRITTEN.search(text):
            raise fault(miswritten.start() + 1, f"{miswritten[0]!r} is not a number")
        self.names = names
        self.text = re.sub(r"\s", " ", text).strip()
        self.before = len(text) - len(text.lstrip())
        try:
            self.body = ast.parse(f"{self.text}\n", mode="eval").body
        except SyntaxError as exc:
            raise fault(self.before + max(exc.offset or 1, 1), "the text cannot be parsed") from None
        except (RecursionError, MemoryError):
            raise ValueError("the expression is nested too deep") from None

    def term(self, node: ast.expr, depth: int = 0) -> Term:
        """Return the node of a number."""
        found = self.node(node, depth)
        if isinstance(found, Relation | Logic):
            raise fault(found.column, f"{self.shown(node)} is a condition, where a number is needed")
        return found

    def truth(self, node: ast.expr, depth: int = 0) -> Truth:
        """Return the node of a condition."""
        found = self.node(node, depth)
        if not isinstance(found, Relation | Logic):
            raise fault(found.column, f"{self.shown(node)} is a number, where a condition is needed")
        return found

    def node(self, node: ast.expr, depth: int) -> Term | Truth:
        """Return the node of a part of the text, which is in *depth* others."""
        column = self.before + node.col_offset + 1
        if depth > MAX_DEPTH:
            raise fault(column, "the expression is nested too deep")
        below = depth + 1
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                if len(str(value)) > MAX_DIGITS or not math.isfinite(value):
                    raise fault(column, f"{self.shown(node)} is too large or too long")
                return NumberTerm(column, float(value))
            case ast.Name() | ast.Attribute() if NAME.fullmatch(name := self.source(node)):
                if self.names is not None and name not in self.names:
                    there = ", ".join(self.names)
                    raise fault(column, f"there is no {self.shown(node)}; there are {there}")
                return NameTerm(column, name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Apply(column, "negative", (self.term(operand, below),))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return Apply(column, OPERATORS[type(op)], (self.term(left, below), self.term(right, below)))
            case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]) if name in FUNCTIONS:
                if name == "sqrt" and len(args) > 1:
                    raise fault(column, "sqrt has one argument")
                return Apply(column, name, tuple(self.term(each, below) for each in args))
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in SIGNS for op in ops):
                sides = [self.term(each, below) for each in (left, *others)]
                pairs = tuple(
                    Relation(a.column, SIGNS[type(op)], (a, b))
                    for op, (a, b) in zip(ops, pairwise(sides), strict=True)
                )
                return Logic(column, "and", pairs) if len(pairs) > 1 else pairs[0]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Logic(column, "not", (self.truth(operand, below),))
            case ast.BoolOp(op=op, values=values):
                word = "and" if isinstance(op, ast.And) else "or"
                return Logic(column, word, tuple(self.truth(each, below) for each in values))
        raise fault(column, f"{self.shown(node)} is not of the grammar: {GRAMMAR}")

    def source(self, node: ast.expr) -> str:
        """Return the text of a part."""
        return self.text[node.col_offset : node.end_col_offset]

    def shown(self, node: ast.expr) -> str:
        """Return the text of a part for an error."""
        text = self.source(node)
        return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def interval(node: Term, known: Known) -> Interval:
    """Return the values of a node from the numbers or intervals of all names."""
    match node:
        case NumberTerm(value=value):
            return Interval(value, value)
        case NameTerm(name=name):
            found = known[name]
            return finite(*found) if isinstance(found, tuple) else finite(found, found)
        case Apply(function=function, parts=parts):
            return applied(function, [interval(part, known) for part in parts])


def applied(function: str, operands: Sequence[Interval]) -> Interval:
    """Return the values of a function of intervals."""
    lack = next((each.lack for each in operands if each.lack), "")
    low, high, _ = operands[-1]
    if function == "/" and low <= 0 <= high:
        return ANY._replace(lack=lack or BY_ZERO)
    if function == "sqrt" and low < 0:
        lack = lack or NEGATIVE_ROOT
    try:
        ends = [*ENDS[function](*operands)]
    except OverflowError:  # the sum of a mean may be too large
        ends = [math.nan]
    bounded = all(math.isfinite(end) for each in operands for end in each[:2])
    if bounded and not all(map(math.isfinite, ends)):
        return ANY._replace(lack=lack or NOT_FINITE)
    return finite(min(ends), max(ends), lack)


def finite(low: float, high: float, lack: str = "") -> Interval:
    """Return the interval, or that of any number, which lacks a value, if no finite number is in it."""
    if max(low, -sys.float_info.max) <= min(high, sys.float_info.max):
        return Interval(low, high, lack)
    return ANY._replace(lack=lack or NOT_FINITE)


def product(a: float, b: float) -> float:
    """Return a * b of the ends of intervals, where 0 times infinity is 0."""
    return a * b if a and b else 0.0


def quotient(a: float, b: float) -> float:
    """Return a / b of the ends of intervals; by infinity it is 0."""
    return a / b if math.isfinite(b) else 0.0


def by_end(function: Callable[[list[float]], float]) -> Callable[..., tuple[float, float]]:
    """Return what a function that grows with each number makes of intervals."""
    return lambda *each: (function([low for low, *_ in each]), function([high for _, high, _ in each]))


# Numbers of which the least and the largest are the ends of the values, from the operands' intervals.
ENDS: Mapping[str, Callable[..., Sequence[float]]] = {
    "negative": lambda a: (-a.high, -a.low),
    "+": lambda a, b: (a.low + b.low, a.high + b.high),
    "-": lambda a, b: (a.low - b.high, a.high - b.low),
    "*": lambda a, b: [product(x, y) for x in a[:2] for y in b[:2]],
    "/": lambda a, b: [quotient(x, y) for x in a[:2] for y in b[:2]],
    "min": by_end(min),
    "max": by_end(max),
    "sqrt": by_end(lambda numbers: math.sqrt(max(0.0, *numbers))),
    "mean": by_end(fmean),
}


def truth(node: Truth, known: Known) -> bool | None:
    """Return whether a condition holds; None if that is open for the intervals of its names."""
    match node:
        case Relation(sign=sign, parts=(left, right)):
            a, b = interval(left, known), interval(right, known)
            return None if a.lack or b.lack else TRUTHS[sign](a, b)
        case Logic(word="not", parts=(part,)):
            return negation(truth(part, known))
        case Logic(word="and", parts=parts):
            return conjunction([truth(part, known) for part in parts])
        case Logic(parts=parts):
            return negation(conjunction([negation(truth(part, known)) for part in parts]))


def negation(holds: bool | None) -> bool | None:
    """Return `not` of Kleene's logic."""
    return None if holds is None else not holds


def conjunction(parts: Collection[bool | None]) -> bool | None:
    """Return `and` of Kleene's logic: false if a part is, whatever the unknown ones are."""
    return False if False in parts else None if None in parts else True


def at_most(a: Interval, b: Interval) -> bool | None:
    """Return a <= b."""
    return True if a.high <= b.low else False if a.low > b.high else None


def equal(a: Interval, b: Interval) -> bool | None:
    """Return a == b."""
    return conjunction([at_most(a, b), at_most(b, a)])


TRUTHS: Mapping[str, Callable[[Interval, Interval], bool | None]] = {
    "<=": at_most,
    ">=": lambda a, b: at_most(b, a),
    "<": lambda a, b: negation(at_most(b, a)),
    ">": lambda a, b: negation(at_most(a, b)),
    "==": equal,
    "!=": lambda a, b: negation(equal(a, b)),
}
