"""`scoregate bench run`: a suite of benchmarks in the authors' layouts, with models in this process."""

import json
import re
import shlex
import shutil

import pytest

from scoregate.bench import GENERATORS
from scoregate.runs.results import lines_of
from tests.app.client.test_benchmarks import MODELS, profile, sheet
from tests.support.packages import files_of
from tests.support.pages import section
from tests.support.pictures import png
from tests.unit.client.cli.conftest import run
from tests.unit.client.evaluation.conftest import SMALL

pytestmark = pytest.mark.slow

__all__ = ["profile", "run"]

PAGE = "benchmarks.md"
SUITE = {
    "dpg": {"data": "dpg_bench.csv", "first-row": True},
    "geneval2": {"data": "geneval2.jsonl"},
    "oneig": {"data": "oneig.csv", "questions": "Q_D"},
    "oneig_text": {"data": "text_content.csv"},
    "longtext": {"data": "text_prompts.jsonl"},
    "cvtg2k": {"data": "CVTG-2K"},
    "compbench": {"data": "compbench", "phrases": "phrases.csv"},
    "tiif": {"data": "tiif"},
    "unigen": {"data": "test_prompts_en.csv"},
}
PICTURES = {
    "dpg/0.png": sheet("red", "lime", "blue", "red"),
    "dpg/1.png": sheet("lime", "lime", "blue", "red"),
    "geneval2/0.png": png("red"),
    "geneval2/1.png": png("lime"),
    "oneig/human/A/000.webp": sheet("red", "lime", "blue", "black"),
    "oneig_text/text/A/000.png": sheet("red", "lime", "blue", "white"),
    "longtext/0000_1.png": png("white"),
    "cvtg2k/CVTG/2/0.png": png("red"),
    "tiif/numeracy/A/short_description/0.png": png("red"),
    "unigen/0_0.png": png("red"),
}
ANSWERS = {"compbench.csv": "compbench_answers.csv"}
SCORED = SUITE.keys() - {"compbench"}


def put(path, content):
    """A file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def suite_file(path, suite):
    """A suite as TOML."""
    lines = [
        line
        for name, options in suite.items()
        for line in [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in options.items())]
    ]
    put(path, "\n".join(lines))


@pytest.fixture
def files(tmp_path):
    """The data that the page shows with a suite, and a generator's folder."""
    shutil.copytree(SMALL, tmp_path / "data")
    for name, text in files_of(PAGE).items():
        put(tmp_path / "data" / name, text)
    suite_file(tmp_path / "data" / "mine.toml", SUITE)
    for name, content in PICTURES.items():
        put(tmp_path / "A" / name, content)
    for name, source in ANSWERS.items():
        shutil.copy(tmp_path / "data" / source, tmp_path / "A" / name)
    return tmp_path


COMMAND = ("bench", "run", "A", "--suite", "data/mine.toml", "--out", "report", "--bootstrap", "10")
AGAIN = ("bench", "run", "--again", "report/manifest.json")


def content_of(path):
    return json.loads(path.read_text("utf-8"))


def test_tables_are_those_of_each_benchmark_alone(run, files):
    """With the same options; a second run scores nothing."""
    done = run(*COMMAND)
    assert 0 == done.returncode, done.stderr
    tables = content_of(files / "report" / "tables.json")
    for name, options in SUITE.items():
        source = f"A=A/{name}.csv" if f"{name}.csv" in ANSWERS else f"A=report/results/{name}/{name}-A.jsonl"
        words = [f"data/{options['data']}", source, "--bootstrap", "10", "--json"]
        for option in ("questions", "phrases"):
            words += [f"--{option}", f"data/{options[option]}"] if option in options else []
        alone = json.loads(run("bench", name, *words, *["--first-row"] * (name == "dpg")).stdout)
        assert alone["generators"][0]["mean"] == tables[name]["generators"][0]["mean"]
        assert alone["prompts"] == tables[name]["prompts"]

    assert list(SUITE) == list(tables)
    assert "8 were requested in this run" in done.stderr
    assert len(SCORED) == run(*COMMAND).stderr.count("; 0 were requested in this run")


