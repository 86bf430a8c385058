"""`scoregate open`: the page of any result, recognized by its content."""

import json
import webbrowser
from pathlib import Path

import pytest

from scoregate.cli import open as command_open
from tests.support.decision_logs import write
from tests.support.decision_records import record
from tests.support.pictures import png
from tests.unit.client.cli.served import Numbered, Service, metric

METRICS = {"vqascore": metric()}


@pytest.fixture
def shown(monkeypatch):
    """The addresses that the browser showed; there is one."""
    found: list[str] = []
    monkeypatch.setattr(webbrowser, "open", found.append)
    monkeypatch.setenv("DISPLAY", ":0")
    return found


@pytest.fixture
def scored(command):
    """The command on a service that scores each prompt with the number that it ends in."""
    return lambda *arguments: command(Numbered("clip@1", metrics=METRICS), *arguments)


def page_of(scored, shown, *arguments):
    """The text of the page that `open` printed and showed."""
    status, out, said = scored("open", *arguments)
    assert (0, "") == (status, said)
    page = Path(out.strip())
    assert [page.resolve().as_uri()] == shown
    return page, page.read_text("utf-8")


def test_results_of_batch_are_drawn_next_to_them(scored, shown):
    """With their pictures, which the manifest names; the manifest itself has the same page."""
    scored("batch", "rows.jsonl", "-o", "out.jsonl")
    page, text = page_of(scored, shown, "out.jsonl")
    status, out, _ = scored("open", "out.jsonl.manifest.json", "-o", "other.html")

    assert "out.jsonl.html" == page.name
    assert "prompt 7" in text
    assert "data:image/" in text
    assert (0, "other.html\n") == (status, out)
    assert "prompt 7" in Path("other.html").read_text("utf-8")


def test_results_of_shards_that_were_several_paths_have_a_page(command, scored, shown, shards):
    """The manifest of each shard names that shard alone."""
    call = ("batch", "s-0.tar", "s-1.tar", "s-2.tar", "-o", "out")
    assert 1 == command(Service("clip@1", metrics=METRICS), *call)[0]
    _, text = page_of(scored, shown, "out")

    assert "All 6, the worst first" in text


def test_results_of_shards_have_each_picture_at_its_own_line(command, scored, shown, shards):
    """Though each file counts its rows from 1."""
    assert 1 == command(Service("clip@1", metrics=METRICS), "batch", "s-{0..2}.tar", "-o", "out")[0]
    _, text = page_of(scored, shown, "out")

    assert "All 6, the worst first" in text
    assert 5 == text.count("data:image/")
    assert all(f"row {number}," in text for number in range(1, 7))


def test_the_folder_of_versus_is_drawn_side_by_side(scored, shown, tmp_path):
    """From the results of each generator."""
    for name in ("A", "B"):
        (tmp_path / name).mkdir()
        for n in range(3):
            (tmp_path / name / f"{n}.png").write_bytes(png())
    prompts = [{"image": str(n), "prompt": f"prompt {n}"} for n in range(3)]
    (tmp_path / "prompts.jsonl").write_text("\n".join(map(json.dumps, prompts)), "utf-8")
    assert 0 == scored("versus", "A", "B", "--prompts", "prompts.jsonl", "-o", "scores")[0]
    status, out, _ = scored("open", "scores")

    assert (0, [(tmp_path / "scores.html").as_uri()]) == (status, shown)
    assert "prompt 2" in Path(out.strip()).read_text("utf-8")


def test_tables_of_a_benchmark_and_figures_of_decisions_are_drawn(scored, shown, tmp_path):
    """As `bench NAME --json` and `decisions report -o` wrote them; a log has the same page as its figures."""
    tables = {"benchmark": "dpg", "generators": [{"generator": "sd3", "mean": 0.75}]}
    (tmp_path / "dpg.json").write_text(json.dumps(tables), "utf-8")
    write(tmp_path / "log.sqlite3", record("a", decision="accept"), record("b", decision="reject"))
    status, *_ = scored("decisions", "report", "log.sqlite3", "-o", "figures.json")

    assert "sd3" in page_of(scored, shown, "dpg.json")[1]
    assert 0 == status
    drawn = [
        Path(scored("open", name)[1].strip()).read_text("utf-8") for name in ("log.sqlite3", "figures.json")
    ]
    assert drawn[0] == drawn[1]


def test_the_page_of_a_suite_is_shown_as_it_is(scored, shown, tmp_path):
    """By its folder, or one of its files."""
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "index.html").write_text("a page", "utf-8")
    (tmp_path / "report" / "manifest.json").write_text('{"bench_run": 1}', "utf-8")

    assert "a page" == page_of(scored, shown, "report")[1]
    assert "report/index.html\n" == scored("open", "report/manifest.json")[1]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "hello", "a.txt: is no result, which is one of: results of batch, "),
        ("a.json", "{}", "a.json: is no result, which is one of: results of batch, "),
        ("a.jsonl", '{"image": "p.png"}', "a.jsonl: is no result"),
        ("v.json", '{"prompts": 1, "pairs": [], "generators": []}', "name the folder of its -o"),
        ("gone.jsnl", None, "gone.jsnl: no such file or folder"),
    ],
)
def test_what_is_no_result_is_an_error_that_lists_the_kinds(scored, shown, tmp_path, name, content, said):
    """And no page is shown."""
    if content is not None:
        (tmp_path / name).write_text(content, "utf-8")
    status, out, err = scored("open", name)

    assert (2, "", True, []) == (status, out, said in err, shown)


def test_results_without_their_manifest_say_what_is_missing(scored, shown, tmp_path):
    """It names the data set with the pictures."""
    scored("batch", "rows.jsonl", "-o", "out.jsonl")
    (tmp_path / "out.jsonl.manifest.json").unlink()
    status, _, err = scored("open", "out.jsonl")

    assert (2, True) == (status, "not known without its manifest out.jsonl.manifest.json" in err)


@pytest.mark.parametrize(
    ("platform", "display", "there"),
    [("linux", "", False), ("linux", ":0", True), ("darwin", "", True), ("win32", "", True)],
)
def test_on_linux_a_window_needs_a_display(monkeypatch, platform, display, there):
    """Otherwise the path alone is printed."""
    for name in command_open.DISPLAYS:
        monkeypatch.delenv(name, raising=False)
    if display:
        monkeypatch.setenv("DISPLAY", display)

    assert there == command_open.has_browser(platform)
