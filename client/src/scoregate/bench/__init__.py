"""
Benchmarks: tables from your copy of their data, and from scores, answers about pictures, or the pictures.

    import scoregate.bench

    found = scoregate.bench.run("dpg", data="dpg_bench.csv", answers={"A": "answers_A.csv"})

`BENCHMARKS` has what there is.  A benchmark of metrics makes tables of them from files of their scores.  One
of generators makes tables of these from files of answers, or from folders of pictures that it scores.  Needs
the extra `evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from scoregate.client import Client
from scoregate.errors import InputError
from scoregate.local import Service
from scoregate.settings import settings_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from scoregate.bench.benchmark import Benchmark
    from scoregate.bench.data import MetricBenchmark
    from scoregate.bench.suite import SuiteReport

TIMEOUT_S = 600.0  # seconds for a request


@dataclass(frozen=True)
class Declaration:
    """
    Where a benchmark is declared: in upper case in the file of its name.

    Attributes:
        module: whose docstring begins with a line of help.
    """

    name: str
    module: str
    path: Path

    @cached_property
    def help(self) -> str:
        """One line, read from the file: an import takes longer than the whole help of the command."""
        return self.path.read_text("utf-8").split('"""')[1].strip().partition("\n")[0].removesuffix(".")

    @cached_property
    def benchmark(self) -> Benchmark[Any] | MetricBenchmark[Any]:
        """The benchmark, whose file is imported at the first use."""
        found: Benchmark[Any] | MetricBenchmark[Any]
        found = getattr(import_module(self.module), self.name.upper())
        return found


def declared_in(folder: str) -> dict[str, Declaration]:
    """Return what the modules of a folder of this package declare, by name."""
    path = Path(__file__).with_name(folder)
    names = [info.name for info in iter_modules([str(path)])]
    return {name: Declaration(name, f"{__name__}.{folder}.{name}", path / f"{name}.py") for name in names}


METRICS = declared_in("metrics")
GENERATORS = declared_in("generators")
BENCHMARKS = METRICS | GENERATORS


def run(
    name: str, *, client: Client | None = None, local: Sequence[str] | str = (), **settings: Any
) -> dict[str, Any]:
    """
    Return the tables of a benchmark, as `scoregate bench NAME --json` prints them.

    Args:
        name: of `BENCHMARKS`.
        client: scores pictures, and stays open; by default one of the service that the environment names.
        local: models that are loaded for this call, in place of a service.
        settings: options of the command, the fields of `BENCHMARKS[name].benchmark.settings`; paths may be
            texts.

    Raises:
        InputError: there is no such benchmark or setting, or a file or a folder is not valid.
        OSError: a file cannot be read.
        ScoregateError: the service failed as a whole.
    """
    if name not in BENCHMARKS:
        raise InputError(f"no benchmark {name}; there are {', '.join(BENCHMARKS)}")
    benchmark = BENCHMARKS[name].benchmark
    service = Service.of(client, local, settings.get("strict"), TIMEOUT_S)
    shared = {"strict": service.strict} if name in GENERATORS else {}  # others score nothing
    return {"benchmark": name} | benchmark.tables(settings_in(benchmark.settings, settings | shared), service)


def run_suite(
    generators: Mapping[str, str | PathLike[str]] | None = None,
    *,
    client: Client | None = None,
    local: Sequence[str] | str = (),
    **settings: Any,
) -> SuiteReport:
    """
    Return the tables of a suite of benchmarks, and write the report, as `scoregate bench run`.

    Args:
        generators: a folder of each by name, with pictures or a file of answers for each benchmark; those of
            the manifest `again` if none are named.
        client, local: as of `run`; they score the pictures of all benchmarks.
        settings: further fields of `scoregate.bench.suite.SuiteSettings`, such as `suite`, `data` and `out`.

    Raises:
        InputError: the suite, the manifest, a setting or the generators are not valid.
        OSError: the report cannot be written.
        NoResultError: no benchmark has figures.
        ScoregateError: the service failed as a whole.
    """
    suite = import_module(f"{__name__}.suite")  # few runs need it
    service = Service.of(client, local, settings.get("strict"), TIMEOUT_S)
    shared = {"generators": generators or {}, "strict": service.strict}
    report: SuiteReport = suite.write_suite(settings_in(suite.SuiteSettings, settings | shared), service)
    return report
