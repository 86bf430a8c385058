"""The benchmarks of generators, by name."""

from typing import Any

from scoregate.cli.bench.benchmark import Benchmark
from scoregate.cli.bench.compbench import COMPBENCH
from scoregate.cli.bench.cvtg2k import CVTG2K
from scoregate.cli.bench.dpg import DPG
from scoregate.cli.bench.gedit import GEDIT
from scoregate.cli.bench.geneval2 import GENEVAL2
from scoregate.cli.bench.imgedit import IMGEDIT
from scoregate.cli.bench.kris import KRIS
from scoregate.cli.bench.longtext import LONGTEXT
from scoregate.cli.bench.oneig import ONEIG
from scoregate.cli.bench.oneig_text import ONEIG_TEXT
from scoregate.cli.bench.tiif import TIIF
from scoregate.cli.bench.unigen import UNIGEN
from scoregate.cli.bench.wise import WISE
from scoregate.cli.bench.wise_verified import WISE_VERIFIED

BENCHMARKS: dict[str, Benchmark[Any]] = {
    each.name: each
    for each in (
        DPG,
        GENEVAL2,
        ONEIG,
        ONEIG_TEXT,
        LONGTEXT,
        CVTG2K,
        COMPBENCH,
        TIIF,
        UNIGEN,
        GEDIT,
        IMGEDIT,
        KRIS,
        WISE,
        WISE_VERIFIED,
    )
}
