"""`scoregate report --offline`: the page of results that are there, without a service."""

import json
import re

import pytest

from tests.support.pictures import png
from tests.unit.client.cli.rated import NAMED, ratings

__all__ = ["ratings"]


@pytest.fixture
def offline(tmp_path, run):
    """The command on results that a test wrote, without a service: status, what it says, and the page."""

    def offline(lines, *arguments, dataset="rows.jsonl", results="scores.jsonl"):
        if lines is not None:
            (tmp_path / results).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        page = () if "-o" in arguments else ("-o", "page.html")
        held = () if "--results" in arguments else ("--results", results)
        call = ["report", dataset, *page, *held, "--offline", *arguments]
        done, page = run(*call), tmp_path / "page.html"
        return done.returncode, done.stderr, page.read_text("utf-8") if page.exists() else ""

    return offline


def scored(rows, **more):
    """Lines as `batch` writes them; the number of the row as its score."""
    return [
        {
            "row": number,
            "image": row["image"],
            "prompt": row["prompt"],
            "sha256": None,
            "scores": {"vqascore": float(number)},
            "errors": {},
            "models": {"vqa": "tiny@1"},
            **more,
        }
        for number, row in enumerate(rows, 1)
    ]


def test_results_are_drawn_without_a_service_and_stay_as_they_are(offline, ratings, tmp_path):
    """The page tells the models, and that nobody told the service's version."""
    lines = scored(ratings)[::-1]
    status, said, page = offline(lines, *NAMED)

    assert 0 == status
    assert ["40 of 40 rows have all scores; 0 were requested in this run", "scores.jsonl", "page.html"] == (
        said.splitlines()
    )
    kept = (tmp_path / "scores.jsonl").read_text("utf-8")
    assert [40, 39] == [json.loads(line)["row"] for line in kept.splitlines()][:2]
    assert "vqa: tiny@1" in page
    assert "version not known" in page
    assert "<td>20.5000</td>" in page


def test_rows_that_the_results_do_not_have_are_errors(offline, ratings):
    """And so are rows whose picture was another one."""
    lines = scored(ratings)[:-1]
    lines[0]["sha256"] = "sha256:0"
    status, _, page = offline(lines)

    assert 1 == status
    assert re.search(r"not_scored</th><td>vqascore</td><td>1</td><td>row 40: ", page)
    assert re.search(r"picture_changed</th><td>vqascore</td><td>1</td><td>row 1: ", page)


def test_a_picture_that_is_gone_keeps_its_score(offline, ratings, tmp_path):
    """There is none to show."""
    (tmp_path / ratings[0]["image"]).unlink()
    status, _, page = offline(scored(ratings, sha256="sha256:0")[:1] + scored(ratings)[1:], "--pictures", "1")

    assert 0 == status
    assert "no picture to show" in page


def test_prompts_and_names_cannot_mark_up_the_page(offline, tmp_path):
    """Wherever they stand."""
    evil = "<script>alert('x')</script>\"><img src=http://evil.example/ onerror=alert(1)>"
    (tmp_path / "a.png").write_bytes(png())
    rows = [
        {"image": "a.png", "prompt": f"{evil} {number}", evil: -number, "g": f"{evil}{number % 2}"}
        for number in range(6)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    asked = {"questions": [{"text": evil, "answer": evil, "score": 0}], "reason": evil}
    boxes = [{"class": evil, "score": 0.5, "box": [0, 0, 4, 4], "color": evil}]
    details = {"vqascore": {**asked, "tag": evil, "boxes": boxes, "width": 16, "height": 16}}
    lines = scored(rows, details=details, models={evil: evil}, options={evil: {evil: evil}})
    lines[0] |= {"scores": {}, "errors": {"vqascore": {"code": evil, "detail": evil}}}
    _, _, page = offline(lines, "--human", evil, "--model", "g", "--skill", "g")

    assert page.count("&lt;script&gt;") > 20
    assert not re.search('<script|<img src=http|<img src="http', page)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--human", "stars"), "rows.jsonl: no column 'stars'; there are "),
        (("--model", "maker"), "rows.jsonl: no column 'maker'; there are "),
        (("--human", "kind"), "rows.jsonl, row 1, column kind: 'kind 0' is not a number"),
        (("--results", "gone.jsonl"), "gone.jsonl: No such file"),
        (("--results", "rows.jsonl"), "rows.jsonl: the results would overwrite the data set"),
        (("-o", "no/page.html"), "no/page.html: there is no folder no"),
        (("-o", "scores.jsonl"), "scores.jsonl: the page would overwrite the results"),
        (("-m", "dsg"), 'was scored with the metrics ["vqascore"], now they are ["dsg"]'),
    ],
)
def test_a_call_that_is_wrong_ends_with_one_line(offline, ratings, arguments, why):
    """Status 2, and no page."""
    status, said, page = offline(scored(ratings), *arguments)
    [line] = said.splitlines()

    assert (2, "") == (status, page)
    assert why in line


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"scores": {"vqascore": "high"}}, "vqascore of row 1 is no finite number"),
        ({"scores": {"vqascore": float("inf")}}, "vqascore of row 1 is no finite number"),
        ({"models": {"vqa": "other@2"}}, "was scored with the models"),
        ({"scores": None}, "is no result of `scoregate batch`"),
    ],
)
def test_results_that_are_none_end_with_one_line(offline, ratings, change, why):
    """A number that is not right is not drawn."""
    lines = scored(ratings)
    lines[0] |= change
    status, said, _ = offline(lines)

    assert 2 == status
    assert why in said.splitlines()[-1]


@pytest.mark.parametrize("text", ["", "notes\n", '{"image": "a.png"}\n'])
def test_a_file_of_somebody_else_is_no_result(offline, ratings, tmp_path, text):
    """Status 2."""
    (tmp_path / "scores.jsonl").write_text(text, "utf-8")
    status, said, _ = offline(None)

    assert 2 == status
    assert "result" in said


def test_ratings_outside_the_scale_are_left_out(offline, ratings):
    """They are counted."""
    _, _, page = offline(scored(ratings), *NAMED, "--scale", "0:4")

    assert "5 ratings outside the scale are left out." in page
    assert "35 of 40 pictures have a score and a rating." in page


def test_a_manifest_has_the_version_and_the_times(offline, ratings, tmp_path):
    """The direction of a metric is that of the results."""
    run = {"requested": 40, "cached": 3, "seconds": 20.0, "service": {"version": "9.8.7"}}
    content = {"manifest": 1, "dataset": {"path": "rows.jsonl"}, "results": "scores.jsonl", "metrics": []}
    content |= {"options": {}, "runs": [run | {"service": {"version": "1"}}, run]}
    (tmp_path / "scores.jsonl.manifest.json").write_text(json.dumps(content), "utf-8")
    _, _, page = offline(scored(ratings, lower_is_better=["vqascore"]))

    assert "Scoregate 9.8.7" in page
    assert "<dd>80, in 2 runs</dd>" in page
    assert "Worst scores" in page
