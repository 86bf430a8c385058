"""
How far to trust scores: figures that compare metrics, generators and raters.

Pure functions over columns of numbers and names; the command `scoregate evaluate` reads the columns from
files.  Needs the extra `evaluate`.  docs/evaluation.md defines every figure.
"""

from scoregate.evaluation.alpha import Alpha, alpha
from scoregate.evaluation.auroc import Auroc, auroc
from scoregate.evaluation.convergence import Convergence, convergence
from scoregate.evaluation.correlation import Correlation, correlation
from scoregate.evaluation.errors import BadColumn, BadInput
from scoregate.evaluation.geneval import GenEval, geneval
from scoregate.evaluation.ordering import Ordering, SignedRank, ordering, signed_rank
from scoregate.evaluation.preference import Preference, preference
from scoregate.evaluation.reliable import Reliable, reliable
from scoregate.evaluation.scale import Scale
from scoregate.evaluation.tables import Table, read
from scoregate.evaluation.ties import PairAccuracy, pair_accuracy
from scoregate.evaluation.ts2 import Ts2, ts2
from scoregate.evaluation.winoground import Winoground, winoground

__all__ = [
    "Alpha",
    "Auroc",
    "BadColumn",
    "BadInput",
    "Convergence",
    "Correlation",
    "GenEval",
    "Ordering",
    "PairAccuracy",
    "Preference",
    "Reliable",
    "Scale",
    "SignedRank",
    "Table",
    "Ts2",
    "Winoground",
    "alpha",
    "auroc",
    "convergence",
    "correlation",
    "geneval",
    "ordering",
    "pair_accuracy",
    "preference",
    "read",
    "reliable",
    "signed_rank",
    "ts2",
    "winoground",
]
