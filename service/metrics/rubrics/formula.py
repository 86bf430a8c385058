"""
Formulas of scores: `sqrt(min(sc1, sc2) * min(pq1, pq2))`.

The grammar has numbers, names, `+ - * /`, parentheses, and the functions `min`, `max`, `sqrt` and `mean`.
Python's `ast` parses the text.  The tree is computed here, over numbers or over their ranges.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from statistics import fmean
from typing import Any, TypeVar

MAX_CHARACTERS = 500
MAX_DEPTH = 24

# Python's parser gets nothing else: no strings, no attributes, and no text that it warns about.
TOKENS = re.compile(
    r"(?:\s*(?:[a-z][a-z0-9_]*(?![\w.])|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?![\w.])|[-+*/(),]))+\s*"
)
OPERATORS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
FUNCTIONS = ("min", "max", "sqrt", "mean")

T = TypeVar("T")
Range = tuple[float, float]
Algebra = Mapping[str, Callable[..., Any]]


class NoValue(ArithmeticError):
    """A formula has no finite value for some numbers; the message says why."""


class Formula:
    """
    A parsed formula.

    Args:
        text: of the formula.
        names: that it may use.

    Raises:
        ValueError: the text is not of the grammar, or has another name.
    """

    def __init__(self, text: str, names: Collection[str]) -> None:
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"a formula has at most {MAX_CHARACTERS} characters")
        if not TOKENS.fullmatch(text):
            raise ValueError("a formula has names, numbers, + - * / ( ) and commas only")
        self.text = " ".join(text.split())
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, RecursionError, MemoryError) as exc:
            raise ValueError("the formula cannot be parsed") from exc
        check(self._tree, names)

    def value(self, numbers: Mapping[str, float]) -> float:
        """Return the value for *numbers* by name.  Raises `NoValue`."""
        try:
            value = float(computed(self._tree, numbers, NUMBERS))
        except ZeroDivisionError:
            raise NoValue(f"{self.text} divides by zero") from None
        except (ValueError, OverflowError):
            raise NoValue(f"{self.text} is not a finite number") from None
        if not math.isfinite(value):
            raise NoValue(f"{self.text} is not a finite number")
        return value

    def range(self, ranges: Mapping[str, Range]) -> Range:
        """Return bounds of the value from the least and the largest number of each name."""
        least, largest = computed(self._tree, ranges, RANGES)
        return float(least), float(largest)


def check(node: ast.expr, names: Collection[str], depth: int = 0) -> None:
    """Raise `ValueError` for a node that is not of the grammar, or is nested too deep."""
    if depth > MAX_DEPTH:
        raise ValueError("the formula is nested too deep")
    match node:
        case ast.Constant(value=int() | float() as value) if len(str(value)) <= 32 and math.isfinite(value):
            parts: list[ast.expr] = []
        case ast.Name(id=name) if name in names:
            parts = []
        case ast.Name(id=name):
            raise ValueError(f"the formula uses {name}; there are {', '.join(names)}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            parts = [operand]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            parts = [left, right]
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]) if name in FUNCTIONS:
            if name == "sqrt" and len(args) > 1:
                raise ValueError("sqrt has one argument")
            parts = args
        case _:
            raise ValueError(
                f"{ast.unparse(node)} is not of a formula's grammar; its functions are {', '.join(FUNCTIONS)}"
            )
    for part in parts:
        check(part, names, depth + 1)


def computed(node: ast.AST, values: Mapping[str, T], algebra: Algebra) -> Any:
    """Return the value of a checked tree."""
    match node:
        case ast.Constant(value=number):
            return algebra["number"](number)
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(operand=operand):
            return algebra["negative"](computed(operand, values, algebra))
        case ast.BinOp(left=left, op=op, right=right):
            sides = (computed(side, values, algebra) for side in (left, right))
            return algebra[OPERATORS[type(op)]](*sides)
        case ast.Call(func=ast.Name(id=name), args=args):
            return algebra[name](*(computed(argument, values, algebra) for argument in args))
    raise TypeError(type(node).__name__)


NUMBERS: Algebra = {
    "number": float,
    "negative": operator.neg,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "min": lambda *numbers: min(numbers),
    "max": lambda *numbers: max(numbers),
    "sqrt": math.sqrt,
    "mean": lambda *numbers: fmean(numbers),
}


def product(a: float, b: float) -> float:
    """Return a · b of the ends of ranges, where 0 · ∞ is 0."""
    return 0.0 if not a or not b else a * b


def times(a: Range, b: Range) -> Range:
    """Return the range of a product."""
    ends = [product(x, y) for x in a for y in b]
    return min(ends), max(ends)


def over(a: Range, b: Range) -> Range:
    """Return the range of a quotient; without bounds if the divisor may be 0."""
    if b[0] <= 0 <= b[1]:
        return -math.inf, math.inf
    return times(a, (1 / b[1], 1 / b[0]))


def minus(a: Range, b: Range) -> Range:
    """Return the range of a difference."""
    return a[0] - b[1], a[1] - b[0]


def by_end(function: Callable[..., float]) -> Callable[..., Range]:
    """Return what a function that grows with each argument is over ranges."""
    return lambda *ranges: (function(*(low for low, _ in ranges)), function(*(high for _, high in ranges)))


RANGES: Algebra = {
    "number": lambda number: (float(number), float(number)),
    "negative": lambda a: (-a[1], -a[0]),
    "+": by_end(operator.add),
    "-": minus,
    "*": times,
    "/": over,
    "min": by_end(NUMBERS["min"]),
    "max": by_end(NUMBERS["max"]),
    "sqrt": by_end(lambda number: math.sqrt(max(0.0, number))),
    "mean": by_end(NUMBERS["mean"]),
}
