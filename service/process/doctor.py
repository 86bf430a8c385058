"""`scoregate-server doctor`: a line for each check of the machine and of the servers of a profile."""

import asyncio
import ctypes
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import cast

import orjson

from models.core.contract import CheckpointError, RemoteModel, Temporary, UpstreamError
from models.core.copies import devices_of
from models.core.family import Plan
from models.core.machine import THIS_MACHINE, Machine
from models.core.messages import quiet
from models.core.settings import RemoteSettings
from models.families.registry import families
from service.core.errors import NotReady
from service.core.redis import TOO_OLD, RedisClient, shown
from service.core.settings import NotYet, SettingsError
from service.core.settings.environment import read_secret
from service.core.settings.tree import Settings
from service.metrics.rubrics.checklists import read_checklist
from service.metrics.rubrics.prompt_files import RELEASED_RUBRICS, PromptFile, PromptMissing, named_in
from service.process.check import as_bytes, plans, weights_of
from service.process.needs import is_pending, pending
from service.process.ports import all_bound
from service.serving.backends.trust import Trust
from service.serving.backends.upstream import EXPLAINED_STATUSES, Upstream, explained

WRONG, BROKEN, LATER = 2, 3, os.EX_TEMPFAIL  # `serve` ends with the same statuses


@dataclass(frozen=True, slots=True)
class Finding:
    """
    What a check found.

    Attributes:
        name: of the check.
        fact: what is there, or what is wrong.
        remedy: what to do; empty if all is well.
        status: 0 if all is well, otherwise that of a start which would fail for this reason.
        checked: False if nothing was there to check.
    """

    name: str
    fact: str
    remedy: str = ""
    status: int = 0
    checked: bool = True

    def __str__(self) -> str:
        """Format the finding in one line."""
        mark = "✗" if self.status else "✓" if self.checked else "-"
        line = f"{mark} {self.name}: {self.fact}" + (f": {self.remedy}" if self.status else "")
        return " ".join(line.split())


def status_of(findings: Iterable[Finding]) -> int:
    """Return the exit status: what a person has to change comes first, and what may pass comes last."""
    statuses = {finding.status for finding in findings}
    return next((status for status in (WRONG, BROKEN, LATER) if status in statuses), 0)


def check_packages(torch: str, built: str, needed: bool) -> Finding:
    """Check that PyTorch, of version *torch*, was *built* for some CUDA if a model *needed* it."""
    if needed and not built:
        remedy = "install a CUDA build of PyTorch, or set device to cpu"
        return Finding("packages", f"torch {torch} is a CPU build, and a model is on a GPU", remedy, WRONG)
    return Finding("packages", f"torch {torch}, built for {f'CUDA {built}' if built else 'CPUs'}")


def check_driver(newest: int, built: str, needed: bool) -> Finding:
    """
    Check that the driver supports the CUDA that PyTorch was *built* for.

    Versions of one major number are compatible.

    Args:
        newest: CUDA that the driver supports, such as 12040 for 12.4; 0 without a driver.
        needed: a model is on a GPU.
    """
    if not newest:
        if not needed:
            return Finding("driver", "none, and no model is on a GPU")
        return Finding("driver", "no NVIDIA driver answers", "install it, or run nvidia-smi", BROKEN)
    supported = f"{newest // 1000}.{newest % 1000 // 10}"
    if needed and built and int(built.partition(".")[0]) > newest // 1000:
        remedy = f"update the driver, or install PyTorch for CUDA {supported}"
        return Finding("driver", f"supports CUDA {supported}, and PyTorch needs {built}", remedy, WRONG)
    return Finding("driver", f"supports CUDA {supported}")


def check_gpus(wanted: Sequence[str], free: Mapping[str, int]) -> Iterator[Finding]:
    """Yield a finding for each GPU: those with *free* bytes answer, and those *wanted* should."""
    for device, size in free.items():
        yield Finding(device, f"{as_bytes(size)} free")
    for device in wanted:
        if device not in free:
            remedy = "run nvidia-smi, check CUDA_VISIBLE_DEVICES, or set another device"
            yield Finding(device, "this GPU does not answer", remedy, BROKEN)
    if not (free or wanted):
        yield Finding("GPUs", "none, and no model is on one")


def check_memory(weights: Mapping[str, int], free: Mapping[str, int]) -> Iterator[Finding]:
    """Yield a finding for each device with *weights* and known *free* bytes."""
    for device, size in weights.items():
        if device not in free:
            continue
        name = f"memory of {device}"
        if size > free[device]:
            fact = f"the weights take {as_bytes(size)}, and {as_bytes(free[device])} are free"
            yield Finding(name, fact, "choose a smaller model, bfloat16, or another device", WRONG)
        else:
            fact = f"{as_bytes(size)} of weights needed, {as_bytes(free[device])} free"
            yield Finding(name, fact)


