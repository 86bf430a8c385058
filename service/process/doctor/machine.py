"""Checks of this machine, as functions of facts."""

from collections.abc import Iterator, Mapping, Sequence

from service.core.settings import NotYet, SettingsError
from service.core.settings.tree import Settings
from service.process.check import as_bytes
from service.process.doctor.finding import BROKEN, LATER, WRONG, Finding
from service.process.ports import all_bound


def packages(torch: str, built: str, needed: bool) -> Finding:
    """Check that PyTorch, of version *torch*, was *built* for some CUDA if a model *needed* it."""
    if needed and not built:
        remedy = "install a CUDA build of PyTorch, or set device to cpu"
        return Finding("packages", f"torch {torch} is a CPU build, and a model is on a GPU", remedy, WRONG)
    return Finding("packages", f"torch {torch}, built for {f'CUDA {built}' if built else 'CPUs'}")


def driver(newest: int, built: str, needed: bool) -> Finding:
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


def gpus(wanted: Sequence[str], free: Mapping[str, int]) -> Iterator[Finding]:
    """Yield a finding for each GPU: those with *free* bytes answer, and those *wanted* should."""
    for device, size in free.items():
        yield Finding(device, f"{as_bytes(size)} free")
    for device in wanted:
        if device not in free:
            remedy = "run nvidia-smi, check CUDA_VISIBLE_DEVICES, or set another device"
            yield Finding(device, "this GPU does not answer", remedy, BROKEN)
    if not (free or wanted):
        yield Finding("GPUs", "none, and no model is on one")


def memory(weights: Mapping[str, int], free: Mapping[str, int]) -> Iterator[Finding]:
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


def disk(place: str, free: int, pending: int) -> Finding:
    """Check that the *pending* bytes of downloads fit on the disk of the hub's cache."""
    if pending > free:
        fact = f"{as_bytes(pending)} are to be downloaded to {place}, and {as_bytes(free)} are free"
        return Finding("disk", fact, "free some, or set HF_HOME to another disk", WRONG)
    return Finding("disk", f"{as_bytes(free)} free at {place}")


def ports(settings: Settings) -> Finding:
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
