"""`scoregate batch` and `report` of several generators: `A=folder B=folder`."""

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
        (("--filter", "vqascore >= 0.5"), "--filter is for one data set, and there are several generators"),
        (("--policy", "show"), "--policy is for one data set"),
        (("--ray", "auto"), "--ray is for one data set"),
        (("--html", "page.html"), "--html is for one data set; `versus` and `report` draw pages"),
        (("theirs=red",), "are both named theirs"),
        (("gone=no",), "no: no such file or folder"),
    ],
)
def test_settings_of_one_data_set_are_refused_before_anything_is_scored(command, service, given, why):
    """With the name of the setting."""
    call = (*BATCH[:3], *given, *BATCH[3:]) if "=" in given[0] else (*BATCH, *given)
    status, _, err = command(service, *call)

    assert (2, []) == (status, service.sent)
    assert why in err


def test_results_of_several_generators_are_in_a_folder(command, service):
    """A file has those of one; and results are not scored again."""
    assert (
        "out.jsonl: the results of several generators are in a folder"
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