def check_disk(place: str, free: int, pending: int) -> Finding:
    """Check that the *pending* bytes of downloads fit on the disk of the hub's cache."""
    if pending > free:
        fact = f"{as_bytes(pending)} are to be downloaded to {place}, and {as_bytes(free)} are free"
        return Finding("disk", fact, "free some, or set HF_HOME to another disk", WRONG)
    return Finding("disk", f"{as_bytes(free)} free at {place}")


def check_ports(settings: Settings) -> Finding:
    """Bind and open all ports of *settings* for a moment."""
    try:
        with all_bound(settings) as held:
            for port in held.values():
                port.open()
            return Finding("ports", ", ".join(port.address for port in held.values()))
    except NotYet as exc:
        return Finding("ports", str(exc), "stop the other process, or set another address or port", LATER)
    except SettingsError as exc:
        return Finding("ports", str(exc), "set another address or port", WRONG)


def check_prompts(folder: Path, rubrics: Iterable[Path] = ()) -> Iterator[Finding]:
    """
    Yield the hash of each file of instructions, and where others are expected.

    Args:
        rubrics: files that may name some, besides the rubrics of released models.
    """
    absent = []
    own = (file.read_text("utf-8-sig", errors="replace") for file in rubrics)
    for name in dict.fromkeys(chain.from_iterable(map(named_in, (*RELEASED_RUBRICS.values(), *own)))):
        try:
            file = PromptFile.of(name, folder)
        except PromptMissing as exc:
            absent.append(str(exc.path))
        except ValueError as exc:
            yield Finding(f"prompt {name}", str(exc), "copy it again from the model's release", WRONG)
        else:
            yield Finding(f"prompt {name}", f"{file.path} was read, sha256:{file.sha256}")
    if absent:
        fact = f"none of these, which rubrics expect: {', '.join(absent)}"
        yield Finding("prompts", fact, checked=False)


def check_checklists(files: Iterable[Path]) -> Iterator[Finding]:
    """Yield the digest of each checklist, and the hash of each file that it names."""
    for path in files:
        try:
            found, copies = read_checklist(path)
        except ValueError as exc:
            yield Finding("checklists", str(exc), f"correct {path}", WRONG)
        else:
            named = "".join(f"; {file.path} was read, sha256:{file.sha256}" for file in copies)
            yield Finding("checklists", f"{path} was read, {found.digest}{named}")


MAX_SKEW_S = 30.0
ANSWER_S = 20.0  # the version, and each known call, may take so long
LASTING_REASONS = ("Authentication", "certificate", "TLS", TOO_OLD)  # a person has to remove such reasons


async def check_redis(settings: Settings) -> list[Finding]:
    """Check each Redis of *settings*."""
    found = []
    for cache, url in settings.cache.redis.items():
        name = f"Redis of cache.{cache}"
        async with RedisClient(cache, url, ca_file=settings.cache.redis_ca_file) as client:
            if reason := client.missing:
                lasting = any(word in reason for word in LASTING_REASONS)
                remedy = f"start it, or correct cache.{cache}"
                found.append(Finding(name, f"{shown(url)} {reason}", remedy, WRONG if lasting else LATER))
            else:
                found.append(Finding(name, f"{shown(url)} answers"))
    return found


async def check_upstream(name: str, table: RemoteSettings) -> tuple[Finding, str]:
    """Check the server of the model *name*.  Return the finding, and the `Date` of the server's answer."""
    label = f"models.{name}"
    try:
        key = read_secret(table.api_key_env) if table.api_key_env else ""
    except SettingsError as exc:
        return Finding(label, str(exc), "set the variable to the server's key", WRONG), ""
    seconds = min(table.timeout_s, ANSWER_S)
    server = Upstream(table.base_url, api_key=key, timeout_s=seconds, max_in_flight=1)
    version, date = await version_of(server)
    try:
        if reason := await server.missing(table.model):
            wrong = reason.startswith("serves no model") or reason.endswith(("401", "403", "404"))
            remedy = f"correct {label}" if wrong else "start the server"
            fact = f"{table.base_url} {reason}"
            return Finding(label, fact, remedy, WRONG if wrong else LATER), date
        return await known_calls(name, table, server, f"{version} serves {table.model}"), date
    except NotReady as exc:
        return Finding(label, str(exc), "serve it with a vLLM that the docs name", WRONG), date
    except UpstreamError as exc:
        status = WRONG if exc.status in EXPLAINED_STATUSES else LATER
        return Finding(label, f"{table.base_url} {explained(exc)}", "see the server's log", status), date
    finally:
        await server.aclose()


