"""
CPU time of a picture by thread, compared with the previous release.

The row `burst` of `loadtest.peers`: 512 single requests at once to the demo's CLIP-FlanT5.  Both releases run
with this interpreter and take turns; the previous one is checked out to a temporary folder.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from statistics import median

from demo.process import Failed
from loadtest.peers.rows import ROWS
from loadtest.report import Report, Size, tally
from loadtest.results import Outcome, count, throughput
from loadtest.servers import Server, name_and_cpu_s, served
from loadtest.workloads import Spec

ROOT = Path(__file__).parents[2]
PROC = Path("/proc")
HERE = "this release"
REFERENCE = "6614095d"  # the previous release while there is no tag
PARTS = {"cpu-": "decoding", "device": "device"}  # the keys are the starts of threads' names
UNITS = {"loop": "ms", "decoding": "ms", "device": "ms", "all": "ms", "rate": "/s"}

# Before Python 3.14 the kernel does not get the names of Python's threads.  The code is text because an
# earlier release has no module for it.
NAMED_THREADS = """
import runpy
import threading
from pathlib import Path

run = threading.Thread.run

def named(thread):
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(thread.name)
    run(thread)

threading.Thread.run = named
runpy.run_module("service", run_name="__main__", alter_sys=True)
"""

Costs = dict[str, float]
"""The figures of one burst: CPU milliseconds of a picture by part, and the rate of pictures."""


@dataclass(frozen=True)
class Releases:
    """
    The releases in a repository of Git.

    Attributes:
        proc: the kernel's folder of processes.
    """

    root: Path = ROOT
    proc: Path = PROC

    def previous(self) -> str:
        """Return the latest tag before this commit, or `REFERENCE` if there is none."""
        try:
            return self.git("describe", "--tags", "--abbrev=0", "HEAD^")
        except Failed:
            return REFERENCE

    @contextmanager
    def checkout(self, ref: str) -> Iterator[Path]:
        """Yield a folder with the files of *ref*, and remove it on exit.  Raises `Failed` if git cannot."""
        with tempfile.TemporaryDirectory() as folder:
            tree = f"{folder}/tree"
            self.git("worktree", "add", "--quiet", "--detach", tree, ref)
            try:
                yield Path(tree)
            finally:
                self.git("worktree", "remove", "--force", tree)

    def running(self, root: Path, *options: str) -> AbstractContextManager[Server]:
        """Run the service of the checkout at *root*, by default its demo models, with named threads."""
        path = f"PYTHONPATH={root}:{root / 'client' / 'src'}"
        return served(["env", f"--chdir={root}", path, sys.executable, "-c", NAMED_THREADS, *options])

    def git(self, *arguments: str) -> str:
        """Return the output of git in the repository.  Raises `Failed` with the last line of its errors."""
        try:
            done = subprocess.run(["git", "-C", str(self.root), *arguments], capture_output=True, text=True)
        except OSError as exc:
            raise Failed(str(exc)) from exc
        if done.returncode:
            raise Failed((done.stderr.strip() or "git failed").splitlines()[-1])
        return done.stdout.strip()


def measure(report: Report, size: Size, against: str = "", releases: Releases = Releases()) -> None:
    """
    Report the median of each figure, with that of the release *against*, by default the previous one.

    A release that lacks something is named with the reason, and this one's figures are reported alone.

    Raises:
        SystemExit: a release that scored the first burst did not score a later one.
    """
    ref = against or releases.previous()
    spec = ROWS["burst"].scaled(min(1.0, 4 * size.scale)).spec
    found: dict[str, list[Costs]] = {HERE: [], ref: []}
    with ExitStack() as stack:
        sides = {HERE: stack.enter_context(releases.running(releases.root))}
        burst(sides[HERE], spec, releases.proc)  # the first one warms up
        try:
            other = stack.enter_context(releases.running(stack.enter_context(releases.checkout(ref))))
            burst(other, spec, releases.proc)
            sides[ref] = other
        except (Failed, subprocess.CalledProcessError) as exc:
            print(f"  no figures of {ref}: {exc}", flush=True)
        for seed in range(1, 1 + size.rounds):
            for side, server in sides.items():
                try:
                    outcomes, costs = burst(server, replace(spec, seed=seed), releases.proc)
                except Failed as exc:
                    raise SystemExit(f"{side}: {exc}") from exc
                report.keep("burst, by release", side, outcomes)
                found[side].append(costs)
    for figure, unit in UNITS.items():
        ours, theirs = ([costs[figure] for costs in found[side]] for side in (HERE, ref))
        report.add(f"cpu_{figure}", median(ours), unit, beside(ours, theirs, ref))


def burst(server: Server, spec: Spec, proc: Path = PROC) -> tuple[list[Outcome], Costs]:
    """Return the outcomes of one burst, and its costs.  Raises `Failed` if a picture has no score."""
    before = cpu_s(server.pid, proc)
    outcomes = server.run(spec)
    if count(outcomes, "ok") < len(outcomes):
        raise Failed(f"of {len(outcomes)} requests: {tally(outcomes)}")
    after = cpu_s(server.pid, proc)
    images = sum(outcome.items for outcome in outcomes)
    ms = {part: 1000 * (after[part] - before[part]) / images for part in after}
    return outcomes, {**ms, "rate": throughput(outcomes)}


def cpu_s(pid: int, proc: Path = PROC) -> dict[str, float]:
    """Return the CPU seconds of a process so far: its event loop, the threads of `PARTS`, and all."""
    found = {"loop": 0.0, **dict.fromkeys(PARTS.values(), 0.0), "all": name_and_cpu_s(proc / f"{pid}")[1]}
    for thread in (proc / f"{pid}" / "task").iterdir():
        with suppress(OSError):  # it has ended
            name, seconds = name_and_cpu_s(thread)
            if thread.name == f"{pid}":
                found["loop"] += seconds
            for start, part in PARTS.items():
                if name.startswith(start):
                    found[part] += seconds
    return found


def beside(ours: Sequence[float], theirs: Sequence[float], ref: str) -> str:
    """Format the median of *theirs*, and that of the ratios of the rounds; empty without them."""
    if not theirs:
        return ""
    ratios = [our / their for our, their in zip(ours, theirs, strict=True) if their]
    return f"{median(theirs):.3g} in {ref}, ratio {median(ratios or [nan]):.2f}"
