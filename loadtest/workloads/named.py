"""
All workloads by name.

A workload is a pure function of its spec: the same seed gives the same pictures, prompts and times.
"""

from collections.abc import Callable
from pathlib import Path

from loadtest.workloads import corpus, pipelines, single, trainers
from loadtest.workloads.maker import Maker
from loadtest.workloads.spec import Plan, Spec

# By the names of docs/load.md; the ones after `mixed` are for single figures.
WORKLOADS: dict[str, Callable[[Maker], Plan]] = {
    "rl-burst": trainers.rl_burst,
    "rl-group": trainers.rl_group,
    "rl-large": trainers.rl_large,
    "filter": pipelines.filtered,
    "rank": pipelines.rank,
    "offline": trainers.offline,
    "mixed": pipelines.mixed,
    "whole": trainers.whole,
    "whole-64": lambda maker: trainers.whole(maker, 64),
    "whole-tiny": lambda maker: trainers.whole(maker, picture="tiny"),
    "corrupt": lambda maker: trainers.corrupt(maker, 1),
    "corrupt-64": lambda maker: trainers.corrupt(maker, 64),
    "one-prompt": trainers.one_prompt,
    "poisson": single.poisson,
    "saturated": single.saturated,
    "one-by-one": lambda maker: single.closed(maker, 1),
    "sixteen-at-once": lambda maker: single.closed(maker, 16),
    "sixty-four-at-once": lambda maker: single.closed(maker, 64),
    "under-bulk": single.under_bulk,
}


def plan(spec: Spec, folder: Path = corpus.FOLDER) -> Plan:
    """Return the requests of *spec*."""
    return WORKLOADS[spec.workload](Maker(spec, folder))
