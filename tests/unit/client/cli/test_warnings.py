"""What the service warns of, as each command says it."""

import json

import httpx2 as httpx
import pytest

from tests.unit.client.cli.served import ROWS, Service, lines, metric

METRICS = {"vqascore": metric()}
CUT = {"code": "prompt_truncated", "item": 0, "metric": "vqascore"}
WARNINGS = {"warnings": ["item 0, vqascore: the <b>question</b> was cut"], "warning_codes": [CUT]}
TEXT = "vqascore: the <b>question</b> was cut"
OUT = ("-o", "out.jsonl")


@pytest.fixture
def warning():
    """A service that warns about the first item of each request."""
    return lambda: Service("clip@1", metrics=METRICS, **WARNINGS)


@pytest.fixture
def demo():
    """A service of demo models alone, which says nothing of it in its answers."""
    return lambda: Service("scoregate-demo-vqa@1", metrics=METRICS)


def test_lines_have_the_warnings_about_their_row(command, warning, tmp_path):
    """With code and metric, and without the item's place in a request; stderr counts each kind."""
    status, _, said = command(warning(), "batch", "rows.jsonl", *OUT)
    found = [each["row"] for each in lines(tmp_path / "out.jsonl") if "warnings" in each]

    assert (0, [1, 17, 33]) == (status, found)
    assert [{"code": "prompt_truncated", "metric": "vqascore", "text": TEXT}] == lines(
        tmp_path / "out.jsonl"
    )[0]["warnings"]
    assert f"warning: 3 rows: {TEXT} (first: p.png)\n" in said


UNKNOWN = "words that vqa never learnt: ein, käse"
OF_A_PROMPT = {"warnings": [f"item 0: {UNKNOWN}"], "warning_codes": [{"code": "unknown_words", "item": 0}]}


def test_a_warning_about_an_item_is_on_its_row_under_all_metrics(command, tmp_path):
    """And with `--strict` an error that a later run retries."""
    warned, silent = Service("clip@1", metrics=METRICS, **OF_A_PROMPT), Service("clip@1", metrics=METRICS)
    _, _, said = command(warned, "batch", "rows.jsonl", *OUT)
    found = {each["row"]: each["warnings"] for each in lines(tmp_path / "out.jsonl") if "warnings" in each}

    assert [1, 17, 33] == [*found]
    assert [{"code": "unknown_words", "metric": None, "text": UNKNOWN}] == found[1]
    assert f"warning: 3 rows: {UNKNOWN} (first: p.png)\n" in said
    assert 0 == command(silent, "batch", "rows.jsonl", *OUT, "--strict")[0]
    assert 3 == sum(len(asked["items"]) for asked in silent.sent)


def test_a_warning_about_a_request_is_on_all_of_its_rows(command, tmp_path):
    """It is about each of them."""
    more = {"warnings": ["vqa is tired"], "warning_codes": [{"code": "tired"}]}
    _, _, said = command(Service("clip@1", metrics=METRICS, **more), "batch", "rows.jsonl", *OUT)

    assert all("warnings" in each for each in lines(tmp_path / "out.jsonl"))
    assert f"warning: {ROWS} rows: vqa is tired (first: p.png)\n" in said


@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_they_are_in_the_columns_of_a_table_and_in_the_next_run(command, warning, out):
    """Which asks nothing, and says them again."""
    for _ in range(2):
        service = warning()
        _, _, said = command(service, "batch", "rows.jsonl", "-o", out)

    assert [] == service.sent
    assert f"warning: 3 rows: {TEXT} (first: p.png)\n" in said


def test_the_pages_show_them_escaped(command, warning, tmp_path):
    """The contact sheet beside each picture, the report by their kinds."""
    command(warning(), "batch", "rows.jsonl", *OUT, "--html", "sheet.html")
    command(warning(), "report", "rows.jsonl", "-o", "page.html", "--results", "out.jsonl", "--offline")
    sheet, page = ((tmp_path / name).read_text("utf-8") for name in ("sheet.html", "page.html"))
    shown = "vqascore: the &lt;b&gt;question&lt;/b&gt; was cut"

    assert 3 == sheet.count(f"<dt>warning</dt><dd>{shown}</dd>")
    assert f"3 rows: {shown}" in sheet
    assert f'<th scope="row">prompt_truncated</th><td>3</td><td>row 1: {shown}</td>' in page
    assert "<b>question" not in sheet + page


@pytest.mark.parametrize(
    "arguments", [("score", "p.png", "-p", "x"), ("rank", "p.png", "p.png", "-p", "x")], ids=["score", "rank"]
)
def test_score_and_rank_say_them_on_stderr_with_the_file(command, warning, arguments):
    """In one line each, without what would steer a terminal; JSON has them as the service sent them."""
    status, _, said = command(warning(), *arguments)
    _, out, _ = command(warning(), *arguments, "--json")

    assert (0, "warning: p.png, vqascore: the <b>question</b> was cut\n") == (status, said)
    assert WARNINGS["warnings"] == json.loads(out)["warnings"]