def test_the_page_needs_no_other_file_and_has_cautions_and_worst_pictures(run, files):
    """In the order of their values; the edit distance is worse where it is larger."""
    run(*COMMAND, "--worst", "2")
    html = (files / "report" / "index.html").read_text("utf-8")
    sections = dict(re.findall(r"<h2[^>]*>(\w+)</h2>(.*?)</section>", html, re.DOTALL))

    assert {*SUITE, "Run"} == sections.keys()
    assert not re.search(r"<script|<link|https?://", html)
    assert 2 == sections["dpg"].count('<img src="data:image/jpeg;base64,')
    assert "in the paper by mPLUG-large" in sections["dpg"]
    values = [float(each) for each in re.findall(r"<dt>ED</dt><dd>([\d.]+)</dd>", sections["oneig_text"])]
    lines = list(lines_of(files / "report" / "results" / "oneig_text" / "oneig_text-A.jsonl"))
    assert 2 == len(values) < len(lines)
    assert values == sorted(values, reverse=True)
    assert "<dt>wanted</dt>" in sections["oneig_text"]
    [line, _] = lines_of(files / "report" / "results" / "geneval2" / "geneval2-A.jsonl")
    [asked] = line["details"]["soft_tifa"]["questions"]
    assert f"<dt>Is there a cup?</dt><dd>{asked['score']:.4f}</dd>" in sections["geneval2"]
    assert "img" not in sections["compbench"]


def test_a_question_of_tiif_is_wrong_by_the_expected_answer(run, files):
    """The card lists the wrong ones alone, though one of them is answered with yes."""
    run(*COMMAND)
    html = (files / "report" / "index.html").read_text("utf-8")
    [card] = re.findall(r"<h2[^>]*>tiif</h2>.*?<figcaption>(.*?)</figcaption>", html, re.DOTALL)
    [line] = lines_of(files / "report" / "results" / "tiif" / "tiif-A.jsonl")
    said = {each["text"]: each["answer"] for each in line["details"]["dsg"]["questions"]}
    expected = {"Are there cups?": "yes", "Is there one cup?": "no"}

    assert dict(re.findall(r"<li>(.*?) <b>(\w+)</b>", card)) == {
        text: answer for text, answer in said.items() if answer != expected[text]
    }


def test_latex_has_all_tables_and_cautions_as_comments(run, files):
    """A row of a table has no caution."""
    run(*COMMAND)
    text = (files / "report" / "tables.tex").read_text("utf-8")
    tables = content_of(files / "report" / "tables.json")
    count = sum(isinstance(rows, list) for content in tables.values() for rows in content.values())

    assert count == text.count(r"\begin{tabular}") == text.count(r"\end{tabular}")
    rows = [line for line in text.splitlines() if not line.startswith("%")]
    assert not [line for line in rows if "paper" in line]
    assert "% caution of A: 2 of 1065 prompts" in text


def test_the_manifest_has_digests_and_models(run, files):
    """Of data, of further files, and of pictures."""
    run(*COMMAND)
    manifest = content_of(files / "report" / "manifest.json")
    facts = manifest["facts"]

    assert SUITE == manifest["benchmarks"]
    assert "scoregate bench run A=A --suite data/mine.toml --data data --out report" in manifest["command"]
    assert {"vqa": "fake-vqa@1", "clip": "fake-clip@1"}.items() <= {
        name: each["model"] for name, each in facts["models"].items()
    }.items()
    assert {"data", "questions"} == facts["benchmarks"]["oneig"]["data"].keys()
    digests = [each for of in facts["benchmarks"].values() for one in of.values() for each in one.values()]
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in digests)
    assert SUITE.keys() == facts["benchmarks"].keys()


def test_the_run_of_a_manifest_is_repeated(run, files):
    """Everything is scored anew, also when the report was moved with its data and pictures."""
    run(*COMMAND)
    (files / "moved").mkdir()
    for name in ("A", "data", "report"):
        (files / name).rename(files / "moved" / name)
    done = run(*(each.replace("report", "moved/report") for each in AGAIN))

    assert (0, True) == (done.returncode, done.stdout.endswith("figures were compared, 0 differ\n"))
    assert "PROVENANCE" not in done.stdout
    assert len(SCORED) == len(re.findall(r"; [1-9]\d* were requested", done.stderr))


def test_what_differs_from_a_manifest_is_printed(run, files):
    """By the digest of the pictures, and by each figure; the second report is kept where it is named."""
    run(*COMMAND)
    (files / "A" / "geneval2" / "0.png").write_bytes(png("blue"))
    shutil.rmtree(files / "A" / "longtext")
    done = run(*AGAIN, "--out", "second")
    facts, figures = done.stdout.split("\n\n")[:2]

    assert 1 == done.returncode
    assert re.search(r"^benchmarks\.geneval2\.pictures\.A +[0-9a-f]{64} +[0-9a-f]{64}$", facts, re.MULTILINE)
    assert {"geneval2", "longtext"} == {line.split(" / ")[0] for line in figures.splitlines()[1:]}
    assert "dpg" not in facts
    assert {"index.html", "manifest.json"} <= {path.name for path in (files / "second").iterdir()}
    assert 0 == run(*AGAIN, "--tolerance", "1", "--out", "third").stdout.count("geneval2 / ")


