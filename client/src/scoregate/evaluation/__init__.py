"""
How far to trust scores: figures that compare metrics, generators and raters.

Pure functions over columns of numbers and names; the command `scoregate evaluate` reads the columns from
files.  Needs the extra `evaluate`.  docs/evaluation.md defines every figure.
"""

from scoregate.evaluation.agreement import Auroc, Correlation, auroc, correlation
from scoregate.evaluation.arrays import BadColumn, Scale
from scoregate.evaluation.geneval import GenEval, geneval
from scoregate.evaluation.ordering import Ordering, SignedRank, ordering, signed_rank
from scoregate.evaluation.pairs import PairAccuracy, Preference, pair_accuracy, preference
from scoregate.evaluation.raters import Alpha, Convergence, alpha, convergence
from scoregate.evaluation.tables import Table, read_table
from scoregate.evaluation.templates import Reliable, reliable
from scoregate.evaluation.ts2 import Ts2, ts2
from scoregate.evaluation.versus import GeneratorMean, GeneratorPair, Versus, versus
from scoregate.evaluation.winoground import Winoground, winoground
from scoregate.records import BadInput

__all__ = [
    "Alpha",
    "Auroc",
    "BadColumn",
    "BadInput",
    "Convergence",
    "Correlation",
    "GenEval",
    "GeneratorMean",
    "GeneratorPair",
    "Ordering",
    "PairAccuracy",
    "Preference",
    "Reliable",
    "Scale",
    "SignedRank",
    "Table",
    "Ts2",
    "Versus",
    "Winoground",
    "alpha",
    "auroc",
    "convergence",
    "correlation",
    "geneval",
    "ordering",
    "pair_accuracy",
    "preference",
    "read_table",
    "reliable",
    "signed_rank",
    "ts2",
    "versus",
    "winoground",
]
