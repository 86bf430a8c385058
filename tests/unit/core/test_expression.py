"""Expressions: what they compute, over numbers and over intervals, and texts that are none."""

import ast
import re
import sys
from math import inf, nan, sqrt

import pytest

from service.core.expression import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_SHOWN,
    Condition,
    Formula,
    Interval,
    Logic,
    NoValueError,
    Relation,
    by_end,
    interval,
    names_in,
    nodes,
    quotient,
)
from tests.support.paths import ROOT, import_statements

NAMES = {"a": 4.0, "b": 9.0, "c": -2.0, "judge.quality": 3.0}


def test_the_client_has_the_same_module_and_it_needs_the_standard_library_alone():
    """Byte for byte: neither package installs the other one."""
    files = ROOT / "service/core/expression.py", ROOT / "client/src/scoregate/expression.py"
    modules = {
        name.partition(".")[0]
        for node in import_statements(files[0])
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
        )
    }

    assert files[0].read_bytes() == files[1].read_bytes()
    assert modules <= sys.stdlib_module_names


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
        ("judge.quality / 2", 1.5),
        (" 0.7*a\n+ .2*b + 1.e-1 * c ", 0.7 * 4 + 0.2 * 9 - 0.2),
    ],
)
def test_a_formula_is_arithmetic_with_the_usual_precedence(text, value):
    assert value == pytest.approx(Formula.of(text, NAMES).value(NAMES), rel=1e-12)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("a < 4", False),
        ("a <= 4", True),
        ("a > 4", False),
        ("a >= 4", True),
        ("a == 4", True),
        ("a != 4", False),
        ("a < b", True),
        ("0 < a < b", True),
        ("0 < a < 4", False),
        ("5 > a > c > -3", True),
        ("a > 3 and b > 9", False),
        ("a > 3 or b > 9", True),
        ("a > 5 or b > 9", False),
        ("not a > 5", True),
        ("not a > 3 or b > 3 and c > 3", False),
        ("(not a > 3 or b > 3) and c < 3", True),
        ("judge.quality + 1 >= sqrt(a) * 2", True),
    ],
)
def test_a_condition_compares_and_combines_as_python_does(text, holds):
    assert holds is Condition.of(text, NAMES).holds(NAMES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "column 1: the text cannot be parsed"),
        ("a +", "column 4: the text cannot be parsed"),
        ("b + (a", "column 5: the text cannot be parsed"),
        ("  a b ", "column 5: the text cannot be parsed"),
        ("a = b", "the text cannot be parsed"),
        (
            "a ** b",
            "column 1: a ** b is not of the grammar: numbers, names, + - * /, min, max, sqrt, mean, comp",
        ),
        ("b + a // b", "column 5: a // b is not of the grammar"),
        ("a % b", "column 3: '%' is not of the grammar"),
        ("a[0]", "column 2: '[' is not of the grammar"),
        ("'a'", 'column 1: "\'" is not of the grammar'),
        ("a # b", "column 3: '#' is not of the grammar"),
        ("a + ｂ", "column 5: 'ｂ' is not of the grammar"),
        ("a\0", "column 2: '\\x00' is not of the grammar"),
        ("__import__", "column 1: there is no __import__; there are a, b, c, judge.quality"),
        ("a.real", "column 1: there is no a.real"),
        ("judge.quality.real", "there is no judge.quality.real"),
        ("judge", "there is no judge;"),
        ("(a).real", "column 4: '.real' is not a number"),
        ("1 .real", "column 3: '.real' is not a number"),
        ("...", "column 1: '...' is not a number"),
        ("lambda", "cannot be parsed"),
        ("lambda a", "cannot be parsed"),
        ("True", "column 1: True is not of the grammar"),
        ("None", "column 1: None is not of the grammar"),
        ("a if b else c", "column 1: a if b else c is not of the grammar"),
        ("a is b", "column 1: a is b is not of the grammar"),
        ("a in (a, b)", "is not of the grammar"),
        ("+a", "column 1: +a is not of the grammar"),
        ("a, b", "column 1: a, b is not of the grammar"),
        ("1if", "column 1: '1if' is not a number"),
        ("a + 1or 2", "column 5: '1or' is not a number"),
        ("1e5or 2", "column 1: '1e5or' is not a number"),
        ("1_000", "column 1: '1_000' is not a number"),
        ("0x10", "column 1: '0x10' is not a number"),
        ("2j", "column 1: '2j' is not a number"),
        ("1e-2_0", "column 1: '1e' is not a number"),
        ("a - 1e999", "column 5: 1e999 is too large or too long"),
        ("9" * 400, "column 1: 9999999999999999999999999999999999999999… is too large or too long"),
        ("d", "column 1: there is no d; there are a, b, c, judge.quality"),
        ("sqrt", "column 1: there is no sqrt"),
        ("a(b)", "column 1: a(b) is not of the grammar"),
        ("a + exp(a)", "column 5: exp(a) is not of the grammar"),
        ("judge.quality(a)", "is not of the grammar"),
        ("min()", "column 1: min() is not of the grammar"),
        ("min(*a)", "column 5: *a is not of the grammar"),
        ("min(a, key=b)", "column 1: min(a, key=b) is not of the grammar"),
        ("min(a for a in b)", "is not of the grammar"),
        ("sqrt(a, b)", "column 1: sqrt has one argument"),
        ("a" + " " * MAX_CHARACTERS, "an expression has at most 500 characters"),
        ("-" * (MAX_DEPTH + 1) + "a", "column 26: the expression is nested too deep"),
        ("(" * 240 + "a" + ")" * 240, "cannot be parsed"),
        ("not " + "-" * 480 + "a", "nested too deep"),
        ("a if " + "-" * 470 + "a else a", "is not of the grammar"),
        ("a > b", "column 1: a > b is a condition, where a number is needed"),
        ("a + (a > b)", "column 6: a > b is a condition, where a number is needed"),
        ("-(not a > b)", "column 3: not a > b is a condition"),
        ("min(a, b and c)", "column 8: b is a number, where a condition is needed"),
    ],
)
def test_a_text_that_is_no_formula_is_refused_with_the_column(text, said):
    """No power, no other attribute, no other call: Python never runs the text, nor warns about it."""
    with pytest.raises(ValueError, match=re.escape(said)):
        Formula.of(text, NAMES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a", "column 1: a is a number, where a condition is needed"),
        ("not a", "column 5: a is a number, where a condition is needed"),
        ("a > b and c", "column 11: c is a number, where a condition is needed"),
        ("(a > b) > c", "column 2: a > b is a condition, where a number is needed"),
        ("a > b > (c > a)", "column 10: c > a is a condition, where a number is needed"),
        ("a > b or d > 1", "column 10: there is no d"),
        ("not " * (MAX_DEPTH + 1) + "a > b", "column 101: the expression is nested too deep"),
    ],
)
def test_a_text_that_is_no_condition_is_refused_with_the_column(text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Condition.of(text, NAMES)


def test_any_name_is_taken_if_the_caller_names_none():
    """The caller may check these by their columns."""
    [first, second, again] = names_in(Condition.of(" x.y >= 1 and min(z, x.y) < 2").tree)

    assert [("x.y", 2), ("z", 19), ("x.y", 22)] == [
        (each.name, each.column) for each in (first, second, again)
    ]


def test_the_tree_has_each_comparison_with_its_column():
    """A chain is several comparisons; equal texts have equal trees."""
    condition = Condition.of("0 < a < 1 or not b >= 2")
    found = [(node.column, node.sign) for node in nodes(condition.tree) if isinstance(node, Relation)]

    assert [(1, "<"), (5, "<"), (18, ">=")] == found
    assert condition == Condition.of("0  < a < 1 or not b >= 2".replace("  ", " "))


def test_each_part_of_the_tree_has_its_kind_and_its_column():
    """One comparison is no `and`; a chain is one that begins where the chain does."""
    one, several = Condition.of("a > 1").tree, Condition.of(" 1 < a < 2 or -a + max(a, 2) < b").tree
    [chain, relation] = several.parts
    [total, _] = relation.parts

    assert isinstance(one, Relation)
    assert isinstance(several, Logic)
    assert ("or", 2, "and", 2) == (several.word, several.column, chain.word, chain.column)
    assert (15, 15, 15, 20) == (relation.column, total.column, *(part.column for part in total.parts))


def test_the_text_of_an_expression_has_single_spaces():
    """As it stands in answers and in errors."""
    assert "a + 1" == Formula.of("  a +\n 1 ").text
    assert "a > 1" == Condition.of("\ta  > 1 ").text


@pytest.mark.parametrize(
    ("before", "inside", "after"),
    [
        ("-", "a", ""),
        ("", "a", "+a"),
        ("a-(", "a", ")"),
        ("min(", "a", ")"),
    ],
)
def test_a_formula_is_nested_as_deep_as_allowed_on_each_side(before, inside, after):
    """And no deeper."""
    Formula.of(before * MAX_DEPTH + inside + after * MAX_DEPTH)
    with pytest.raises(ValueError, match="the expression is nested too deep"):
        Formula.of(before * (MAX_DEPTH + 1) + inside + after * (MAX_DEPTH + 1))


@pytest.mark.parametrize(
    ("before", "after", "outside"), [("-", "a > 1", 1), ("1 > -", "a", 1), ("a > 1 and not ", "a > 1", 2)]
)
def test_comparisons_and_logic_count_as_levels(before, after, outside):
    """A side of a comparison is one level deeper than it, and a part of `and` than that."""
    sign = before.split()[-1] + " " * before.endswith(" ")
    deepest = before.removesuffix(sign) + sign * (MAX_DEPTH - outside) + after

    Condition.of(deepest)
    with pytest.raises(ValueError, match="the expression is nested too deep"):
        Condition.of(deepest.replace(sign, sign * 2, 1))


@pytest.mark.parametrize("error", [RecursionError, MemoryError])
def test_a_text_that_is_too_deep_for_pythons_parser_is_refused(error, monkeypatch):
    """Which depends on the depth of the caller's own stack."""

    def parse(*given, **more):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(ast, "parse", parse)
        with pytest.raises(ValueError, match=r"^the expression is nested too deep$"):
            Formula.of("a")


def test_the_longest_number_and_the_longest_part_in_an_error_are_allowed():
    """One more character is too long, or is cut."""
    assert float("1" * MAX_DIGITS) == Formula.of("1" * MAX_DIGITS).value({})
    with pytest.raises(ValueError, match="is too large or too long"):
        Formula.of("1" * (MAX_DIGITS + 1))
    with pytest.raises(ValueError, match=f"there is no {'d' * MAX_SHOWN};"):
        Formula.of("d" * MAX_SHOWN, NAMES)
    with pytest.raises(ValueError, match=f"there is no {'d' * MAX_SHOWN}…;"):
        Formula.of("d" * (MAX_SHOWN + 1), NAMES)


def test_the_ends_of_intervals_are_those_of_numbers_that_grow():
    """Infinite ends have a quotient, too; what lacks nothing has an empty reason."""
    assert (-1.0, 1.0) == by_end(min)(Interval(0, 1), Interval(-1, 2))
    assert [0.0, 0.0, 0.5] == [quotient(inf, inf), quotient(1, -inf), quotient(1, 2)]
    assert Interval(13, 13, "") == interval(Formula.of("a + b").tree, NAMES)


@pytest.mark.parametrize(
    "text", ["11+" * 160 + "!", "11+" * 160 + "@", "a" * 499 + "@", "1" * 499 + "a", "1." * 250, "1e" * 250]
)
def test_a_long_text_is_refused_in_linear_time(text):
    """No pattern tries the parts of a name or a number again; of doubled time for each it would never end."""
    with pytest.raises(ValueError, match="column"):
        Formula.of(text, NAMES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a / (b - 9)", "a / (b - 9) divides by zero"),
        ("min(1 / (b - 9), 1)", "divides by zero"),
        ("sqrt( c )", "sqrt( c ) has the root of a negative number"),
        ("a * 1e200 * 1e200", "is not a finite number"),
        ("1 / (a * 1e200 * 1e200)", "is not a finite number"),
        ("a / 1e-308 / 1e-308", "is not a finite number"),
        ("1e308 * a - 1e308 * b", "is not a finite number"),
        ("mean(1e308, 1e308, a)", "is not a finite number"),
        ("0 / 0", "divides by zero"),
    ],
)
def test_a_formula_without_a_finite_value_is_an_error(text, said):
    """Never 0, and never infinity, on the way to the value either."""
    with pytest.raises(NoValueError, match=f"^{re.escape(said)}|{re.escape(said)}$"):
        Formula.of(text, NAMES).value(NAMES)


