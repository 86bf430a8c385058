"""`scoregate versus`: two folders of pictures on the same prompts, with one answer."""

import json
import random
from io import BytesIO
from pathlib import Path

import httpx2 as httpx
import pytest
from PIL import Image

import scoregate
from scoregate import Client
from scoregate.errors import InputError, NoResultError
from scoregate.runs.results import Results
from tests.support.pictures import png
from tests.support.shards import tar_of
from tests.unit.client.cli.served import Service, lines, metric

PROMPTS = 12
CALL = ("versus", "A", "B", "--prompts", "prompts.jsonl", "-o", "scores")
QUESTIONS = {"dsg": {"questions": [{"text": "Is there a dog?", "score": 1.0}]}}


class BySide(Service):
    """Scores the red pictures of A higher than the blue ones of B; *refused* prompts have an error."""

    refused: frozenset[str] = frozenset()

    def __call__(self, request):
        answer = super().__call__(request)
        content = answer.json()
        if "results" not in content:
            return answer
        for result, item in zip(content["results"], self.sent[-1]["items"], strict=True):
            worth = int(item["prompt"].rpartition(" ")[2]) / 100
            name = item["image"]["part"].encode()
            red = request.content.split(b'; name="%b"' % name)[1].partition(b"\r\n--")[0].endswith(png("red"))
            result["scores"] = {name: worth + 0.1 * red for name in result["scores"]}
            if item["prompt"] in self.refused:
                error = {"code": "timeout", "detail": "too late"}
                result |= {"scores": {}, "errors": dict.fromkeys(result["scores"], error)}
        return httpx.Response(answer.status_code, json=content)


@pytest.fixture
def service():
    """A service of two metrics, which says what scores are made of."""
    service = BySide("clip@1", metrics={"vqascore": metric(), "dsg": metric()})
    service.entry = {"details": QUESTIONS}
    return service


@pytest.fixture
def folders(tmp_path):
    """A red picture of each prompt by A, and two blue ones by B."""
    rows = [
        {"image": f"{n:02}", "prompt": f"prompt {n}", "skill": ["count"] if n % 2 else ["count", "colour"]}
        for n in range(PROMPTS)
    ]
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for name, colour in (("A", "red"), ("B", "blue")):
        (tmp_path / name).mkdir()
        for n in range(PROMPTS):
            for suffix in [""] if name == "A" else ["_0", "_1"]:
                (tmp_path / name / f"{n:02}{suffix}.png").write_bytes(png(colour))
    return tmp_path


def found_by(command, service, *arguments):
    """The status, the JSON, and the lines on stderr."""
    status, out, err = command(service, *arguments, "--format", "json")
    return status, json.loads(out), err.splitlines()


def test_two_folders_have_one_answer(command, service, folders):
    """Pictures are matched by the names in the table of prompts; several pictures of a prompt are its own."""
    status, found, _ = found_by(command, service, *CALL)
    [pair] = found["pairs"]

    assert 0 == status
    assert ("A", "B", PROMPTS, "A") == (pair["a"], pair["b"], pair["prompts"], pair["better"])
    assert (PROMPTS, 0, 0) == (pair["wins"], pair["ties"], pair["losses"])
    assert pytest.approx(0.1) == pair["difference"]
    assert [PROMPTS, 2 * PROMPTS] == [each["pictures"] for each in found["generators"]]
    assert {"A": 0, "B": 0} == pair["missing"]
    assert {"means", "difference", "interval", "wins", "ties", "losses", "p", "missing"} <= pair.keys()


def test_the_answer_is_a_sentence_below_the_tables(command, service, folders):
    """With the difference, and p corrected."""
    _, out, _ = command(service, *CALL)

    assert out.splitlines()[-1].startswith(
        "vqascore: A is better than B, on 12 of 12 prompts (difference 0.1"
    )


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("csv", "all,vqascore,A,B,0.155"),
        ("markdown", "| colour | vqascore | A | B | 0.1000 |"),
        ("latex", r"colour & vqascore & A & B & 0.1000 &"),
    ],
)
def test_figures_by_skill_are_tables_in_every_form(command, service, folders, form, line):
    """A prompt counts in each of its tags; the table of prompts has them."""
    _, out, _ = command(service, *CALL, "--by", "skill", "--format", form)

    assert [each for each in out.splitlines() if each.startswith(line)]
    assert [each for each in out.splitlines() if "count" in each]