def test_a_second_report_in_the_folder_of_a_first_one_is_refused(run, files):
    """It would take the first one's scores."""
    run(*COMMAND)
    done = run(*AGAIN, "--out", "report")

    assert (2, True) == (done.returncode, "--out report: --again scores anew" in done.stderr)


def test_what_cannot_be_scored_is_named(run, files, monkeypatch):
    """Data or pictures that are missing, and metrics that are not served."""
    (files / "few.toml").write_text(MODELS.replace('[models.ocr]\nfamily = "fake"\n', ""), "utf-8")
    monkeypatch.setenv("SCOREGATE_LOCAL", str(files / "few.toml"))
    shutil.rmtree(files / "data" / "Q_D")
    shutil.rmtree(files / "A" / "geneval2")
    done = run(*COMMAND)
    html = (files / "report" / "index.html").read_text("utf-8")

    assert 0 == done.returncode
    assert ["dpg", "compbench", "tiif", "unigen"] == list(content_of(files / "report" / "tables.json"))
    for name, why in {
        "oneig, all": "no data: ",
        "geneval2, A": "no folder of pictures, and no file of answers",
        "longtext, A": "not served: ocr",
        "cvtg2k, A": "not served: ocr",
    }.items():
        assert f"{name}: left out: {why}" in done.stderr
        assert f'<th scope="row">{name.partition(",")[0]}</th>' in html.partition("</header>")[0]
        assert why in html


def test_a_benchmark_that_fails_leaves_the_others(run, files):
    """The page has them, and the reason; the status is 1."""
    (files / "data" / "dpg_bench.csv").write_text("item_id,text\n0,a cup\n", "utf-8")
    put(files / "A" / "longtext" / "1_1.png", b"")
    (files / "A" / "longtext" / "0000_1.png").unlink()
    done = run(*COMMAND)

    assert 1 == done.returncode
    assert SUITE.keys() - {"dpg", "longtext"} == content_of(files / "report" / "tables.json").keys()
    assert re.search("dpg, all: left out: failed: .*dpg_bench.csv, row 1: no column", done.stderr)
    assert "no picture has the name of an item" in (files / "report" / "index.html").read_text("utf-8")


def test_a_report_without_a_name_has_that_of_the_suite(run, files):
    """In the current folder, where the data of a built-in suite are by default, too."""
    shutil.copy(files / "data" / "geneval2.jsonl", files / "geneval2_data.jsonl")
    done = run("bench", "run", "A", "--suite", "t2i", "--bootstrap", "0")

    assert 0 == done.returncode, done.stderr
    assert ["geneval2"] == list(content_of(files / "report-t2i" / "tables.json"))
    assert "--out report-t2i" in content_of(files / "report-t2i" / "manifest.json")["command"]


def test_answers_alone_need_no_service(run, files, monkeypatch):
    """Two generators are compared; one without answers is named."""
    monkeypatch.setenv("SCOREGATE_LOCAL", "no-such-model")
    put(files / "B" / "geneval2.json", (files / "data" / "geneval2_scores.json").read_bytes())
    put(files / "C" / "geneval2.json", "[[0.1], [0.2, 0.3, 0.4]]")
    suite_file(files / "data" / "mine.toml", {"geneval2": SUITE["geneval2"], "unigen": SUITE["unigen"]})
    done = run("bench", "run", "B", "new=C", *COMMAND[3:])
    differences = content_of(files / "report" / "tables.json")["geneval2"]["differences"]

    assert (0, True) == (done.returncode, "unigen, new: left out: no folder" in done.stderr)
    assert all({"B", "new"} <= set(map(str, each.values())) for each in differences)
    assert differences
    assert 0 == run(*AGAIN).returncode
    (files / "B" / "geneval2.json").rename(files / "B" / "geneval2.txt")
    put(files / "B" / "geneval2.csv", "")
    several = run("bench", "run", "B", *COMMAND[3:])
    assert (2, True) == (several.returncode, "several files of answers: geneval2.csv" in several.stderr)
    (files / "B" / "geneval2.csv").unlink()
    (files / "B" / "geneval2.txt").unlink()
    none = run("bench", "run", "B", *COMMAND[3:])
    assert (1, True) == (none.returncode, "no benchmark of the suite has figures" in none.stderr)


