"""
Benchmarks: tables from your copy of their data, and from scores, answers about pictures, or the pictures.

    import scoregate.bench

    found = scoregate.bench.run("dpg", data="dpg_bench.csv", answers={"A": "answers_A.csv"})

`BENCHMARKS` has what there is.  A benchmark of metrics makes tables of them from files of their scores.  One
of generators makes tables of these from files of answers, or from folders of pictures that it scores.  Needs
the extra `evaluate`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import scoregate
from scoregate.errors import InputError
from scoregate.settings import settings_in
from scoregate.text import say_outage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scoregate.bench.benchmark import Benchmark
    from scoregate.bench.data import MetricBenchmark

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


def run(name: str, *, client: scoregate.Client | None = None, **settings: Any) -> dict[str, Any]:
    """
    Return the tables of a benchmark, as `scoregate bench NAME --json` prints them.

    Args:
        name: of `BENCHMARKS`.
        client: scores pictures; by default `Client()`, opened when the first pictures have to be scored.
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
    own = settings_in(benchmark.settings, settings)

    def connect(*, strict: bool, metrics: Sequence[str] = ()) -> AbstractContextManager[scoregate.Client]:
        if client:
            return nullcontext(client)
        return scoregate.Client(timeout_s=TIMEOUT_S, strict=strict, outage=say_outage)

    return {"benchmark": name} | benchmark.tables(own, connect)
