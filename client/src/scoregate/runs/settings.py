"""Settings of runs over data sets: of the scores, a filter, a cluster, and all of them together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoregate.data.source import DataSource
from scoregate.settings import CONCURRENCY, METRIC, ORIENT, BadSetting, setting, whole

if TYPE_CHECKING:
    from scoregate.expression import Condition

ANY_MODELS = "--allow-model-change"
KINDS = (".jsonl", ".parquet", ".csv")  # of results
KEPT = "kept.txt"
GROUP = "a cluster"


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Settings of the scores of a data set."""

    metrics: Sequence[str] = setting(
        f"may be given several times (default {METRIC})",
        "-m",
        "--metric",
        default=(),
        metavar="METRIC",
        several=True,
    )
    options: Mapping[str, Mapping[str, Any]] = setting("of the metrics, by metric", default={}, option=False)
    orient: str | None = setting(
        "rotate pictures as their EXIF data says, or not (default: as the service is set)",
        default=None,
        choices=ORIENT,
    )
    strict: bool = setting("a score that the service warns about is an error", default=False)
    any_models: bool = setting("go on where other models answer", ANY_MODELS, default=False)
    explain: bool = setting("keep what each score is made of", default=False)
    concurrency: int = setting(
        "requests at the same time (default %(default)s)", default=CONCURRENCY, metavar="N", parse=whole
    )

    @property
    def names(self) -> list[str]:
        """The metrics in the order given, each once."""
        return list(dict.fromkeys(self.metrics or [METRIC]))


def condition(text: str) -> "Condition":
    """Return the filter in a text.  Raises `BadSetting`."""
    from scoregate.expression import Condition  # which few runs need

    try:
        return Condition.of(text)
    except ValueError as exc:
        raise BadSetting(f"{text!r}: {exc}") from None


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Settings of the rows that are kept."""

    filter: "Condition | None" = setting(
        f"write the names of the rows that pass to {KEPT}; also >, <= and <; and, or, not",
        default=None,
        metavar="'METRIC >= X'",
        parse=condition,
    )
    kept_shards: Path | None = setting(
        "write new shards of the samples that pass --filter; OUT is a folder",
        default=None,
        metavar="FOLDER",
        parse=Path,
    )


def span(text: str) -> tuple[int, int]:
    """Return the least and the greatest number in `N` or `LOW:HIGH`."""
    low, _, high = text.partition(":")
    found = int(low), int(high or low)
    if not 1 <= found[0] <= found[1]:
        raise BadSetting("a number from 1, or two such as 1:64")
    return found


def amount(text: str) -> float:
    """Return a finite number from 0."""
    value = float(text)
    if not 0 <= value < 10_000:
        raise BadSetting("a number from 0")
    return value


@dataclass(frozen=True, kw_only=True)
class RayCluster:
    """Settings of a Ray cluster, each of whose processes loads the models."""

    ray: str | None = setting(
        "score shards on a Ray cluster: HOST:PORT, auto, or local",
        default=None,
        metavar="ADDRESS",
        group=GROUP,
    )
    actors: tuple[int, int] | None = setting(
        "processes that load the models (default: one for each GPU)",
        default=None,
        metavar="N|LOW:HIGH",
        parse=span,
        group=GROUP,
    )
    actor_gpus: float | None = setting(
        "GPUs of each (default: 1, or 0 without any)", default=None, metavar="X", parse=amount, group=GROUP
    )


@dataclass(frozen=True, kw_only=True)
class Run(Scoring, DataSource):
    """Settings of scoring a data set."""


@dataclass(frozen=True, kw_only=True)
class Batch(RayCluster, Filter, Run):
    """Settings of scoring a data set into a file or a folder of results."""

    out: Path = setting(f"the results, {', '.join(KINDS)}; of shards a folder", "-o", "--out", parse=Path)
    retry: bool = setting("score rows with errors again, also in finished shards", default=False)