def test_the_second_run_continues(command, service, folders):
    """In the same folder of scores; a metric's results are those of `batch`."""
    command(service, *CALL)
    sent = len(service.sent)
    status, found, err = found_by(command, service, *CALL)

    assert (0, sent) == (status, len(service.sent))
    assert "36 of 36 rows have all scores; 0 were requested in this run" in err
    assert PROMPTS == len(lines(Path("scores/A.jsonl")))
    again = found_by(command, service, "versus", "scores/A.jsonl", "scores/B.jsonl")
    assert (found["pairs"], found["generators"]) == (again[1]["pairs"], again[1]["generators"])
    assert sent == len(service.sent)


def test_ctrl_c_keeps_what_is_scored(command, service, folders, monkeypatch):
    """The next run sends the rest alone."""
    add, added = Results.add, []

    def interrupted(self, row, line):
        if len(added) == 20:
            raise KeyboardInterrupt
        added.append(row)
        add(self, row, line)

    with monkeypatch.context() as patch:
        patch.setattr(Results, "add", interrupted)
        status, _, err = command(service, *CALL)

    assert 130 == status
    assert "8 rows are kept in scores/B.jsonl, and the same command goes on from there" in err
    status, _, err = found_by(command, service, *CALL)
    assert 0 == status
    assert "36 of 36 rows have all scores; 16 were requested in this run" in err


def test_a_missing_score_is_named_and_the_status_is_1(command, service, folders):
    """On its side, with its reason: a picture without a score, and a prompt without a picture."""
    service.refused = frozenset({"prompt 3"})
    (folders / "A" / "05.png").unlink()
    status, found, err = found_by(command, service, *CALL)

    assert 1 == status
    assert {"A": 2, "B": 1} == found["pairs"][0]["missing"]
    assert PROMPTS - 2 == found["pairs"][0]["prompts"]
    assert {
        ("A", "prompt 3", "timeout"),
        ("A", "prompt 5", "unreadable_row"),
        ("B", "prompt 3", "timeout"),
    } == {(each["generator"], each["prompt"], each["code"]) for each in found["missing"]}
    assert "missing: B: 2 timeout of vqascore ('prompt 3', 'prompt 3')" in err


def test_complete_refuses_what_is_missing(command, service, folders):
    """No figure is printed."""
    (folders / "B" / "05_0.png").unlink()
    (folders / "B" / "05_1.png").unlink()
    status, out, err = command(service, *CALL, "--complete")

    assert (1, "") == (status, out)
    assert "scores are missing: 1, first unreadable_row of B, prompt 5" in err


