"""The lines for people when a service is ready: its metrics, and a request to paste."""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from service.metrics.common.contract import Metric
from service.process.needs import lacking
from service.wiring.bootstrap import READY, Service

SAMPLE_FILE = Path(__file__).parents[2] / "demo" / "samples" / "binding.png"  # only a checkout has it
UNIX = "unix:"
SAMPLE_PROMPT = "a green circle and a red square"  # the picture of the file shows this


def ready(service: Service, url: str, sample: Path = SAMPLE_FILE) -> str:
    """
    Return the metrics that score a picture and a prompt, why others wait, and a request to *url*.

    Args:
        sample: the picture of the request, if the file is there.
    """
    waiting = {
        name: reason for name, each in service.engine.metrics.items() if (reason := state(service, each))
    }
    names = [
        name
        for name, each in service.engine.metrics.items()
        if name not in waiting
        and not each.needs
        and (not each.style or service.runtime.handle(name, "questions"))
    ]
    lines = [*not_yet(waiting), *unserved(service, waiting.values())]
    if not names:
        more = [*lines, *lacking(service.settings)]
        return "\n".join(["", f"Serving {url}, and no metric is ready yet.", *more, ""])
    where = f"Serving {url}: paste" if url.startswith(UNIX) else f"Open {url}/ in a browser, or paste"
    ways = f"{where} this into another shell; Ctrl-C here stops it."
    return "\n".join(
        ["", f"Ready: {', '.join(names)}. {ways}", *lines, "", curl(service, url, names[:2], sample), ""]
    )


def state(service: Service, metric: Metric) -> str:
    """Return why *metric* is not ready; empty if it is."""
    return service.engine.catalog.degraded(metric.name) or "; ".join(service.missing(metric))


def not_yet(waiting: dict[str, str]) -> Iterator[str]:
    """Yield a line for each reason, with the metrics that wait for it."""
    for reason in dict.fromkeys(waiting.values()):
        yield f"Not ready yet: {', '.join(name for name, why in waiting.items() if why == reason)}: {reason}."


def unserved(service: Service, reasons: Iterable[str]) -> Iterator[str]:
    """Yield a line for each model that is not ready and that no reason of a metric names."""
    named = "; ".join(reasons)
    for name, state in service.readiness().models.items():
        if state != READY and f"models.{name}" not in named:
            yield f"Not ready yet: models.{name}: {state}."


def curl(service: Service, url: str, metrics: Iterable[str], sample: Path) -> str:
    """Return a shell command that scores a sample picture, or one that the reader has to name."""
    image, prompt = (sample, SAMPLE_PROMPT) if sample.is_file() else ("IMAGE", "a cat")
    parts = [f"image=@{image}", f"prompt={prompt}", f"metrics={','.join(metrics)}"]
    form = " ".join(f"-F {shlex.quote(part)}" for part in parts)
    key = ' -H "Authorization: Bearer $SCOREGATE_API_KEY"' if service.settings.server.api_keys_file else ""
    if url.startswith(UNIX):
        url = f"--unix-socket {shlex.quote(url.removeprefix(UNIX))} http://localhost"
    return f"curl -sS {url}/score {form}{key}"
