"""Run all checks on a profile, and print one line for each."""

import asyncio
import ctypes
import shutil
import time
from collections.abc import Iterator
from itertools import chain

from models.core.contract import CheckpointError, Temporary
from models.core.copies import devices_of, gpu_count
from models.core.family import Plan
from models.core.messages import quiet
from models.core.settings import RemoteSettings
from service.core.settings.tree import Settings
from service.process.check import as_bytes, plans, weights_of
from service.process.doctor import machine, servers
from service.process.doctor.finding import LATER, WRONG, Finding, status_of
from service.process.needs import is_pending, pending


def doctor(settings: Settings) -> int:
    """Print a line for each check, and return the exit status."""
    found = []
    for finding in chain(local(settings), asyncio.run(remote(settings))):
        print(finding, flush=True)
        found.append(finding)
    return status_of(found)


def local(settings: Settings) -> Iterator[Finding]:
    """Yield the findings about this machine and the checkpoints."""
    import torch

    on_ray = settings.runtime.kind == "ray"
    try:
        here = [] if on_ray else settings.models.values()  # Ray places its models elsewhere
        devices = {device for table in here for device in devices_of(table)}
        planned = plans(settings)
    except CheckpointError as exc:
        yield Finding("models", str(exc), "correct the setting", WRONG)
        devices, planned = set(), {}
    wanted = sorted(device for device in devices if device.startswith("cuda"))
    built = torch.version.cuda or ""
    yield machine.packages(str(torch.__version__), built, bool(wanted))
    if on_ray:
        yield Finding("devices", "driver, GPUs and memory of the Ray cluster are not checked", checked=False)
    else:
        yield machine.driver(newest_cuda(), built, bool(wanted))
        free = free_of_gpus()
        yield from machine.gpus([f"cuda:{device.partition(':')[2] or 0}" for device in wanted], free)
        if planned:
            yield from machine.memory(weights_of(settings, planned), free | free_of_cpu() | default_gpu(free))
    pending, about = hub(settings, planned)
    yield about
    yield disk(pending)
    yield machine.ports(settings)


async def remote(settings: Settings) -> list[Finding]:
    """Return the findings about the servers that *settings* name."""
    found, dates = await servers.redis(settings), []
    for name, table in settings.models.items():
        if isinstance(table, RemoteSettings):
            finding, date = await servers.upstream(name, table)
            found.append(finding)
            dates.append(date)
    return [*found, servers.clock(dates, time.time())]


def newest_cuda() -> int:
    """Return the newest CUDA that the driver supports, such as 12040; 0 without a driver."""
    version = ctypes.c_int(0)
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except OSError:
        return 0
    return 0 if failed else version.value


def free_of_gpus() -> dict[str, int]:
    """Return the free bytes of each GPU that answers."""
    from models.core.memory import free_bytes

    free = {}
    for device in (f"cuda:{number}" for number in range(gpu_count())):
        try:
            free[device] = free_bytes(device)
        except CheckpointError:  # the device does not answer
            continue
    return free


def free_of_cpu() -> dict[str, int]:
    """Return the machine's free bytes."""
    from models.core.memory import free_bytes

    return {"cpu": free_bytes("cpu")}


def default_gpu(free: dict[str, int]) -> dict[str, int]:
    """Return the free bytes of the device `cuda`, which is the first GPU."""
    return {"cuda": free["cuda:0"]} if "cuda:0" in free else {}


def hub(settings: Settings, planned: dict[str, Plan]) -> tuple[int, Finding]:
    """Return the bytes that are to be downloaded, and a finding.  Send no request if there are none."""
    from huggingface_hub import constants, errors

    size, others = 0, 0
    for name, plan in planned.items():
        if not is_pending(settings.models[name], plan):
            continue
        try:
            with quiet():  # the finding says what the log would
                repository, more = pending(settings.models[name], plan)
        except CheckpointError as exc:
            unknown = isinstance(exc.__cause__, errors.RepositoryNotFoundError | errors.RevisionNotFoundError)
            way = f"check the way to {constants.ENDPOINT}, or set HF_ENDPOINT"
            remedy = f"correct models.{name}" if unknown else way
            return size, Finding(
                "hub", str(exc).rstrip("."), remedy, LATER if isinstance(exc, Temporary) else WRONG
            )
        size += more
        others += not repository
    facts = [f"{as_bytes(size)} to download from {constants.ENDPOINT}"] if size else []
    facts += [f"{others} models of unknown size to download"] if others else []
    return size, Finding("hub", ", and ".join(facts) or "nothing to download")


def disk(pending: int) -> Finding:
    """Check the disk of the hub's cache, whose folder need not exist yet."""
    from models.checkpoints.locate import cache_folder

    return machine.disk(str(cache_folder()), shutil.disk_usage(cache_folder()).free, pending)