def test_a_prompt_that_one_result_lacks_is_missing(command, service, folders):
    """Results that have no line of it, without a table of prompts."""
    command(service, *CALL)
    rows = lines(Path("scores/B.jsonl"))
    Path("b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[2:]), "utf-8")
    status, found, _ = found_by(command, service, "versus", "scores/A.jsonl", "b.jsonl")

    assert 1 == status
    expected = {"generator": "b", "metric": None, "prompt": "prompt 0", "image": None, "code": "no_picture"}
    assert [expected] == found["missing"]


def test_data_sets_and_shards_are_generators(command, service, folders):
    """With their own prompts; the table of prompts is for folders of pictures."""
    members = {}
    for n in range(PROMPTS):
        members |= {f"{n:02}.png": png("blue"), f"{n:02}.txt": f"prompt {n}".encode()}
    tar_of(folders / "s.tar", members)
    rows = [{"image": f"A/{n:02}.png", "prompt": f"prompt {n}"} for n in range(PROMPTS)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    arguments = ("versus", "rows=rows.jsonl", "shards=s.tar", "A", "--prompts", "prompts.jsonl")
    status, found, _ = found_by(command, service, *arguments)

    assert 0 == status
    assert [("rows", "shards", "rows"), ("rows", "A", None), ("shards", "A", "A")] == [
        (pair["a"], pair["b"], pair["better"]) for pair in found["pairs"]
    ]
    assert Path("versus/shards.jsonl").exists()


def test_file_names_match_where_prompts_do_not(command, service, folders):
    """`--item image`; a column of the data set does as well."""
    for name in ("A", "B"):
        for path in Path(name).iterdir():
            if path.stem.endswith("_1"):
                path.unlink()
            else:
                path.rename(path.with_stem(path.stem.removesuffix("_0")))
    status, found, _ = found_by(command, service, "versus", "A", "B", "-p", "prompt 1", "--item", "image")

    assert (0, PROMPTS) == (status, found["pairs"][0]["prompts"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("A",), "name two generators or more"),
        (("A", "other/../A"), "are both named A: name one as NAME=PATH"),
        (("X=A", "X=B"), "are both named X"),
        (("../x=A", "B"), "the name of a generator is the name of its file of results"),
        (
            ("A", "B", "--prompts", "prompts.jsonl", "--by", "tags"),
            "the results: no column 'tags'; there are skill: --by skill",
        ),
        (("A", "gone", "--prompts", "prompts.jsonl"), "gone: no such file or folder"),
        (("A", "B", "--prompts", "prompts.jsonl", "--html", "no/page.html"), "there is no folder no"),
        (("A", "B", "--prompts", "prompts.jsonl", "-m", "nosuch"), "no metric nosuch"),
    ],
)
def test_a_call_that_is_wrong_ends_with_one_line(command, service, folders, arguments, said):
    """Status 2, and no figure."""
    (folders / "other").mkdir()
    status, out, err = command(service, "versus", *arguments)

    assert (2, "") == (status, out)
    assert said in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"models": {"vqa": "other@2"}}, "were scored by different models, vqa: clip@1 and other@2"),
        ({"options": {"vqascore": {"output": "logit"}}}, "were scored with different options"),
        ({"prompt": "another"}, "A and B have no prompt in common"),
    ],
)
def test_scores_that_are_not_comparable_are_refused(command, service, folders, change, said):
    """A difference of them would mean nothing."""
    command(service, *CALL)
    rows = [row | change for row in lines(Path("scores/B.jsonl"))]
    Path("scores/B.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    status, out, err = command(service, "versus", "scores/A.jsonl", "scores/B.jsonl")

    assert (2, "") == (status, out)
    assert said in err


def test_a_setting_about_data_sets_is_refused_where_there_are_results_alone(command, service, folders):
    """It would be ignored."""
    command(service, *CALL)
    results = ("versus", "scores/A.jsonl", "scores/B.jsonl")
    for setting in (("--prompts", "prompts.jsonl"), ("--image-column", "file"), ("--any-path",)):
        status, _, err = command(service, *results, *setting)

        assert 2 == status
        assert f"{setting[0]} is about data sets, and these are results" in err


def test_folders_without_a_common_prompt_are_refused_before_a_picture_is_scored(command, service, folders):
    """The same pictures may have to be scored again with other prompts."""
    for name in ("A", "B"):
        for path in Path(name).iterdir():
            path.with_suffix(".txt").write_text(f"{name} {path.stem}", "utf-8")
    status, _, err = command(service, "versus", "A", "B")

    assert 2 == status
    assert "A and B have no prompt in common: give both --prompts FILE" in err
    assert not service.sent


def test_metrics_are_those_of_the_results(command, service, folders):
    """One that a generator lacks is named."""
    command(service, *CALL, "-m", "vqascore", "-m", "dsg")
    _, found, _ = found_by(command, service, "versus", "scores/A.jsonl", "scores/B.jsonl")
    assert ["vqascore", "dsg"] == [pair["metric"] for pair in found["pairs"]]

    rows = [row | {"scores": {"vqascore": 0.5}} for row in lines(Path("scores/B.jsonl"))]
    Path("b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    status, _, err = command(service, "versus", "scores/A.jsonl", "b.jsonl")
    assert 2 == status
    assert "b has no dsg; it has vqascore: name metrics by -m" in err
    assert 0 == command(service, "versus", "scores/A.jsonl", "b.jsonl", "-m", "vqascore")[0]


def noise(seed):
    """A picture that no coding makes small."""
    file = BytesIO()
    Image.frombytes("RGB", (256, 256), random.Random(seed).randbytes(3 * 256 * 256)).save(file, "PNG")
    return file.getvalue()


def test_a_page_has_at_most_as_many_bytes_as_it_may(service, folders, monkeypatch):
    """Pictures lose quality before size, and none is left out; with room they have all of it."""
    monkeypatch.chdir(folders)
    for number, path in enumerate(sorted(Path("B").iterdir())):
        path.write_bytes(noise(number))
    with Client("http://test", transport=httpx.MockTransport(service), retries=0) as client:
        found = scoregate.versus(["A", "B"], client=client, prompts="prompts.jsonl", out="scores")
    found.write_page(Path("large.html"))
    found.write_page(Path("small.html"), 400_000)
    sizes = [Path(name).stat().st_size for name in ("large.html", "small.html")]

    assert sizes[1] < 400_000 < sizes[0]
    for name in ("large.html", "small.html"):
        assert 3 * PROMPTS == Path(name).read_text("utf-8").count("data:image/jpeg;base64,")


def test_a_picture_that_changed_is_not_shown(command, service, folders):
    """Its score is of another picture."""
    command(service, *CALL)
    Path("A/03.png").write_bytes(png("green"))
    command(service, "versus", "scores/A.jsonl", "scores/B.jsonl", "--html", "page.html")

    assert 3 * PROMPTS - 1 == Path("page.html").read_text("utf-8").count("data:image/jpeg;base64,")


def test_the_page_of_many_prompts_has_the_largest_differences(command, service, folders):
    """It says how many it leaves out."""
    command(service, *CALL, "--html", "page.html", "--html-prompts", "5")
    page = Path("page.html").read_text("utf-8")

    assert "Below are the 5 of 12 prompts with the largest differences." in page
    assert 5 == page.count('id="pictures-')


def test_questions_are_those_that_one_passes_and_the_other_fails(command, service, folders):
    """By the mean over the pictures of a prompt."""
    command(service, *CALL, "-m", "dsg")
    rows = lines(Path("scores/B.jsonl"))
    rows[0]["details"]["dsg"]["questions"][0]["score"] = 0.0
    rows[2]["details"]["dsg"]["questions"][0]["score"] = 0.0
    rows[3]["details"]["dsg"]["questions"][0]["score"] = 0.0
    Path("scores/B.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    command(service, "versus", "scores/A.jsonl", "scores/B.jsonl", "--html", "page.html")

    assert 1 == Path("page.html").read_text("utf-8").count('[["dsg","Is there a dog?",[true,false]]]')


def test_a_notebook_compares_with_its_client(folders, service, monkeypatch):
    """Settings are those of the command by their names."""
    monkeypatch.chdir(folders)
    with Client("http://test", transport=httpx.MockTransport(service), retries=0) as client:
        found = scoregate.versus({"x": "A", "y": "B"}, client=client, prompts="prompts.jsonl", by="skill")
        with pytest.raises(InputError, match="promts: no such setting"):
            scoregate.versus(["A", "B"], client=client, promts="prompts.jsonl")
        (folders / "A" / "00.png").unlink()
        with pytest.raises(NoResultError, match="scores are missing: 1"):
            scoregate.versus(["A", "B"], client=client, prompts="prompts.jsonl", complete=True)

    assert found.complete
    assert [("x", "y", "x")] == [(pair.a, pair.b, pair.better) for pair in found.figures.pairs]
    assert {"colour", "count"} == found.content["by"].keys()
    assert ">x</td>" in found._repr_html_()


def test_pictures_and_prompts_of_an_earlier_state_count_in_no_figure(command, service, folders):
    """Their scores stay in the file, for a run in which they are back; a comparison of the files has none."""
    command(service, *CALL)
    (folders / "B" / "03_1.png").unlink()
    table = folders / "prompts.jsonl"
    table.write_text(table.read_text("utf-8").replace('"prompt 7"', '"prompt 70"'), "utf-8")
    now = found_by(command, service, *CALL)[1]
    of_files = found_by(command, service, "versus", "scores/A.jsonl", "scores/B.jsonl")[1]
    means = json.loads(command(service, "evaluate", "means", "scores/B.jsonl", "-m", "vqascore", "--json")[1])

    assert now == of_files
    assert PROMPTS == now["prompts"]
    assert [2 * PROMPTS - 1] == [each["pictures"] for each in now["generators"] if each["generator"] == "B"]
    assert "prompt 7" in [line["prompt"] for line in lines(folders / "scores" / "B.jsonl")]
    assert now["generators"][1]["mean"] == pytest.approx(means["mean"]["B"], abs=1e-12)


def test_a_row_that_is_back_has_its_scores_without_a_request(command, service, folders):
    """Lines that were of no row are kept for this."""
    first = found_by(command, service, *CALL)[1]
    picture = folders / "B" / "03_1.png"
    content = picture.read_bytes()
    picture.unlink()
    command(service, *CALL)
    sent = len(service.sent)
    picture.write_bytes(content)

    assert first == found_by(command, service, *CALL)[1]
    assert sent == len(service.sent)


def test_open_draws_the_last_comparison_of_the_folder(command, service, folders):
    """With its own generators in their order, its items and its tags, though other results lie there."""
    command(service, *CALL)
    batch = ("batch", "B", "--prompts", "prompts.jsonl", "-o", "b.jsonl")
    command(service, *batch)
    call = ("versus", "late=b.jsonl", "A", "--prompts", "prompts.jsonl", "-o", "scores", "--by", "skill")
    command(service, *call, "--html", "page.html")
    status, _, said = command(service, "open", "scores", "-o", "opened.html")

    assert (0, "") == (status, said)
    assert Path("page.html").read_text("utf-8") == Path("opened.html").read_text("utf-8")
    assert '"generators":["late","A"]' in Path("opened.html").read_text("utf-8")


def test_a_comparison_keeps_the_names_in_its_file(command, service, folders):
    """A setting that gets another name has its old one there, so that `open` draws earlier comparisons."""
    command(service, *CALL)
    written = json.loads((folders / "scores" / "comparison.json").read_text("utf-8"))

    assert {"generators", "metrics", "item", "by", "alpha", "bootstrap", "seed", "any_models"} == {*written}


@pytest.mark.parametrize("content", ["[1]", "{", "[" * 100_000])
def test_a_comparison_that_is_no_comparison_is_named(command, service, folders, content):
    """A file of another origin has its name, also one that is nested too deep to be parsed."""
    command(service, *CALL)
    (folders / "scores" / "comparison.json").write_text(content, "utf-8")
    status, _, said = command(service, "open", "scores")

    assert 2 == status
    assert "comparison.json: this is no comparison of `scoregate versus`" in said


def test_names_of_generators_may_be_settings_with_their_values(command, service, folders):
    """A folder such as `cfg=7` names itself, also in `open`; a given name may be such a one, too."""
    for name, of in (("cfg=5", "A"), ("cfg=7", "B")):
        (folders / of).rename(folders / name)
    call = ("versus", "cfg=5", "cfg=7", "--prompts", "prompts.jsonl", "-o", "scores")
    by_path = found_by(command, service, *call)[1]
    named = ("cfg=5=scores/cfg=5.jsonl", "cfg=7=scores/cfg=7.jsonl")
    by_name = found_by(command, service, "versus", *named)[1]
    status, _, said = command(service, "open", "scores", "-o", "opened.html")

    assert by_path == by_name
    assert [("cfg=5", "cfg=7")] == [(pair["a"], pair["b"]) for pair in by_name["pairs"]]
    assert (0, "") == (status, said)
    assert '"generators":["cfg=5","cfg=7"]' in Path("opened.html").read_text("utf-8")