@pytest.mark.parametrize("number", [nan, inf, -inf])
def test_a_name_that_has_no_finite_number_gives_no_value_and_no_decision(number):
    """Even where any number would do."""
    with pytest.raises(NoValueError, match="a is not a finite number"):
        Formula.of("a").value({"a": number})
    assert Condition.of("min(a, 0) <= 0").holds({"a": number}) is None
    assert Interval(-inf, inf, "is not a finite number") == interval(
        Formula.of("a").tree, {"a": (number, number)}
    )


RANGES = {"x": (0.0, 10.0), "y": (-1.0, 2.0), "z": (-inf, inf), "p": (1.0, inf)}


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
        ("x / -4", (-2.5, 0)),
        ("1 / (x + 1)", (1 / 11, 1)),
        ("1 / x", (-inf, inf)),
        ("1 / p", (0, 1)),
        ("p / p", (0, inf)),
        ("p * y", (-inf, inf)),
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
    assert bounds == pytest.approx(Formula.of(text, RANGES).range(RANGES))


@pytest.mark.parametrize(
    "text", ["x * 1e308", "mean(1e308, 1e308, x)", "(x + 1) / 1e-320", "p * 1e200 * 1e200"]
)
def test_a_range_that_leaves_the_finite_numbers_is_an_error(text):
    with pytest.raises(NoValueError, match="is not a finite number in some cases"):
        Formula.of(text, RANGES).range(RANGES)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("x >= 0", True),
        ("x > 0", None),
        ("x < 0", False),
        ("x == 5", None),
        ("x == 11", False),
        ("x != 11", True),
        ("x <= z", None),
        ("x - x == 0", None),
        ("x >= 5 or x < 5", None),
        ("x >= 0 or z > 3", True),
        ("x < 0 and z > 3", False),
        ("not z > 3", None),
        ("-1 < x < 11", True),
        ("0.6 < x < 0.4", None),
        ("1 / x > -1", None),
        ("min(1 / x, 0) <= 0", None),
        ("0 / x == 0", None),
        ("sqrt(y) >= 0", None),
        ("sqrt(x) >= 0", True),
        ("x * 1e308 >= 0", None),
        ("1 / p <= 1", True),
        ("max(z, 3) >= 3", True),
    ],
)
def test_a_condition_is_decided_if_all_numbers_agree(text, holds):
    """Each occurrence by itself; a number without a value, as of a division by 0, decides nothing."""
    assert holds is Condition.of(text).holds(RANGES)


@pytest.mark.parametrize("left", [True, False, None])
@pytest.mark.parametrize("right", [True, False, None])
def test_logic_has_the_tables_of_kleene(left, right):
    """Every pair of truths; unknown is between false and true."""
    order, known = (False, None, True), {True: 1.0, False: 0.0, None: (0.0, 1.0)}
    names = {"a": known[left], "b": known[right]}

    assert Condition.of("a > 0 and b > 0").holds(names) is min(left, right, key=order.index)
    assert Condition.of("a > 0 or b > 0").holds(names) is max(left, right, key=order.index)
    assert Condition.of("not a > 0").holds(names) is order[2 - order.index(left)]
