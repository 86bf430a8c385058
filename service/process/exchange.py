"""`scoregate-server questions export|import`: question sets as files, without a model."""

import asyncio
import signal
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from pathlib import Path

import orjson

from service.core.redis import RedisClient
from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.metrics.common.registry import metrics
from service.questions.exchange.files import export_sets, formats, import_sets
from service.questions.stores.contract import Store
from service.questions.stores.opening import opened_store

DONE, REFUSED = 0, 1
"""Exit statuses: everything was taken; something was refused."""


def add_arguments(parser: ArgumentParser, common: ArgumentParser) -> None:
    """Add the two directions, with the arguments of *common*."""
    directions = parser.add_subparsers(dest="direction", required=True, metavar="export|import")
    out = directions.add_parser("export", parents=[common], help="write all sets of the store into FILE")
    back = directions.add_parser("import", parents=[common], help="put the sets of FILE into the store")
    for direction in (out, back):
        direction.add_argument("file", type=Path, metavar="FILE", help="gzipped if its name ends in .gz")
    back.add_argument("--format", choices=[*formats()], default="jsonl", help="what FILE holds")
    back.add_argument("--only", default="", metavar="SPLIT", help="only items whose names begin with SPLIT_")


def exchange(settings: Settings, arguments: Namespace) -> int:
    """
    Export or import, print the counts as JSON, and return the exit status.

    Raises:
        SettingsError: the store or the file cannot be used.
        NotReady: the store failed.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # a signal ends a partial run
    try:
        done = asyncio.run(
            exported(settings, arguments.file)
            if arguments.direction == "export"
            else imported(settings, arguments.file, arguments.format, arguments.only)
        )
    except OSError as exc:
        raise SettingsError(str(exc)) from exc
    print(orjson.dumps(done).decode())
    return REFUSED if done.get("refused") else DONE


async def exported(settings: Settings, file: Path) -> dict[str, int]:
    """Write all sets of the store into *file*, and return how many."""
    async with store_of(settings) as store:
        return {"exported": await export_sets(store, file)}


async def imported(settings: Settings, file: Path, form: str, only: str = "") -> dict[str, int]:
    """
    Put the sets of *file* into the store, and return how many were imported, repaired and refused.

    Args:
        form: what *file* holds, one of `formats`.
        only: takes items whose names begin with it and an underscore.
    """
    own = [metric.style_of().name for metric in metrics().values() if metric.style]
    styles = dict.fromkeys([*own, *settings.questions.styles])
    async with store_of(settings) as store:
        return asdict(await import_sets(store, file, formats()[form], only, styles))


@asynccontextmanager
async def store_of(settings: Settings) -> AsyncIterator[Store]:
    """Open the store of question sets."""
    async with AsyncExitStack() as stack:
        client = None
        if url := settings.cache.redis.get("questions"):
            ca_file = settings.cache.redis_ca_file
            opening = RedisClient("questions", url, ca_file=ca_file)
            client = await stack.enter_async_context(opening)
        yield await stack.enter_async_context(opened_store(settings.cache, client))
