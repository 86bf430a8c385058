"""
Client of a Scoregate service, which scores how well pictures match their prompts.

    with scoregate.Client() as client:
        print(client.score("cat.png", "a cat on a red chair").value)

Without a server, `scoregate.load("demo")` is such a client with the models in this process.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from os import PathLike
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
    "versus",
]


def versus(
    generators: Mapping[str, str | PathLike[str]] | Sequence[str | PathLike[str]],
    metrics: Sequence[str] | str = (),
    *,
    client: Client | None = None,
    local: Sequence[str] | str = (),
    **settings: Any,
) -> Any:
    """
    Compare generators on the same prompts, as `scoregate versus`; needs the extra `evaluate`.

    The result is a `scoregate.report.versus.VersusOutcome`, which a notebook shows as a table.

    Args:
        generators: paths by name, or paths that name them: folders, data sets, shards, results of `batch`.
        client: scores, and stays open; by default a client of the service that the environment names.
        local: models that are loaded for this call, in place of a service.
        settings: further fields of `VersusSettings`, such as `prompts`, `out`, `by`, `html` and `complete`.

    Raises:
        InputError: settings do not go together, or the generators are not comparable.
        OSError: a file cannot be read or written.
        NoResultError: a score is missing, and the comparison has to be complete.
        ScoregateError: a request failed as a whole; what was scored is kept.
    """
    report = import_module("scoregate.report.versus")
    return report.versus(generators, metrics, client=client, local=local, **settings)