def test_the_commands_of_the_page_run(run, files):
    """Its suite, by the built-in one's command."""
    put(files / "A" / "dpg-direct" / "0.png", PICTURES["dpg/0.png"])
    (files / "profile.toml").write_text(MODELS, "utf-8")
    (files / "pictures").mkdir()
    (files / "A").rename(files / "pictures" / "A")
    shutil.copytree(files / "pictures" / "A", files / "pictures" / "B")
    (files / "pictures" / "B" / "oneig" / "human" / "A").rename(files / "pictures" / "B/oneig/human/B")
    [block] = re.findall(r"^```\n(.*?)^```$", section(PAGE, "## One report"), re.DOTALL | re.MULTILINE)
    commands = [shlex.split(line)[1:] for line in block.splitlines()]
    done = run(*(each.replace("t2i", "data/suite.toml") for each in commands[0]))
    again = run(*commands[1])

    assert (0, 0) == (done.returncode, again.returncode), done.stderr + again.stderr
    tables = content_of(files / "report" / "tables.json")
    assert ["dpg", "dpg-direct", "oneig", "unigen"] == list(tables)
    assert "questions as '{} Answer yes or no.'" in tables["oneig"]["generators"][0]["caution"]
    assert ", 0 differ" in again.stdout


def test_the_built_in_suite_has_benchmarks_that_exist(run, files):
    """Without their data all are named, and nothing is scored; one is there with long prompts, too."""
    (files / "empty").mkdir()
    done = run("bench", "run", "A", "--suite", "t2i", "--data", "empty", "--out", "report")
    names = re.findall(r"^(\w+), all: left out: no data: .*/empty/", done.stderr, re.MULTILINE)

    assert 1 == done.returncode
    assert {"dpg", "geneval2", "oneig", "tiif", "unigen_long"} <= {*names}
    assert {*names} - {"unigen_long"} <= GENERATORS.keys()


@pytest.mark.parametrize(
    ("suite", "line"),
    [
        ("x = 1", "x is no table"),
        ("", "no table of a benchmark"),
        ("[dpg", "not TOML"),
        ('["../dpg"]\nbenchmark = "dpg"\ndata = "x"', "[../dpg] is no name of a folder"),
        ('[ts2]\ndata = "x"', "[ts2]: no benchmark ts2; there are compbench"),
        ("[dpg]\nfirst-row = true", "[dpg]: data is not the path"),
        ('[dpg]\ndata = "x"\nout = "y"', "[dpg]: out is given to the command"),
        ('[dpg]\ndata = "x"\nseed = 1', "[dpg]: seed is given to the command"),
        (
            '[dpg]\ndata = "x"\nfirst = true',
            "[dpg]: first: no such setting; did you mean first_row? there are",
        ),
        ('[dpg]\ndata = "x"\ndependencies = "all"', "[dpg]: dependencies: 'all': choose from"),
        ('[geneval2]\ndata = "x"\ngrid = "2x2"', "[geneval2]: grid: no such setting"),
        ('[dpg]\ndata = "x"\noptions = 3', "[dpg]: an object of objects"),
    ],
)
def test_a_suite_that_is_not_valid_is_refused(run, files, suite, line):
    """Before anything is scored, with the file and the entry."""
    (files / "data" / "mine.toml").write_text(suite, "utf-8")
    done = run(*COMMAND)

    assert (2, False) == (done.returncode, (files / "report").exists())
    assert line in done.stderr
    assert "mine.toml: " in done.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--suite", "t3i", "A", "--out", "x"), "--suite t3i: no such file, and the built-in suites are t2i"),
        (("--suite", "t2i", "--out", "x"), "name a generator"),
        (("--suite", "t2i", "A", "A", "--out", "x"), "are both named A: name one as NAME=PATH"),
        (("--suite", "t2i", "B", "--out", "x"), "B: not FOLDER or NAME=FOLDER, a folder that exists"),
        (
            ("--suite", "t2i", "a/b=A", "--out", "x"),
            "a/b=A: the name of a generator is part of the name of a file",
        ),
        (("--again", "data/geneval2_scores.json"), "this is no manifest of `scoregate bench run`"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(run, files, words, line):
    """In one line that names them."""
    done = run("bench", "run", *words)

    assert (2, True) == (done.returncode, line in done.stderr)


@pytest.mark.parametrize("part", ["benchmarks", "generators", "settings", "facts", "data"])
def test_a_manifest_without_a_part_is_refused(run, files, part):
    """And is not scored by."""
    run(*COMMAND)
    manifest = content_of(files / "report" / "manifest.json")
    put(files / "report" / "manifest.json", json.dumps({**manifest, part: None}))
    done = run(*AGAIN)

    assert (2, True) == (done.returncode, "report/manifest.json" in done.stderr)
