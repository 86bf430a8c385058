"""CPU time of a picture by thread, here and in the previous release."""

import os
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path

import pytest

from demo.process import Failed
from loadtest.measures import cpu
from loadtest.report import SIZES, Report
from tests.unit.loadtest.conftest import outcome

TICKS = os.sysconf("SC_CLK_TCK")  # of a second
EARLIER = Path("earlier")


def stat(folder, name, user, system):
    """Write a stat file as the kernel does: the name in parentheses, then twelve fields and more."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = ["S", *map(str, range(10)), f"{user}", f"{system}", "0", "0"]
    (folder / "stat").write_text(f"{folder.name} ({name}) {' '.join(fields)}\n")


class FakeServer:
    """A server whose bursts are noted, and cost as many ticks of CPU time as it is told."""

    def __init__(self, proc, pid, asked, ticks):
        self.folder, self.pid, self.asked, self.ticks = proc / f"{pid}", pid, asked, ticks
        self.scored, self.spent = 1, 0
        self.fault = None
        self.note()

    def note(self):
        """Write the time of the process and of its threads."""
        stat(self.folder, "python", self.spent, 0)
        for number, name in enumerate(("python", "cpu-bulk_0", "device_0")):
            stat(self.folder / "task" / f"{self.pid + number}", name, self.spent, 0)

    def run(self, spec):
        self.asked.append((self.pid, spec.seed))
        self.spent += self.ticks
        self.note()
        return [outcome(due=0, done=2, scored=self.scored)] * 4


class TwoReleases(cpu.Releases):
    """This release, and an earlier one that takes twice the CPU time."""

    @cached_property
    def servers(self):
        asked = []
        ours, theirs = FakeServer(self.proc, 100, asked, 4), FakeServer(self.proc, 200, asked, 8)
        return {self.root: ours, EARLIER: theirs}

    def checkout(self, ref):
        return nullcontext(EARLIER)

    @contextmanager
    def running(self, root):
        server = self.servers[root]
        if server.fault:
            raise server.fault
        yield server


@pytest.fixture
def releases(tmp_path):
    return TwoReleases(proc=tmp_path)


def test_the_cpu_time_of_threads_is_split_by_their_names(tmp_path):
    """The first thread is the event loop; other threads, as of Redis, are in the total only."""
    stat(tmp_path / "7", "python", 100, 50)
    threads = {"7": ("python", 20, 10), "8": ("cpu-bulk_0", 30, 0), "9": ("cpu-interactive", 10, 5)}
    threads |= {"10": ("device_0", 40, 2), "11": ("a (b) c", 3, 0)}
    for number, (name, user, system) in threads.items():
        stat(tmp_path / "7" / "task" / number, name, user, system)
    (tmp_path / "7" / "task" / "12").mkdir()  # it ended meanwhile

    found = {part: TICKS * seconds for part, seconds in cpu.cpu_s(7, tmp_path).items()}

    assert {"loop": 30, "decoding": 45, "device": 42, "all": 150} == pytest.approx(found)


def test_both_releases_take_turns_with_the_same_requests(releases, capsys):
    """One burst of each warms up; a figure is per picture, and has the other release's beside it."""
    report = Report()
    cpu.measure(report, SIZES["bench"], "v1", releases)

    asked = releases.servers[EARLIER].asked
    assert [(pid, seed) for seed in range(4) for pid in (100, 200)] == asked
    figures = {figure.name: figure for figure in report.figures}
    assert ["cpu_loop", "cpu_decoding", "cpu_device", "cpu_all", "cpu_rate"] == list(figures)
    ms = 1000 / TICKS  # a tick of each picture
    assert pytest.approx(ms) == figures["cpu_all"].value
    assert f"{2 * ms:.3g} in v1, ratio 0.50" == figures["cpu_all"].note
    assert (2.0, "2 in v1, ratio 1.00") == (figures["cpu_rate"].value, figures["cpu_rate"].note)
    assert {"this release", "v1"} == set(report.runs["burst, by release"])


@pytest.mark.parametrize("lacks", ["its service", "a score"])
def test_a_release_that_lacks_something_is_named_and_left_out(releases, lacks, capsys):
    """The figures of this release are reported alone."""
    if lacks == "a score":
        releases.servers[EARLIER].scored = 0
    else:
        releases.servers[EARLIER].fault = Failed("the service ended with status 1 before it was ready")
    report = Report()
    cpu.measure(report, SIZES["bench"], "v1", releases)

    reason = "of 4 requests: 4 error" if lacks == "a score" else "the service ended with status 1"
    assert f"no figures of v1: {reason}" in capsys.readouterr().out
    assert 5 == len(report.figures)
    assert {""} == {figure.note for figure in report.figures}


def test_a_release_that_fails_later_ends_the_run_and_is_named(releases):
    """Its figures would be of fewer pictures than the other's."""
    server = releases.servers[EARLIER]
    first, later = [outcome()] * 4, [outcome(), outcome(status=503, scored=0)]
    server.run = lambda spec: later if spec.seed else first

    with pytest.raises(SystemExit, match="v1: of 2 requests: 1 ok, 1 refused"):
        cpu.measure(Report(), SIZES["bench"], "v1", releases)


class Git(cpu.Releases):
    """Notes what git is called with, and answers with what it is told."""

    answer = ""

    @cached_property
    def called(self):
        return []

    def git(self, *arguments):
        self.called.append(arguments)
        if isinstance(self.answer, Failed):
            raise self.answer
        return self.answer


def test_the_work_tree_is_removed_also_after_a_fault():
    """What git is called with, before and after."""
    releases = Git()

    with pytest.raises(Failed, match="early"), releases.checkout("v1") as tree:
        raise Failed("early")

    assert ("worktree", "add", "--quiet", "--detach", str(tree), "v1") == releases.called[0]
    assert ("worktree", "remove", "--force", str(tree)) == releases.called[1]
    assert not tree.parent.exists()


def test_the_previous_release_is_the_latest_tag_or_a_fixed_commit():
    """Without tags git fails."""

    class Tagged(Git):
        answer = "v0.1.0"

    class Untagged(Git):
        answer = Failed("fatal: No names found, cannot describe anything.")

    assert "v0.1.0" == Tagged().previous()
    assert cpu.REFERENCE == Untagged().previous()
