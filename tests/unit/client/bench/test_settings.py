"""The benchmarks by name, their typed settings, and `scoregate.bench.run`."""

import sys
from functools import partial
from pathlib import Path

import pytest

import scoregate.bench
from scoregate.bench import BENCHMARKS, GENERATORS
from scoregate.bench.benchmark import Benchmark
from scoregate.bench.suite import SuiteEntry, SuiteReport, tabulate
from scoregate.cli.arguments import CommandParser
from scoregate.cli.bench import declare, own_settings
from scoregate.errors import DeadlineExceededError, InputError, ServiceConnectionError, ServiceTimeoutError
from scoregate.local import Service
from scoregate.settings import declared
from tests.support.paths import ROOT
from tests.unit.client.bench.test_dpg import row

FILES = {
    "oneig": {"questions": Path("q")},
    "geneval": {"answers": {"A": Path("a")}},
    "winoground": {"scores": (Path("s"),)},
    "eqben": {"scores": (Path("s"),)},
}


def parsed(name, *words):
    """The settings that arguments of the command give."""
    benchmark = BENCHMARKS[name].benchmark
    arguments = CommandParser(prog=name, declare=partial(declare, name)).parse_args(words)
    return own_settings(benchmark, arguments)


def test_each_benchmark_is_declared_in_the_file_of_its_name():
    """One of generators is a `Benchmark` in their folder; the first line of the docstring is the help."""
    for name, each in BENCHMARKS.items():
        assert name == each.benchmark.name
        assert isinstance(each.benchmark, Benchmark) == (name in GENERATORS)
        assert f"{each.help}." == sys.modules[each.module].__doc__.strip().splitlines()[0]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_command_has_the_defaults_of_the_settings(name):
    """Both give the same figures; each setting is an argument."""
    benchmark, more = BENCHMARKS[name].benchmark, FILES.get(name, {})
    words = ["data"] if benchmark.data else []
    words += ["A=a"] if name == "geneval" else []
    words += [f"--{key}={'s' if key == 'scores' else 'q'}" for key in more if key != "answers"]
    data = {"data": Path("data")} if benchmark.data else {}

    assert benchmark.settings(**data, **more) == parsed(name, *words)


def test_a_default_may_depend_on_the_data(written):
    """The cap of the text score is that of the language of the prompts."""
    benchmark, found = BENCHMARKS["oneig_text"].benchmark, []
    for column in ("prompt_en", "prompt_cn"):
        data = written([{"id": "0", column: "p", "text_content": "['a']"}], f"{column}.csv")
        both = [parsed("oneig_text", str(data), *more) for more in ([], ["--cap", "7"])]
        found += [benchmark.resolved(each).cap for each in both]

    assert [100, 7, 50, 7] == found


def test_items_are_made_from_settings_without_a_command(written):
    """With the defaults of the class."""
    benchmark = BENCHMARKS["dpg"].benchmark
    settings = benchmark.settings(data=Path(written([row("x", 1), row("x", 2)], "d.csv")))
    [item] = benchmark.items(settings)

    values = benchmark.values(settings, item, [{2: "yes"}])

    assert {"overall": [1.0], "entity": [1.0], "categories: entity - whole": [1.0]} == values


@pytest.fixture
def files(written):
    """Data of DPG-Bench, and answers about one picture."""
    data = written([row("x", 1), row("x", 2)], "d.csv")
    return {"data": str(data), "answers": {"A": written([{"item": "x", "answer": "yes"}], "a.csv")}}


