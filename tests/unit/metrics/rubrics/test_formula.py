"""Formulas of scores: what they compute, their ranges, and texts that are no formula."""

from math import inf, sqrt

import pytest

from service.metrics.rubrics.formula import MAX_CHARACTERS, MAX_DEPTH, Formula, NoValue

NAMES = {"a": 4.0, "b": 9.0, "c": -2.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", 4),
        ("a + b * c", -14),
        ("(a + b) * c", -26),
        ("a - b - c", -3),
        ("b / a / 2", 1.125),
        ("-c", 2),
        ("--a * -1", -4),
        ("min(a, b, c)", -2),
        ("max(c, 0)", 0),
        ("min(a)", 4),
        ("sqrt(a * b)", 6),
        ("mean(a, b, c)", 11 / 3),
        ("sqrt(min(a, b) * min(b, 1e2))", 6),
        (" 0.7*a\n+ .2*b + 1.e-1 * c ", 0.7 * 4 + 0.2 * 9 - 0.2),
    ],
)
def test_a_formula_is_arithmetic_with_the_usual_precedence(text, value):
    assert value == pytest.approx(Formula(text, NAMES).value(NAMES), rel=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names, numbers"),
        ("a +", "cannot be parsed"),
        ("(a", "cannot be parsed"),
        ("a ** b", r"a \*\* b is not of a formula's grammar"),
        ("a // b", "is not of a formula's grammar"),
        ("a < b", "names, numbers"),
        ("a.real", "names, numbers"),
        ("a[0]", "names, numbers"),
        ("'a'", "names, numbers"),
        ("__import__", "names, numbers"),
        ("lambda a", "cannot be parsed"),
        ("a if b else c", "is not of a formula's grammar"),
        ("a and b", "is not of a formula's grammar"),
        ("not a", "is not of a formula's grammar"),
        ("+a", r"\+a is not of"),
        ("a, b", "is not of a formula's grammar"),
        ("1if", "names, numbers"),
        ("1_000", "names, numbers"),
        ("1e999", "is not of a formula's grammar"),
        ("9" * 40, "is not of a formula's grammar"),
        ("d", "uses d; there are a, b, c"),
        ("sqrt", "uses sqrt"),
        ("a(b)", "is not of a formula's grammar"),
        ("exp(a)", "functions are min, max, sqrt, mean"),
        ("min()", "is not of a formula's grammar"),
        ("sqrt(a, b)", "sqrt has one argument"),
        ("a" + " " * MAX_CHARACTERS, "at most 500 characters"),
        ("-" * (MAX_DEPTH + 1) + "a", "nested too deep"),
        ("(" * 240 + "a" + ")" * 240, "cannot be parsed"),
    ],
)
def test_a_text_that_is_no_formula_is_refused(text, said):
    """No power, no comparison, no attribute, no other call: Python never evaluates the text."""
    with pytest.raises(ValueError, match=said):
        Formula(text, NAMES)


def test_a_long_text_of_one_token_is_refused_in_linear_time():
    """The check of the tokens never tries the parts of a name."""
    with pytest.raises(ValueError, match="names, numbers"):
        Formula("a" * (MAX_CHARACTERS - 1) + "!", NAMES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a / (b - 9)", "divides by zero"),
        ("sqrt(c)", "is not a finite number"),
        ("a * 1e200 * 1e200", "is not a finite number"),
    ],
)
def test_a_formula_without_a_finite_value_is_an_error(text, said):
    """Never 0, and never infinity."""
    with pytest.raises(NoValue, match=said):
        Formula(text, NAMES).value(NAMES)


RANGES = {"x": (0.0, 10.0), "y": (-1.0, 2.0), "z": (-inf, inf)}


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("x", (0, 10)),
        ("x + y", (-1, 12)),
        ("x - y", (-2, 11)),
        ("-y", (-2, 1)),
        ("x * y", (-10, 20)),
        ("y * y", (-2, 4)),
        ("x / 4", (0, 2.5)),
        ("1 / (x + 1)", (1 / 11, 1)),
        ("1 / x", (-inf, inf)),
        ("0 * z", (0, 0)),
        ("min(x, y)", (-1, 2)),
        ("max(x, y, 3)", (3, 10)),
        ("mean(x, y)", (-0.5, 6)),
        ("sqrt(y)", (0, sqrt(2))),
        ("sqrt(min(x, x) * min(x, x))", (0, 10)),
        ("z + x", (-inf, inf)),
    ],
)
def test_the_range_of_a_formula_holds_all_its_values(text, bounds):
    """From the ranges of its names; a divisor that may be 0 has no bounds."""
    assert bounds == pytest.approx(Formula(text, RANGES).range(RANGES))
