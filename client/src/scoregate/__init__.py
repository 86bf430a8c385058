"""
Client of a Scoregate service, which scores how well pictures match their prompts.

    with scoregate.Client() as client:
        print(client.score("cat.png", "a cat on a red chair").value)

Without a server, `scoregate.load("demo")` is such a client with the models in this process.
"""

from importlib import import_module
from typing import Any

from scoregate import errors
from scoregate.aio import AsyncClient
from scoregate.client import Client
from scoregate.comparison import Comparison, FailedPair, Pair, Strength
from scoregate.data.datasets import read_dataset
from scoregate.decisions.decision import Decision, Decisions
from scoregate.errors import ScoregateError
from scoregate.images import Frames, sample_frames
from scoregate.items import Accept, Cascade, Item, Pairing, TimeSpan
from scoregate.local import AsyncLocalClient, LocalClient, aload, load
from scoregate.ranking import Ranked, Ranking
from scoregate.results import Notice, QuestionSet, Report, Result, Score, ScoregateWarning
from scoregate.settings import VERSION

__version__ = VERSION

__all__ = [
    "Accept",
    "AsyncClient",
    "AsyncLocalClient",
    "Cascade",
    "Client",
    "Comparison",
    "Decision",
    "Decisions",
    "FailedPair",
    "Frames",
    "Item",
    "LocalClient",
    "Notice",
    "Pair",
    "Pairing",
    "QuestionSet",
    "Ranked",
    "Ranking",
    "Report",
    "Result",
    "Score",
    "ScoregateError",
    "ScoregateWarning",
    "Strength",
    "TimeSpan",
    "aload",
    "errors",
    "load",
    "read_dataset",
    "sample_frames",
]


def __getattr__(name: str) -> Any:
    """Import `versus`, which needs the extra `evaluate`, at its first use."""
    if name != "versus":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("scoregate.report.versus").versus