def test_answers_in_files_need_no_service(files, monkeypatch):
    """The client is opened when pictures have to be scored."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", "not an address")

    assert 1 == scoregate.bench.run("dpg", **files)["prompts"]


@pytest.mark.parametrize(
    ("name", "more", "line"),
    [
        ("dgp", {}, "no benchmark dgp; there are eqben, "),
        ("dpg", {"seeds": 1}, "seeds: no such setting; did you mean seed? there are "),
        ("dpg", {"answers": {}}, "name a generator"),
        ("dpg", {"answers": "A=x.csv"}, "answers: 'A=x.csv': no mapping, such as {'NAME': …}"),
        ("dpg", {"dependencies": "all"}, "dependencies: 'all': choose from released, direct, none"),
        ("dpg", {"bootstrap": -1}, "bootstrap: -1: a whole number from 0"),
        ("dpg", {"first_row": "yes"}, "first_row: 'yes' is neither true nor false"),
        ("dpg", {"seed": True}, "seed: True: neither a text nor a number"),
        ("wise", {"rubric": {"a": []}}, "rubric: {'a': []}: neither a text nor a number"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(files, name, more, line):
    """With what it can be."""
    with pytest.raises(InputError) as caught:
        scoregate.bench.run(name, **files | more)

    assert line in str(caught.value)


def test_a_file_that_is_not_there_is_the_built_in_error(files):
    """As of `open`; what is in a file that is not valid is an `InputError`."""
    with pytest.raises(FileNotFoundError, match="missing"):
        scoregate.bench.run("dpg", **files | {"data": "missing.csv"})


OF_THE_COMMAND = {"prompts", "json", "format", "table", "quiet"}
OF_THE_SERVICE = {"base_url", "local", "api_key", "timeout"}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_options_of_the_command_are_arguments(name):
    """With `_` for hyphens, but for those that the page excludes; each has the value of the command."""
    parser, settings = CommandParser(prog=name), BENCHMARKS[name].benchmark.settings
    declare(name, parser)
    options = {argument_of(action) for action in parser._actions} - {"help", "version"}
    page = (ROOT / "docs/benchmarks.md").read_text("utf-8")

    assert options - declared(settings).keys() <= OF_THE_COMMAND | OF_THE_SERVICE | {"option"}
    assert [] == [each for each in {*OF_THE_COMMAND, "option"} if f"`--{each}`" not in page]


def argument_of(action):
    """The argument of the function for an option of the command, as the page says."""
    flag = next((flag for flag in action.option_strings if flag.startswith("--")), action.dest)
    return flag.removeprefix("--").replace("-", "_")


def test_data_that_are_not_given_are_named():
    """Before anything is read."""
    with pytest.raises(InputError, match="data is missing"):
        scoregate.bench.run("dpg", answers={"A": "a.csv"})


def test_a_suite_is_run_by_a_function(files, tmp_path, monkeypatch):
    """Its report has the tables of each benchmark, as the function of one returns them."""
    (tmp_path / "mine.toml").write_text('[dpg]\ndata = "d.csv"\ndependencies = "none"\n', "utf-8")
    (tmp_path / "A").mkdir()
    (tmp_path / "A" / "dpg.csv").write_bytes((tmp_path / "a.csv").read_bytes())
    monkeypatch.setenv("SCOREGATE_BASE_URL", "not an address")
    report = scoregate.bench.run_suite(
        {"A": str(tmp_path / "A")}, suite=str(tmp_path / "mine.toml"), out=tmp_path / "out"
    )

    assert (False, []) == (report.failed, report.left_out)
    assert {"dpg": scoregate.bench.run("dpg", **files, dependencies="none")} == report.tables
    again = scoregate.bench.run_suite(again=tmp_path / "out" / "manifest.json")
    assert [] == again.differences.figures


def test_a_client_has_its_own_models_for_benchmarks_and_suites_too(files, answered):
    """As for a run over a data set; and it is strict or not by itself."""
    client = answered(lambda request: None, strict=True)
    for more in ({"local": "demo"}, {"strict": False}):
        with pytest.raises(InputError, match="a client has its own models"):
            scoregate.bench.run("dpg", **files, client=client, **more)
        with pytest.raises(InputError, match="a client has its own models"):
            scoregate.bench.run_suite({}, suite="t2i", client=client, **more)


@pytest.mark.parametrize("kind", [ServiceConnectionError, ServiceTimeoutError, DeadlineExceededError])
def test_a_service_that_fails_ends_a_suite(kind):
    """Each is an `OSError`, which of a file leaves out only its benchmark."""

    class Late:
        """A benchmark whose pictures are not scored in time."""

        name = "late"

        def tables(self, settings, service):
            raise kind

    with pytest.raises(kind):
        tabulate(SuiteEntry("late", Late(), None), SuiteReport(), Service(), most=0)


def test_no_function_of_a_benchmark_takes_arguments_of_the_command():
    """What is parsed stays in the command line."""
    files = (ROOT / "client/src/scoregate/bench").rglob("*.py")

    assert [] == [path.name for path in files if "argparse" in path.read_text("utf-8")]
