"""`scoregate batch` and `report` of several generators: `A=folder B=folder`."""

import json
import re
from pathlib import Path

import pytest

from tests.support.pictures import png
from tests.unit.client.cli.served import Numbered, Service, lines, metric

COLOURS = {"red": 0.9, "blue": 0.1}
BATCH = ("batch", "ours=red", "theirs=blue", "-o", "out", "-m", "vqascore")
REPORT = ("report", "ours=red", "theirs=blue", "-o", "page.html", "-m", "vqascore", "--item", "image")


@pytest.fixture
def service():
    """A service whose scores are the numbers in the prompts, and that says what they are made of."""
    service = Numbered("clip@1", metrics={"vqascore": metric()})
    service.entry = {"details": {"vqascore": {"question": "Is it so?"}}}
    return service


@pytest.fixture(autouse=True)
def folders(tmp_path):
    """Three pictures of each of two generators, with captions."""
    for colour, score in COLOURS.items():
        (tmp_path / colour).mkdir()
        for n in range(3):
            (tmp_path / colour / f"{n}.png").write_bytes(png(colour))
            (tmp_path / colour / f"{n}.txt").write_text(f"x {score + n / 100:.2f}")


def test_each_generator_has_a_file_of_results(command, service):
    """Which the next run continues, and `versus` and `evaluate` compare."""
    status, _, err = command(service, *BATCH)

    assert 0 == status, err
    assert "6 of 6 rows have all scores; 6 were requested in this run" in err
    assert {
        name: [line["scores"]["vqascore"] for line in lines(Path(f"out/{name}.jsonl"))]
        for name in ("ours", "theirs")
    } == {
        "ours": [0.9, 0.91, 0.92],
        "theirs": [0.1, 0.11, 0.12],
    }
    assert "0 were requested" in command(service, *BATCH)[2]
    assert 0 == command(service, "versus", "out/ours.jsonl", "out/theirs.jsonl", "--item", "image")[0]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--filter", "clipscore >= 0.5"), "clipscore is not scored, see --metric"),
        (("--filter", "vqascore >= 0.5", "--kept-shards", "kept"), "run `batch` for each generator alone"),
        (("--policy-file", "policies.toml"), "--policy-file needs --policy NAME"),
        (("--ray", "auto"), "--ray: the data set has to be in shards"),
        (("--html", "no/page.html"), "no/page.html: there is no folder no"),
        (("theirs=red",), "are both named theirs"),
        (("gone=no",), "no: no such file or folder"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_scored(command, service, given, why):
    """With the name of the setting."""
    call = (*BATCH[:3], *given, *BATCH[3:]) if "=" in given[0] else (*BATCH, *given)
    status, _, err = command(service, *call)

    assert (2, []) == (status, service.sent)
    assert why in err


def test_the_page_shows_the_generators_side_by_side(command, service):
    """As that of `versus`: matched by file name, where they share no prompt."""
    status, _, err = command(service, *BATCH, "--html", "page.html")
    page = Path("page.html").read_text("utf-8")

    assert 0 == status, err
    assert err.endswith("page.html\n")
    assert "ours and theirs side by side" in page
    assert 3 == len(json.loads(content_in(page))["prompts"])


def content_in(page):
    """The JSON of a page's prompts."""
    return re.search(r'id="content">(.*?)</script>', page, re.DOTALL)[1]


def test_a_page_of_one_generator_is_refused(command, service):
    """It has nothing at its side."""
    status, _, err = command(service, "batch", "ours=red", "-o", "out", "--html", "page.html")

    assert (2, []) == (status, service.sent)
    assert "--html shows generators side by side: name two" in err


def test_each_generator_has_the_names_of_its_rows_that_pass(command, service):
    """Beside its results."""
    status, _, err = command(service, *BATCH, "--filter", "vqascore >= 0.11 and vqascore < 0.92")

    assert 0 == status, err
    assert "0.png\n1.png\n" == Path("out/ours.jsonl.kept.txt").read_text("utf-8")
    assert "1.png\n2.png\n" == Path("out/theirs.jsonl.kept.txt").read_text("utf-8")
    assert "2 of 3 rows are kept by" in err


def test_results_of_several_generators_are_in_a_folder(command, service):
    """A file has those of one; and results are not scored again."""
    assert (
        "out.jsonl: the scores of several generators are in a folder"
        in command(service, *BATCH[:3], "-o", "out.jsonl")[2]
    )
    command(service, *BATCH)
    assert (
        "out/ours.jsonl: these are results; batch scores data sets"
        in command(service, "batch", "a=out/ours.jsonl", "-o", "again")[2]
    )


def test_a_report_compares_generators_that_are_named_by_their_folders(command, service):
    """With the pictures of both, and their scores beside the page for the next run."""
    status, _, err = command(service, *REPORT)
    page = Path("page.html").read_text("utf-8")

    assert 0 == status, err
    assert ["ours.jsonl", "theirs.jsonl"] == sorted(
        each.name for each in Path("page.results").glob("*.jsonl")
    )
    assert 6 == len(re.findall(r'<img src="data:image/', page))
    assert re.search(r"<span>ours</span>.*<td>0\.9100</td>", page)
    assert re.search(r"<span>theirs</span>.*<td>0\.1100</td>", page)
    assert "0 were requested" in command(service, *REPORT)[2]


def test_a_report_of_results_of_generators_needs_no_service(command, service):
    """As they were scored before."""
    command(service, *BATCH)
    results = ("ours=out/ours.jsonl", "theirs=out/theirs.jsonl")
    status, _, err = command(
        Service("none@1", metrics={}), "report", *results, "--offline", "-o", "page.html"
    )

    assert 0 == status, err
    assert "theirs" in Path("page.html").read_text("utf-8")
    assert "--offline draws results" in command(service, *REPORT, "--offline")[2]


def test_a_column_that_no_generator_has_is_wrong_before_anything_is_scored(command, service):
    """As of one data set."""
    status, _, err = command(service, *REPORT, "--human", "rating")

    assert (2, []) == (status, service.sent)
    assert "ours, theirs: no column 'rating'" in err
