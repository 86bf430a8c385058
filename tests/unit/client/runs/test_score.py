"""`scoregate.runs.score`: a data set scored from a program, as by `scoregate batch`."""

import json
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx
import pytest

from scoregate import Client, local, runs
from scoregate.cli.arguments import CommandParser, add_service, settings_of
from scoregate.cli.batch import add_arguments
from scoregate.cli.main import main
from scoregate.errors import InputError
from scoregate.report.dataset import PageSettings, report
from scoregate.runs import batch
from scoregate.runs.batch_settings import Batch
from tests.support.paths import ROOT
from tests.support.pictures import png
from tests.support.shards import tar_of
from tests.unit.client.cli.served import Service, lines, metric

ROWS = 5


@pytest.fixture
def service():
    """A service of one metric."""
    return Service("clip@1", metrics={"vqascore": metric()})


@pytest.fixture
def client(service):
    """A client of the service."""
    with Client("http://test", transport=httpx.MockTransport(service), retries=0) as client:
        yield client


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a picture and a table of rows with blank lines between them."""
    monkeypatch.chdir(tmp_path)
    Path("p.png").write_bytes(png())
    rows = [json.dumps({"image": "p.png", "text": f"prompt {n}"}) for n in range(ROWS)]
    Path("rows.jsonl").write_text("\n\n".join(rows), "utf-8")
    return tmp_path


def test_a_client_scores_a_data_set_into_a_file(folder, client, service, capsys):
    """Settings are those of the command by their names, and nothing is printed."""
    outcome = runs.score("rows.jsonl", "out.jsonl", client=client, prompt_column="text")

    assert (ROWS, True) == (outcome.requested, outcome.complete)
    assert "5 of 5 rows have all scores" == outcome.summary.text
    assert [*outcome.lines()] == lines(Path("out.jsonl"))
    assert [1, 3, 5, 7, 9] == [line["row"] for line in outcome.lines()]
    assert ("", "") == capsys.readouterr()
    assert client.models()


def test_the_next_call_continues(folder, client, service):
    """As the command does, whose file it may be; a row that has its scores is not sent."""
    runs.score("rows.jsonl", "out.parquet", client=client, prompt_column="text")
    service.sent.clear()
    again = runs.score("rows.jsonl", "out.parquet", client=client, prompt_column="text")

    assert (0, []) == (again.requested, service.sent)
    assert ROWS == len([*again.lines()])


def test_shards_have_files_in_a_folder_and_one_series_of_lines(folder, client):
    """The lines are numbered over all files."""
    for number in range(2):
        members = {"1.png": png(), "1.txt": b"one", "2.png": png(), "2.txt": b"two"}
        tar_of(folder / f"s-{number}.tar", members)
    outcome = runs.score("s-{0..1}.tar", "out", client=client)

    assert ["out/s-0.parquet", "out/s-1.parquet"] == [*map(str, outcome.files)]
    assert [(1, "s-0.tar/1"), (2, "s-0.tar/2"), (3, "s-1.tar/1"), (4, "s-1.tar/2")] == [
        (line["row"], line["image"]) for line in outcome.lines()
    ]


def test_a_filter_is_a_text(folder, client):
    """Its file has the names of the rows that pass."""
    runs.score("rows.jsonl", "out.jsonl", client=client, prompt_column="text", filter="vqascore > 0.4")

    assert ["p.png"] * ROWS == Path("out.jsonl.kept.txt").read_text("utf-8").splitlines()
    with pytest.raises(ValueError, match="vqascore >"):
        runs.score("rows.jsonl", "out.jsonl", client=client, prompt_column="text", filter="vqascore >")


def test_a_page_has_the_worst_pictures(folder, client):
    """As of the command, at most as many as are wanted."""
    runs.score("rows.jsonl", "out.jsonl", client=client, prompt_column="text", html="out.html", html_images=2)
    page = Path("out.html").read_text("utf-8")

    assert "The 2 worst of 5" in page
    assert 2 == page.count("<figure>")


@pytest.mark.parametrize(
    ("paths", "rows"), [(["rows.jsonl"], ROWS), (["A=rows.jsonl", "B=rows.jsonl"], 2 * ROWS)]
)
def test_a_report_is_of_a_data_set_or_of_generators(folder, client, paths, rows):
    """By one function, which returns the summary of the scores."""
    dataset, *more = map(Path, paths)
    settings = PageSettings(dataset=dataset, more=more, prompt_column="text", out=Path("page.html"))
    summary = report(settings, local.Service.of(client))

    assert (rows, 0) == (summary.rows, summary.incomplete)
    assert "prompt 4" in Path("page.html").read_text("utf-8")


def test_a_client_is_strict_or_not_by_itself(folder, client):
    """The setting would not reach it; a client and other models are one too many."""
    for more in ({"strict": True}, {"local": "demo"}):
        with pytest.raises(
            InputError, match="a client has its own models and policies, and is strict or not"
        ):
            runs.score("rows.jsonl", "out.jsonl", client=client, **more)


def test_an_unknown_setting_is_an_error(folder, client):
    """A misspelt one would be silently the default."""
    with pytest.raises(InputError, match="promt_column: no such setting; did you mean prompt_column"):
        runs.score("rows.jsonl", "out.jsonl", client=client, promt_column="text")


# Of each option of `batch`, words of the command and the argument of the function that stands for them.
ARGUMENTS = {
    "dataset": (["rows.jsonl"], {}),
    "more": (["more.tar"], {"more": ["more.tar"]}),
    "out": ([], {}),
    "metrics": (["-m", "ocr,dsg"], {"metrics": "ocr,dsg"}),
    "image_column": (["--image-column", "x"], {"image_column": "x"}),
    "prompt_column": (["--prompt-column", "x"], {"prompt_column": "x"}),
    "prompt": (["-p", "x"], {"prompt": "x"}),
    "prompts": (["--prompts", "x.csv"], {"prompts": "x.csv"}),
    "prompt_from_name": (["--prompt-from-name", "x"], {"prompt_from_name": "x"}),
    "no_prompt": (["--no-prompt"], {"no_prompt": True}),
    "image_part": (["--image-part", "x"], {"image_part": "x"}),
    "frames_column": (["--frames-column", "x"], {"frames_column": "x"}),
    "metrics_column": (["--metrics-column", "x"], {"metrics_column": "x"}),
    "option_column": (["--option-column", "ocr.text=x"], {"option_column": "ocr.text=x"}),
    "matrix": (["--matrix"], {"matrix": True}),
    "sweep": (["--sweep", "ocr.text=x"], {"sweep": ["ocr.text=x"]}),
    "grid": (["--grid", "2x2"], {"grid": "2x2"}),
    "any_path": (["--any-path"], {"any_path": True}),
    "options": (["--option", "ocr.text=x"], {"options": {"ocr": {"text": "x"}}}),
    "orient": (["--orient", "exif"], {"orient": "exif"}),
    "strict": (["--strict"], {"strict": True}),
    "allow_model_change": (["--allow-model-change"], {"allow_model_change": True}),
    "explain": (["--explain"], {"explain": True}),
    "concurrency": (["--concurrency", "2"], {"concurrency": 2}),
    "retry": (["--retry"], {"retry": True}),
    "policy": (["--policy", "x"], {"policy": "x"}),
    "policy_file": (["--policy-file", "x.toml"], {"policy_file": "x.toml"}),
    "filter": (["--filter", "vqascore > 0"], {"filter": "vqascore > 0"}),
    "kept_shards": (["--kept-shards", "x"], {"kept_shards": "x"}),
    "ray": (["--ray", "auto"], {"ray": "auto"}),
    "actors": (["--actors", "1:4"], {"actors": "1:4"}),
    "actor_gpus": (["--actor-gpus", "0.5"], {"actor_gpus": 0.5}),
    "html": (["--html", "x.html"], {"html": "x.html"}),
    "html_images": (["--html-pictures", "3"], {"html_images": 3}),
}
OF_THE_COMMAND = {"quiet"}
OF_THE_SERVICE = {"base_url", "api_key", "timeout"}
RENAMED = {"metric": "metrics", "option": "options", "html_pictures": "html_images"}


@pytest.fixture
def parser():
    """The parser of `scoregate batch`."""
    parser = CommandParser(prog="batch")
    add_arguments(parser)
    add_service(parser)
    return parser


def test_the_options_of_the_command_are_arguments(parser):
    """With `_` for hyphens, but for those that the page excludes or renames."""
    page = (ROOT / "docs/guides/score-a-folder.md").read_text("utf-8")
    flags = [flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")]
    named = {flag.removeprefix("--").replace("-", "_") for flag in flags} - {"help", "version", "local"}
    others = named - ARGUMENTS.keys()

    assert OF_THE_COMMAND | OF_THE_SERVICE | RENAMED.keys() == others
    assert {*ARGUMENTS} - named == {"dataset", "more", *RENAMED.values()} - named
    assert [] == [name for name in others if f"`--{name.replace('_', '-')}`" not in page]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_is_what_the_option_of_the_command_is(name, parser, monkeypatch):
    """The run has the same settings."""
    made, (words, more) = [], ARGUMENTS[name]
    monkeypatch.setattr(batch, "score_batch", lambda *given: made.append(given[0]) or Outcome())
    monkeypatch.setattr(batch, "write_filtered", lambda *_: True)
    runs.score("rows.jsonl", "out.jsonl", **more)
    dataset = [] if name == "dataset" else ["rows.jsonl"]
    arguments = parser.parse_args([*dataset, *words, "-o", "out.jsonl"])

    assert [settings_of(Batch, arguments)] == made


@dataclass
class Outcome:
    """Of a run that was not started."""


# Settings of `runs.score`, words of the command, and the error of each.
REFUSED = [
    (
        {"ray": "auto"},
        "`ray`: the data set has to be in shards, and the results in a folder",
        ["--ray", "auto"],
        "--ray: the data set has to be in shards, and the results in a folder",
    ),
    (
        {"image_column": "imag"},
        "no column 'imag'; there are image, text: image_column='image'",
        ["--image-column", "imag"],
        "no column 'imag'; there are image, text: --image-column image",
    ),
    (
        {"prompt_column": "text", "metrics": "ocr", "option_column": "ocr.text=texts"},
        "no column 'texts'; there are image, text: option_column='ocr.text=NAME'",
        ["--prompt-column", "text", "-m", "ocr", "--option-column", "ocr.text=texts"],
        "no column 'texts'; there are image, text: --option-column ocr.text=NAME",
    ),
    (
        {"policy_file": "p.toml"},
        "`policy_file` needs policy='NAME'",
        ["--policy-file", "p.toml"],
        "--policy-file needs --policy NAME",
    ),
    (
        {"prompt_column": "text", "filter": "ocr > 1"},
        "ocr is not scored, see `metrics`",
        ["--prompt-column", "text", "--filter", "ocr > 1"],
        "ocr is not scored, see --metric",
    ),
    (
        {"grid": "2y2"},
        "grid='2y2': it has the form ROWSxCOLUMNS, such as 2x2",
        ["--grid", "2y2"],
        "--grid 2y2: it has the form ROWSxCOLUMNS, such as 2x2",
    ),
]


@pytest.mark.parametrize(("more", "said", "words", "printed"), REFUSED)
def test_an_error_names_the_argument_and_the_command_its_flag(folder, capsys, more, said, words, printed):
    """In the form that the caller has to write."""
    with pytest.raises(InputError) as caught:
        runs.score("rows.jsonl", "out.jsonl", **more)
    status = main(["batch", "rows.jsonl", "-o", "out.jsonl", *words])

    assert str(caught.value).endswith(said)
    assert (2, True) == (status, capsys.readouterr().err.rstrip().endswith(printed))