@pytest.mark.parametrize("about", [None, ["vqascore"], ["vqascore", "clipscore"]])
def test_the_same_warning_about_several_pictures_and_metrics_is_one_line(command, tmp_path, about):
    """With the files and the metrics, and not for each metric."""
    each = [(place, name) for place in range(2) for name in about or [None]]
    texts = [f"item {place}{f', {name}' if name else ''}: {UNKNOWN}" for place, name in each]
    codes = [
        {"code": "unknown_words", "item": place} | ({"metric": name} if name else {}) for place, name in each
    ]
    service = Service("clip@1", metrics=METRICS, warnings=texts, warning_codes=codes)
    (tmp_path / "q.png").write_bytes((tmp_path / "p.png").read_bytes())
    named = "".join(f", {name}" for name in about or ())
    expected = f"warning: 2 pictures (p.png, q.png){named}: {UNKNOWN}\n"

    said = command(service, "score", "p.png", "q.png", "-p", "x")[2]
    assert [expected] == [line for line in said.splitlines(keepends=True) if line.startswith("warning")]


def test_a_warning_of_a_matrix_names_the_picture_and_the_prompt(command):
    """Since it may be about the prompt."""
    codes = [{"code": "unknown_words", "item": 1}]
    service = Service("clip@1", metrics=METRICS, warnings=[f"item 1: {UNKNOWN}"], warning_codes=codes)

    said = command(service, "score", "p.png", "-p", "a dog", "-p", "ein Käse")[2]
    assert f'warning: p.png, "ein Käse": {UNKNOWN}' == said.splitlines()[0]


@pytest.mark.parametrize(
    "arguments",
    [("score", "p.png", "-p", "x"), ("rank", "p.png", "-p", "x"), ("batch", "rows.jsonl", *OUT)],
    ids=["score", "rank", "batch"],
)
def test_strict_makes_errors_of_them(command, warning, tmp_path, arguments):
    """Status 1, and no score of what was warned about."""
    status, out, said = command(warning(), *arguments, "--strict")

    assert 1 == status
    assert "warned" in said
    assert "0.5" not in out
    if arguments[0] == "batch":
        errors = [each for each in lines(tmp_path / "out.jsonl") if each["errors"]]
        assert [1, 17, 33] == [each["row"] for each in errors]
        assert {"warned"} == {each["errors"]["vqascore"]["code"] for each in errors}


def test_a_strict_run_asks_again_for_what_was_warned_about(command, warning, tmp_path):
    """Where an earlier run took its score; the others stay."""
    command(warning(), "batch", "rows.jsonl", *OUT)
    service = Service("clip@1", metrics=METRICS)
    status, _, said = command(service, "batch", "rows.jsonl", *OUT, "--strict")

    assert (0, 3) == (status, sum(len(asked["items"]) for asked in service.sent))
    assert "warning" not in said
    assert not any("warnings" in each for each in lines(tmp_path / "out.jsonl"))


MEAN_NOTHING = "vqa is a demo model: scores that rest on it mean nothing for real pictures"
SAYING = {
    "score": ("score", "p.png", "-p", "x"),
    "rank": ("rank", "p.png", "-p", "x"),
    "batch": ("batch", "rows.jsonl", *OUT),
    "report": ("report", "rows.jsonl", "-o", "page.html"),
    "health": ("health",),
}


@pytest.mark.parametrize("arguments", SAYING.values(), ids=SAYING)
def test_a_service_of_demo_models_alone_is_told_by_every_command(command, demo, arguments):
    """Although its answers do not warn of it."""
    _, out, said = command(demo(), *arguments)

    assert MEAN_NOTHING in out + said


def test_questions_of_a_demo_llm_are_told(command):
    """By the model that writes them."""
    llm = {"name": "llm", "role": "questions", "id": "scoregate-demo-questions"}
    other = {"name": "vqa", "role": "vqa", "id": "scoregate-demo-vqa"}
    sets = [{"prompt": "x", "style": "dsg", "id": "sha256:0", "cached": False, "questions": []}]

    def service(request):
        if request.url.path == "/models":
            return httpx.Response(200, json={"models": [llm, other], "metrics": {}})
        return httpx.Response(200, json={"sets": sets})

    assert MEAN_NOTHING.replace("vqa", "llm") in command(service, "questions", "x")[2]


def test_it_is_told_once_where_the_answers_warn_of_it(command):
    """As the service words it."""
    text = "vqa is a demo model: it means nothing"
    for more in ({"warnings": [text]}, {"warnings": [text], "warning_codes": [{"code": "demo_model"}]}):
        service = Service("scoregate-demo-vqa@1", metrics=METRICS, **more)
        assert f"warning: {text}\n" == command(service, *SAYING["score"])[2]


def test_the_page_and_calibrate_tell_it_from_the_file(command, demo, tmp_path):
    """Long after the service is gone."""
    command(demo(), "batch", "rows.jsonl", *OUT, "--html", "sheet.html")
    command(demo(), "report", "rows.jsonl", "-o", "page.html", "--results", "out.jsonl", "--offline")
    held = lines(tmp_path / "out.jsonl")
    for number, each in enumerate(held):
        each["scores"]["vqascore"] = number / ROWS
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(each) + "\n" for each in held))
    _, _, said = command(demo(), "calibrate", "out.jsonl")
    sheet, page = ((tmp_path / name).read_text("utf-8") for name in ("sheet.html", "page.html"))

    assert MEAN_NOTHING in sheet
    assert "40 of 40 pictures were scored by demo models: these scores mean nothing" in page
    assert f"warning: 40 rows: {MEAN_NOTHING}" in said
