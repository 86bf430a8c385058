"""What is printed: columns stand straight, and nothing steers the terminal."""

import pytest

from scoregate.text import number, shown, table, width


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("\ud800", "\\ud800"),
        ("\u2028", "\\u2028"),
        ("ein grünes Herz 猫 👩‍👧", "ein grünes Herz 猫 👩‍👧"),
    ],
)
def test_text_cannot_steer_a_terminal(text, safe):
    """Controls, halves of characters and turns of direction are shown as escapes; other text as it is."""
    assert safe == shown(text)


def test_columns_stand_straight():
    """Names at the left, numbers at the right; a wide character takes two columns, an accent none."""
    drawn = table(["NAME", "SCORE"], [["猫", "0.5"], ["cafe\u0301", "10.25"]], right=["SCORE"])

    assert ["NAME  SCORE", "猫      0.5", "cafe\u0301  10.25"] == drawn.splitlines()
    assert {11} == {width(line) for line in drawn.splitlines()}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0.0000"),
        (-0.00001, "0.0000"),
        (-0.0001, "-0.0001"),
        (-3.25, "-3.2500"),
        (123456.0, "1.235e+05"),
    ],
)
def test_a_missing_score_is_a_dash_and_no_zero(value, text):
    """Numbers have four digits; what rounds to zero has no sign."""
    assert text == number(value)
