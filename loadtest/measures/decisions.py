"""Decisions while a model hangs for ever: how late they are, and how many are missing."""

import os
import signal
import sys
from dataclasses import replace
from statistics import median

from loadtest import servers
from loadtest.report import Report, Size
from loadtest.results import Outcome, latencies, percentile
from loadtest.workloads import Spec

CALLERS = 200  # callers that wait at the same time, while the model hangs
TIMEOUT_MS = 4000  # long, so that so many callers leave the event loop idle: 50 requests a second
RATE = 1000 * CALLERS / TIMEOUT_MS
HANGING = (sys.executable, "-m", "loadtest.hanging", *servers.FAKE[-2:])
POLICY = {
    "SCOREGATE_POLICIES__SHOW__ACCEPT": "vqascore >= 0.5",
    "SCOREGATE_POLICIES__SHOW__TIMEOUT_MS": str(TIMEOUT_MS),
}


def measure(report: Report, size: Size) -> None:
    """Report the time of decisions beyond their timeout, and of the same load before the model hangs."""
    late, sound, missing = list[float](), list[float](), 0
    for seed in range(size.rounds):
        spec = Spec(
            "poisson", seed=seed, rate=RATE, seconds=max(5.0, 20.0 * size.share), timeout_ms=TIMEOUT_MS
        )
        with servers.served(HANGING, **POLICY) as started:
            server = replace(started, wire="decide")
            before = server.run(spec)
            os.kill(server.pid, signal.SIGUSR1)
            hung = server.run(spec)
        missing += sum(each.kind != "ok" for each in (*before, *hung))
        sound.append(p99_ms(before))
        late.append(p99_ms(hung) - TIMEOUT_MS)
    note = f"p99, {CALLERS} callers wait; the same load without the hang: {median(sound):.0f} ms"
    report.add("hung_decision_late_ms", median(late), "ms", note=note)
    report.add("hung_decisions_missing", missing, note="no response, or a status other than 200")


def p99_ms(outcomes: list[Outcome]) -> float:
    """Return the 99th percentile of the latencies."""
    return 1000 * percentile(latencies(outcomes), 0.99)
