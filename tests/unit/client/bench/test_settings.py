"""The benchmarks of generators by name, and their typed settings."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from scoregate.bench.benchmark import add_benchmark, own_settings
from scoregate.bench.generators import BENCHMARKS
from scoregate.cli.arguments import CommandParser
from scoregate.cli.bench import GENERATORS
from tests.unit.client.bench.test_dpg import row


def test_each_benchmark_of_the_command_has_its_own():
    """In the order of the help."""
    assert [*GENERATORS] == [*BENCHMARKS]
    assert [*GENERATORS] == [each.name for each in BENCHMARKS.values()]


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name != "oneig_text"])
def test_the_command_has_the_defaults_of_the_settings(name):
    """Both give the same figures; each setting is an argument."""
    benchmark = BENCHMARKS[name]
    required = {"questions": Path("q")} if name == "oneig" else {}
    words = [f"--{option}={value}" for option, value in required.items()]
    arguments = CommandParser(prog=name, declare=partial(add_benchmark, benchmark)).parse_args(
        ["data", *words]
    )
    own = benchmark.settings(data=Path("data"), **required)

    assert own == replace(own_settings(benchmark, arguments), generators=())


def test_a_default_may_depend_on_the_data(written):
    """The cap of the text score is that of the language of the prompts."""
    benchmark, found = BENCHMARKS["oneig_text"], []
    for column in ("prompt_en", "prompt_cn"):
        data = written([{"id": "0", column: "p", "text_content": "['a']"}], f"{column}.csv")
        for more in ([], ["--cap", "7"]):
            arguments = CommandParser(prog="t", declare=partial(add_benchmark, benchmark)).parse_args(
                [data, *more]
            )
            found.append(own_settings(benchmark, arguments).cap)

    assert [100, 7, 50, 7] == found


def test_items_are_made_from_settings_without_a_command(written):
    """With the defaults of the class."""
    benchmark = BENCHMARKS["dpg"]
    settings = benchmark.settings(data=Path(written([row("x", 1), row("x", 2)], "d.csv")))
    [item] = benchmark.items(settings)

    values = benchmark.values(settings, item, [{2: "yes"}])

    assert {"overall": [1.0], "entity": [1.0], "categories: entity - whole": [1.0]} == values
