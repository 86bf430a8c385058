"""Suites of benchmarks of generators: a TOML file with the data and the settings of each."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import Any

from scoregate.bench import BENCHMARKS, GENERATORS
from scoregate.bench.benchmark import Benchmark, GeneratorSettings
from scoregate.records import BadInput, toml_of
from scoregate.settings import json_object, metric_options, settings_in

BUILT_IN = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}
GIVEN_ONCE = {"answers", "out", "bootstrap", "seed", "strict", "concurrency"}  # for all benchmarks

Content = Mapping[str, Mapping[str, Any]]  # the entries of a suite, by name


@dataclass(frozen=True)
class SuiteEntry:
    """
    A benchmark of a suite.

    Attributes:
        name: in the suite, and of what FOLDER has for it; one benchmark may have several entries.
        settings: with absolute paths, and without answers.
    """

    name: str
    benchmark: Benchmark[Any]
    settings: GeneratorSettings

    @property
    def data(self) -> dict[str, Path]:
        """The files and folders of data, by setting."""
        return paths_of(replace(self.settings, out=None))


def paths_of(settings: GeneratorSettings) -> dict[str, Path]:
    """Return the settings that are paths."""
    return {name: path for name, path in vars(settings).items() if isinstance(path, Path)}


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
        if str(benchmark := entry.get("benchmark", name)) not in GENERATORS:
            raise BadInput(f"{place}: [{name}]: no benchmark {benchmark}; there are {', '.join(GENERATORS)}")
        if not isinstance(entry.get("data"), str):
            raise BadInput(f"{place}: [{name}]: data is not the path of the benchmark's data")
    return content


def entries_of(content: Content, place: str, base: Path, common: Mapping[str, Any]) -> list[SuiteEntry]:
    """
    Return the entries of a suite.

    Args:
        place: the name of the suite, for messages.
        base: the folder of relative paths.
        common: settings of all benchmarks.

    Raises:
        BadInput: a benchmark has no such setting, or it cannot have such a value.
    """
    found = []
    for name, entry in content.items():
        declared = BENCHMARKS[entry.get("benchmark", name)].benchmark
        assert isinstance(declared, Benchmark)  # `checked` has let in benchmarks of generators only
        try:
            own = settings_in(declared.settings, {**given_in(entry), **common})
        except (BadInput, ValueError) as exc:
            raise BadInput(f"{place}: [{name}]: {exc}") from exc
        absolute = {setting: base.resolve() / path for setting, path in paths_of(own).items()}
        found.append(SuiteEntry(name, declared, replace(own, **absolute)))
    return found


def given_in(entry: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the settings of an entry, whose names may have hyphens, as options of the command have.

    Options of metrics are a table `options`, or texts `option` of the form METRIC.OPTION=VALUE.

    Raises:
        BadInput: a setting is given once for all benchmarks.
        ValueError: options are not those of metrics.
    """
    found = {name.replace("-", "_"): value for name, value in entry.items() if name != "benchmark"}
    if once := [name for name in found if name in GIVEN_ONCE]:
        raise BadInput(f"{once[0]} is given to the command, for all benchmarks")
    texts, options = found.pop("option", []), found.pop("options", {})
    options = json_object(options if isinstance(options, str) else json.dumps(options))
    return found | {"options": metric_options(texts if isinstance(texts, list) else [texts], options)}


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
