"""CPU time of a picture by thread, here and in the previous release."""

from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from demo.process import Failed
from loadtest.measures import cpu
from loadtest.report import SIZES, Report
from tests.unit.loadtest.conftest import outcome

TICKS = 100


class FakeServer:
    """A server whose bursts are noted, and cost the CPU time that it is told."""

    def __init__(self, pid, asked, seconds, scored=1):
        self.pid, self.asked, self.scored = pid, asked, scored
        self.seconds, self.spent = seconds, 0.0

    def run(self, spec):
        self.asked.append((self.pid, spec.seed))
        self.spent += self.seconds
        return [outcome(due=0, done=2, scored=self.scored)] * 4


@pytest.fixture
def releases(monkeypatch):
    """Two releases, by root: this one, and an earlier one that takes twice the CPU time."""
    asked = []
    running = {cpu.ROOT: FakeServer(1, asked, 0.004), Path("earlier"): FakeServer(2, asked, 0.008)}
    spent = {server.pid: server for server in running.values()}
    monkeypatch.setattr(cpu, "release", lambda root: nullcontext(running[root]))
    monkeypatch.setattr(cpu, "checkout", lambda ref: nullcontext(Path("earlier")))
    monkeypatch.setattr(
        cpu, "cpu_s", lambda pid: dict.fromkeys(("loop", "decoding", "device", "all"), spent[pid].spent)
    )
    return running


def stat(folder, name, user, system):
    """Write a stat file as the kernel does: the name in parentheses, then twelve fields and more."""
    folder.mkdir(parents=True)
    fields = ["S", *map(str, range(10)), f"{user}", f"{system}", "0", "0"]
    (folder / "stat").write_text(f"{folder.name} ({name}) {' '.join(fields)}\n")


def test_the_cpu_time_of_threads_is_split_by_their_names(monkeypatch, tmp_path):
    """The first thread is the event loop; other threads, as of Redis, are in the total only."""
    monkeypatch.setattr("os.sysconf", lambda name: TICKS)
    stat(tmp_path / "7", "python", 100, 50)
    threads = {"7": ("python", 20, 10), "8": ("cpu-bulk_0", 30, 0), "9": ("cpu-interactive", 10, 5)}
    threads |= {"10": ("device_0", 40, 2), "11": ("a (b) c", 3, 0)}
    for number, (name, user, system) in threads.items():
        stat(tmp_path / "7" / "task" / number, name, user, system)
    (tmp_path / "7" / "task" / "12").mkdir()  # it ended meanwhile

    found = cpu.cpu_s(7, tmp_path)

    assert {"loop": 0.3, "decoding": 0.45, "device": 0.42, "all": 1.5} == pytest.approx(found)


def test_both_releases_take_turns_with_the_same_requests(releases, capsys):
    """One burst of each warms up; a figure is per picture, and has the other release's beside it."""
    report = Report()
    cpu.measure(report, SIZES["bench"], "v1")

    asked = releases[cpu.ROOT].asked
    assert [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)] == asked
    figures = {figure.name: figure for figure in report.figures}
    assert ["cpu_loop", "cpu_decoding", "cpu_device", "cpu_all", "cpu_rate"] == list(figures)
    assert pytest.approx(1.0) == figures["cpu_all"].value
    assert "2 in v1, ratio 0.50" == figures["cpu_all"].note
    assert (2.0, "2 in v1, ratio 1.00") == (figures["cpu_rate"].value, figures["cpu_rate"].note)
    assert {"this release", "v1"} == set(report.runs["burst, by release"])


@pytest.mark.parametrize("lacks", ["its service", "a score"])
def test_a_release_that_lacks_something_is_named_and_left_out(releases, lacks, monkeypatch, capsys):
    """The figures of this release are reported alone."""
    if lacks == "a score":
        releases[Path("earlier")].scored = 0
    else:

        @contextmanager
        def ended(root):
            if root != cpu.ROOT:
                raise Failed("the service ended with status 1 before it was ready")
            yield releases[root]

        monkeypatch.setattr(cpu, "release", ended)
    report = Report()
    cpu.measure(report, SIZES["bench"], "v1")

    reason = "of 4 requests: 4 error" if lacks == "a score" else "the service ended with status 1"
    assert f"no figures of v1: {reason}" in capsys.readouterr().out
    assert 5 == len(report.figures)
    assert {""} == {figure.note for figure in report.figures}


def test_a_release_that_fails_later_ends_the_run_and_is_named(releases):
    """Its figures would be of fewer pictures than the other's."""
    server = releases[Path("earlier")]
    first, later = [outcome()] * 4, [outcome(), outcome(status=503, scored=0)]
    server.run = lambda spec: later if spec.seed else first

    with pytest.raises(SystemExit, match="v1: of 2 requests: 1 ok, 1 refused"):
        cpu.measure(Report(), SIZES["bench"], "v1")


def test_the_work_tree_is_removed_also_after_a_fault(monkeypatch):
    """What git is called with, before and after."""
    called = []
    monkeypatch.setattr(cpu, "git", lambda *arguments: called.append(arguments))

    with pytest.raises(Failed, match="early"), cpu.checkout("v1") as tree:
        raise Failed("early")

    assert ("worktree", "add", "--quiet", "--detach", str(tree), "v1") == called[0]
    assert ("worktree", "remove", "--force", str(tree)) == called[1]
    assert not tree.parent.exists()


def test_the_previous_release_is_the_latest_tag_or_a_fixed_commit(monkeypatch):
    """Without tags git fails."""

    def without_tags(*arguments):
        raise Failed("fatal: No names found, cannot describe anything.")

    monkeypatch.setattr(cpu, "git", lambda *arguments: "v0.1.0")
    assert "v0.1.0" == cpu.previous_release()
    monkeypatch.setattr(cpu, "git", without_tags)
    assert cpu.REFERENCE == cpu.previous_release()
