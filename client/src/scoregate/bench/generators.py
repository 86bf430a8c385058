"""The benchmarks of generators, by name."""

from typing import Any

from scoregate.bench.benchmark import Benchmark
from scoregate.bench.compbench import COMPBENCH
from scoregate.bench.cvtg2k import CVTG2K
from scoregate.bench.dpg import DPG
from scoregate.bench.gedit import GEDIT
from scoregate.bench.geneval2 import GENEVAL2
from scoregate.bench.imgedit import IMGEDIT
from scoregate.bench.kris import KRIS
from scoregate.bench.longtext import LONGTEXT
from scoregate.bench.oneig import ONEIG
from scoregate.bench.oneig_text import ONEIG_TEXT
from scoregate.bench.tiif import TIIF
from scoregate.bench.unigen import UNIGEN
from scoregate.bench.wise import WISE
from scoregate.bench.wise_verified import WISE_VERIFIED

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
