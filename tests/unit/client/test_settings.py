"""Settings: one declaration for a notebook and for the command line."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from scoregate.cli.arguments import CommandParser, add_settings, add_values, settings_of
from scoregate.errors import InputError
from scoregate.settings import Column, MetricNames, Setting, declared, settings_in


@dataclass(frozen=True, kw_only=True)
class Example:
    """Settings of several types."""

    data: Annotated[Path, Setting("rows")]
    page: Annotated[Path | None, Setting("of the rows")] = None
    order: Annotated[Literal["up", "down"], Setting("of the rows")] = "up"
    label: Annotated[str, Column("the label")] = "good"
    metrics: Annotated[Sequence[str], MetricNames("of the rows")] = ()
    options: Annotated[Mapping[str, Any], Setting("of the metrics", option=False)] = field(
        default_factory=dict
    )
    plain: str = ""


def parser():
    """A parser of these settings."""
    made = CommandParser()
    add_settings(made, Example)
    return made


def test_a_field_without_a_description_is_no_setting():
    """It is a plain field of the class."""
    assert ["data", "page", "order", "label", "metrics", "options"] == list(declared(Example))
    with pytest.raises(InputError, match="plain: no such setting"):
        settings_in(Example, {"data": "a", "plain": "b"})


def test_a_text_is_parsed_by_the_type_of_its_setting():
    """A path is made of a text, also where it may be None, and a literal takes its own values alone."""
    found = settings_in(Example, {"data": "a", "page": "b", "order": "down"})
    assert Example(data=Path("a"), page=Path("b"), order="down") == found
    with pytest.raises(InputError, match="order: 'left': choose from up, down"):
        settings_in(Example, {"data": "a", "order": "left"})


def test_a_setting_without_a_default_is_required(capsys):
    """In a notebook and on the command line."""
    with pytest.raises(InputError, match="data is missing"):
        settings_in(Example, {})
    with pytest.raises(SystemExit):
        parser().parse_args([])
    assert "required: --data" in capsys.readouterr().err


def test_the_command_line_takes_what_a_notebook_takes():
    """The same values give the same settings."""
    words = ["--data", "a", "--order", "down", "--label", "right", "-m", "dsg,ocr", "--metric", "clipscore"]
    values = {"data": "a", "order": "down", "label": "right", "metrics": ["dsg,ocr", "clipscore"]}
    arguments = parser().parse_args(words, Namespace())
    assert settings_in(Example, values) == settings_of(Example, arguments)
    assert ("dsg", "ocr", "clipscore") == settings_of(Example, arguments).metrics


def test_an_argument_of_a_command_is_the_setting_of_its_name():
    """Options of metrics are those in JSON, and those that are given one by one."""
    made = parser()
    add_values(made)
    words = ["--data", "a", "--options", '{"dsg": {"a": 1}}', "--option", "dsg.b=2", "--option", "ocr.text=x"]
    found = settings_of(Example, made.parse_args(words))
    assert {"dsg": {"a": 1, "b": 2}, "ocr": {"text": "x"}} == found.options


def test_help_names_the_column_that_is_read_by_default():
    """A column by its name, and any other setting as its description says."""
    text = " ".join(parser().format_help().split())
    assert "--label COLUMN the label (default good)" in text
    assert "--order {up,down} of the rows" in text
