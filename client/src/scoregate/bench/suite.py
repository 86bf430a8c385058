"""Suites of benchmarks of generators: a TOML file with the data and the options of each."""

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

from scoregate.bench.benchmark import Benchmark, add_benchmark
from scoregate.bench.generators import BENCHMARKS
from scoregate.cli.arguments import CommandParser, UsageFault
from scoregate.records import BadInput, toml_of

BUILT_IN = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}
# Arguments of `scoregate bench NAME` that are given once, for all benchmarks.
OF_THE_COMMAND = {"out", "prompts", "help", "version", "base_url", "local", "api_key", "timeout"}

Content = Mapping[str, Mapping[str, Any]]  # the entries of a suite, by name


@dataclass(frozen=True)
class Entry:
    """
    A benchmark of a suite.

    Attributes:
        name: in the suite, and of what FOLDER has for it; one benchmark may have several entries.
        arguments: those of `scoregate bench NAME`, with absolute paths.
    """

    name: str
    benchmark: Benchmark[Any]
    arguments: argparse.Namespace

    @property
    def data(self) -> dict[str, Path]:
        """The files and folders of data, by argument."""
        given = vars(self.arguments).items()
        return {name: path for name, path in given if isinstance(path, Path) and name != "out"}


def suite_in(path: Path) -> Content:
    """Return the entries of a suite's file.  Raises `BadInput` if it is no TOML with a table for each."""
    return checked(toml_of(path), str(path))


def checked(content: Any, place: str) -> Content:
    """Return *content* if it is a suite.  Raises `BadInput` with *place* and the entry."""
    if not isinstance(content, dict) or not content:
        raise BadInput(f"{place}: no table of a benchmark, such as [dpg]")
    for name, entry in content.items():
        if not isinstance(entry, dict):
            raise BadInput(f"{place}: {name} is no table; one of a benchmark is [{name}]")
        if Path(name).name != name or name.startswith("."):
            raise BadInput(f"{place}: [{name}] is no name of a folder")
        if (benchmark := entry.get("benchmark", name)) not in BENCHMARKS:
            raise BadInput(f"{place}: [{name}]: no benchmark {benchmark}; there are {', '.join(BENCHMARKS)}")
        if not isinstance(entry.get("data"), str):
            raise BadInput(f"{place}: [{name}]: data is not the path of the benchmark's data")
    return content


def entries_of(content: Content, place: str, base: Path, common: Mapping[str, Any]) -> list[Entry]:
    """
    Return the entries of a suite.

    Args:
        place: the name of the suite, for messages.
        base: the folder of relative paths.
        common: arguments of all benchmarks.

    Raises:
        UsageFault: an option is one of the command.
        SystemExit: a benchmark has no such option, or it has another form; as argparse ends a command.
    """
    found = []
    for name, options in content.items():
        own = f"{place}: [{name}]"
        benchmark = BENCHMARKS[options.get("benchmark", name)]
        parser = CommandParser(prog=own, declare=partial(add_benchmark, benchmark), allow_abbrev=False)
        words = [*words_of(options, own, common), "--", str(base.resolve() / options["data"])]
        arguments = parser.parse_args(words, argparse.Namespace(**common))
        for option, value in vars(arguments).items():
            if isinstance(value, Path):
                setattr(arguments, option, base.resolve() / value)
        found.append(Entry(name, benchmark, arguments))
    return found


def words_of(options: Mapping[str, Any], place: str, common: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of an entry as words of the command.  Raises `UsageFault`."""
    for name, value in options.items():
        if name in ("benchmark", "data") or value is False:
            continue
        if name.replace("-", "_") in OF_THE_COMMAND | common.keys():
            raise UsageFault(f"{place}: {name} is given to the command, for all benchmarks")
        for each in value if isinstance(value, list) else [value]:
            text = json.dumps(each) if isinstance(each, dict) else str(each)
            yield f"--{name}" if each is True else f"--{name}={text}"


def source_of(folder: Path, name: str) -> Path | None:
    """
    Return what a generator's FOLDER has for an entry: its folder of pictures, or a file `NAME.*` of answers.

    Raises:
        BadInput: there are several files.
    """
    if (folder / name).is_dir():
        return folder / name
    files = [path for path in sorted(folder.glob(f"{escape(name)}.*")) if path.is_file()]
    if len(files) > 1:
        raise BadInput(f"{folder}: several files of answers: {', '.join(path.name for path in files)}")
    return files[0] if files else None