async def known_calls(name: str, table: RemoteSettings, server: Upstream, served: str) -> Finding:
    """
    Send the model's known calls with a priority, as the service does at its start.

    Return what they show, after the words *served*.

    Raises:
        NotReady: the answers are wrong, for example equal where they must differ.
        UpstreamError: the server does not answer.
    """
    model = cast(RemoteModel, families()[table.family].load(name, table))
    known, label = model.known_calls(), f"models.{name}"
    post = partial(server.post, headers={"X-Vllm-Priority": "1"})
    trust = Trust(name, known, lambda call: model.answer(model.prepare(call), post), time.monotonic)
    await trust.check()
    if not known.opposites:
        return Finding(label, served)
    if trust.unanswered:
        return Finding(label, f"{served}; known calls were not compared: {trust.unanswered}", checked=False)
    return Finding(label, f"{served}, whose {known.compared} differ; a priority is accepted")


async def version_of(server: Upstream) -> tuple[str, str]:
    """Return the version of a vLLM, in words, and the `Date` of its answer; empty if it does not answer."""
    try:
        answer = await server.look("../version")
        version = orjson.loads(answer.body)["version"]
    except UpstreamError:
        return "a server", ""
    except (ValueError, KeyError, TypeError):
        return "a server that names no version", answer.headers.get("Date", "")
    return f"vLLM {version}", answer.headers.get("Date", "")


def check_clock(dates: Iterable[str], now: float) -> Finding:
    """Compare *now*, in seconds since 1970, with the `Date` headers of servers."""
    skews = []
    for date in filter(None, dates):
        try:
            skews.append(now - parsedate_to_datetime(date).timestamp())
        except ValueError:
            continue
    if not skews:
        return Finding("clock", "not checked; no configured server answered with a date", checked=False)
    skew = max(skews, key=abs)
    if abs(skew) > MAX_SKEW_S:
        return Finding("clock", f"{skew:+.0f} s from a configured server", "synchronise both clocks", WRONG)
    return Finding("clock", "agrees with the configured servers")


def doctor(settings: Settings, machine: Machine = THIS_MACHINE) -> int:
    """Print a line for each check, and return the exit status."""
    found = []
    for finding in chain(local(settings, machine), asyncio.run(remote(settings))):
        print(finding, flush=True)
        found.append(finding)
    return status_of(found)


def local(settings: Settings, machine: Machine) -> Iterator[Finding]:
    """Yield the findings about the *machine* and the checkpoints."""
    import torch

    on_ray = settings.runtime.kind == "ray"
    try:
        here = [] if on_ray else settings.models.values()  # Ray places its models elsewhere
        devices = {device for table in here for device in devices_of(table, machine)}
        planned = plans(settings)
    except CheckpointError as exc:
        yield Finding("models", str(exc), "correct the setting", WRONG)
        devices, planned = set(), {}
    wanted = sorted(device for device in devices if device.startswith("cuda"))
    built = torch.version.cuda or ""
    yield check_packages(str(torch.__version__), built, bool(wanted))
    if on_ray:
        yield Finding("devices", "driver, GPUs and memory of the Ray cluster are not checked", checked=False)
    else:
        yield check_driver(newest_cuda(), built, bool(wanted))
        free = free_of_gpus(machine)
        yield from check_gpus([f"cuda:{device.partition(':')[2] or 0}" for device in wanted], free)
        if planned:
            known = free | {"cpu": machine.free_bytes("cpu")} | default_gpu(free)
            yield from check_memory(weights_of(settings, planned, machine), known)
    pending, about = hub(settings, planned)
    yield about
    yield disk_of_cache(pending)
    yield check_ports(settings)
    yield from check_checklists(settings.checklist_files)
    remote = [table.role for table in settings.models.values() if isinstance(table, RemoteSettings)]
    if "vqa" in remote:  # released models are served by such servers
        yield from check_prompts(settings.prompts, settings.rubric_files)


async def remote(settings: Settings) -> list[Finding]:
    """Return the findings about the servers that *settings* name."""
    found, dates = await check_redis(settings), []
    for name, table in settings.models.items():
        if isinstance(table, RemoteSettings):
            finding, date = await check_upstream(name, table)
            found.append(finding)
            dates.append(date)
    return [*found, check_clock(dates, time.time())]


def newest_cuda() -> int:
    """Return the newest CUDA that the driver supports, such as 12040; 0 without a driver."""
    version = ctypes.c_int(0)
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except OSError:
        return 0
    return 0 if failed else version.value


def free_of_gpus(machine: Machine) -> dict[str, int]:
    """Return the free bytes of each GPU that answers."""
    free = {}
    for device in (f"cuda:{number}" for number in range(machine.gpu_count())):
        try:
            free[device] = machine.free_bytes(device)
        except CheckpointError:  # the device does not answer
            continue
    return free


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


def disk_of_cache(pending: int) -> Finding:
    """Check the disk of the hub's cache, whose folder need not exist yet."""
    from models.checkpoints.locate import cache_folder

    return check_disk(str(cache_folder()), shutil.disk_usage(cache_folder()).free, pending)
