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
    What a benchmark is, and where it is declared: in upper case in the file of its name.

    Attributes:
        help: one line.
        example: the words of a call of the command, after the benchmark's name.
    """

    name: str
    help: str
    example: str

    @cached_property
    def benchmark(self) -> Benchmark[Any] | MetricBenchmark[Any]:
        """The benchmark, whose file is imported at the first use."""
        found: Benchmark[Any] | MetricBenchmark[Any]
        found = getattr(import_module(f"{__name__}.{self.name}"), self.name.upper())
        return found


EXAMPLES = {  # these benchmarks have other arguments
    "geneval": "sd3=results.jsonl --human human",
    "oneig": "OneIG-Bench.csv sd3=pictures/sd3 --questions Q_D",
}

METRICS = {
    "ts2": "T2IscoreScore: rank, separation and delta of metrics, by subset",
    "geneval": "GenEval: generators by task, their failures by kind, and agreement with people",
    "genai": "GenAI-Bench: agreement of metrics with ratings, generators by skill, best of N",
    "winoground": "Winoground: text, image and group score of metrics by tag",
    "eqben": "EqBen: text, image and group score of metrics by source",
    "seetrue": "SeeTRUE: AUROC of metrics by source",
    "tifa160": "TIFA160: agreement of metrics with people's ratings",
    "gecko2k": "Gecko2K: metrics against people, point by point, side by side and in the generators' order",
}
GENERATORS = {
    "dpg": "DPG-Bench: generators by category, from sheets of pictures",
    "geneval2": "GenEval 2: generators by skill and by number of atoms",
    "oneig": "OneIG-Bench, alignment: generators by class, from sheets of pictures",
    "oneig_text": "OneIG-Bench, text: edit distance, pictures with all text, and words",
    "longtext": "LongText-Bench: words, or Chinese characters, that pictures show",
    "cvtg2k": "CVTG-2K: words, edit distance and CLIPScore of pictures with several texts",
    "compbench": "T2I-CompBench, attributes: generators by category, by P(yes) about noun phrases",
    "tiif": "TIIF-Bench: generators by attribute, for short and long prompts",
    "unigen": "UniGenBench++: generators by dimension and test point",
    "gedit": "GEdit-Bench: editors by task, by a judge of the edit and of the picture",
    "imgedit": "ImgEdit-Bench: editors by type of edit, by a judge",
    "kris": "KRIS-Bench: editors by dimension of knowledge, by a judge",
    "wise": "WISE: generators by category of world knowledge, by a judge",
    "wise_verified": "WISE_Verified: the same by the authors' update, with one grade",
}
BENCHMARKS: dict[str, Declaration] = {
    name: Declaration(name, help, EXAMPLES.get(name, example))
    for names, example in ((METRICS, "data --scores scores.jsonl"), (GENERATORS, "data sd3=pictures/sd3"))
    for name, help in names.items()
}


def run(name: str, *, client: scoregate.Client | None = None, **settings: Any) -> dict[str, Any]:
    """
    Return the tables of a benchmark, as `scoregate bench NAME --json` prints them.

    Args:
        name: of `BENCHMARKS`.
        client: scores pictures; by default `Client()`, opened when the first pictures have to be scored.
        settings: those of the benchmark's class `BENCHMARKS[name].benchmark.settings`; paths may be texts.

    Raises:
        InputError: there is no such benchmark or setting, or a file or a folder is not valid.
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
