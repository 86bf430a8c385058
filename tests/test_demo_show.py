"""`make demo`: what the table and the page hold, when it fails, and that the service is stopped."""

import json
import signal
import socket
import subprocess
import sys
from html.parser import HTMLParser
from math import log

import numpy as np
import PIL.Image
import pytest
from starlette.testclient import TestClient

from models.base import Likelihood
from models.demo import draw_samples, serve, show
from models.demo.draw_samples import SAMPLES
from models.demo.language import scene_graph
from models.demo.page import METRICS, Judged, Pair, html
from models.demo.world import draw
from service.app import create_app
from service.settings import load_settings

RIGHT = {sample.right.text for sample in SAMPLES}

FAKE_SERVICE = """
import uvicorn
from service.app import create_app
from service.settings import load_settings
from tests.fakes import FakeClip, FakeQuestionLLM, FakeVqa
settings = load_settings(None)
fakes = {"clip": FakeClip(), "vqa": FakeVqa(), "questions": FakeQuestionLLM()}
uvicorn.run(create_app(settings, fakes), port=settings.server.port, log_config=None)
"""


@pytest.fixture
def judge(fakes):
    """The VQA model says yes to right prompts, but for those in `judge.blind`, and to no question."""

    def answer(call):
        prompt = call.question.partition('"')[2].partition('"')[0]
        yes = 0.9 if prompt in RIGHT - answer.blind else 0.2
        return Likelihood((log(yes), log(0.9)), log(yes), log(1 - yes))

    answer.blind = set()
    fakes["vqa"].answer = answer
    return answer


@pytest.fixture
def client(fakes, tmp_path):
    """The real app around fake models; the questions are those that the demo's LLM is taught."""
    for statement in (s for sample in SAMPLES for s in (sample.right, sample.wrong)):
        graph = [
            {"id": q.id, "kind": q.kind, "text": q.text, "depends_on": q.depends_on}
            for q in scene_graph(statement)
        ]
        fakes["questions"].texts[statement.text] = json.dumps({"questions": graph})
    store = {"SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{tmp_path}/questions.sqlite3"}
    with TestClient(create_app(load_settings(None, store), fakes)) as client:
        yield client


class Reader(HTMLParser):
    """Text, attributes, and tags left open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tags, self.open, self.attributes = "", [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.text += text


# --- samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_a_sample_shows_its_scene_and_its_prompts_are_right_and_wrong(sample):
    """The shipped picture is the scene as drawn, bar JPEG's noise; truth is the language's own."""
    assert sample.right.true_in(sample.scene) is True
    assert sample.wrong.true_in(sample.scene) is False
    with PIL.Image.open(draw_samples.FOLDER / sample.file) as shipped:
        drawn = draw(sample.scene, sample.longer_side)
        assert drawn.size == shipped.size
        assert np.abs(np.asarray(drawn, float) - np.asarray(shipped, float)).mean() < 2


def test_the_shipped_prompts_are_those_of_the_scenes():
    """`prompts.json` names every picture with both prompts; there are at least ten."""
    listed = json.loads((draw_samples.FOLDER / draw_samples.PROMPTS).read_text())

    assert [(s.file, s.right.text, s.wrong.text) for s in SAMPLES] == [tuple(x.values()) for x in listed]
    assert 10 <= len(listed)


# --- scoring and showing ------------------------------------------------------------------------


def test_the_table_holds_every_picture_and_both_prompts(client, judge, capsys, tmp_path):
    """Two lines a picture, all columns aligned; a right prompt that wins gets a tick; exit code 0."""
    pairs = show.scored(client)
    code = show.show(pairs, tmp_path / "demo.html")
    printed = capsys.readouterr().out

    assert 0 == code
    lines = show.table(pairs).splitlines()
    assert 1 + 2 * len(SAMPLES) == len(lines)
    for sample, right, wrong in zip(SAMPLES, lines[1::2], lines[2::2], strict=True):
        assert right.startswith(sample.file)
        assert f"right  {sample.right.text} " in right
        assert f"wrong  {sample.wrong.text} " in wrong
        assert "0.900 ✓" in right
        assert right in printed
        assert wrong in printed
    assert 1 == len({line.index("  right  ") for line in lines[1::2]})
    assert len(lines[0]) == lines[1].rindex(" ")
    assert "\033" not in printed
    assert f"VQAScore tells {len(SAMPLES)} of {len(SAMPLES)} apart, CLIPScore " in printed
    assert "mean nothing beyond this world" in printed
    assert str(tmp_path / "demo.html") in printed


def test_colours_are_for_a_terminal(client, judge):
    """The same table with its marks painted."""
    pairs = show.scored(client)

    painted = show.table(pairs, colour=True)
    assert "\033[32m✓\033[0m" in painted
    for code in ("\033[32m", "\033[31m", "\033[0m"):
        painted = painted.replace(code, "")
    assert show.table(pairs) == painted


def test_a_right_prompt_that_does_not_win_is_named_and_fails_the_demo(client, judge, capsys, tmp_path):
    """A tie under VQAScore is no win, whatever the other metrics say."""
    judge.blind = {SAMPLES[3].right.text}

    code = show.show(show.scored(client), tmp_path / "demo.html")

    printed = capsys.readouterr().out
    assert 1 == code
    assert f'✗ {SAMPLES[3].file}: under VQAScore "{SAMPLES[3].right.text}" does not beat' in printed
    assert f"VQAScore tells {len(SAMPLES) - 1} of {len(SAMPLES)} apart" in printed


def test_a_missing_score_is_a_dash_with_its_reason(client, judge, fakes, capsys, tmp_path):
    """No score tells nothing apart; the page and the text say why there is none."""
    fakes["questions"].texts[SAMPLES[0].right.text] = "no JSON"

    show.show(show.scored(client), tmp_path / "demo.html")

    printed = capsys.readouterr().out
    first = next(line for line in printed.splitlines() if line.startswith(SAMPLES[0].file))
    assert first.endswith("– ✗")
    [reason] = [line for line in printed.splitlines() if line.startswith(f"No DSG for {SAMPLES[0].file}")]
    assert reason.partition('": ')[2] in Reader((tmp_path / "demo.html").read_text()).text


# --- the page -----------------------------------------------------------------------------------


def test_the_page_holds_every_picture_prompt_score_and_question(client, judge, tmp_path):
    """One file: pictures as data, no script, every tag closed."""
    pairs = show.scored(client)
    show.show(pairs, tmp_path / "deep" / "demo.html")
    page = (tmp_path / "deep" / "demo.html").read_text("utf-8")

    read = Reader(page)
    assert [] == read.open
    assert "script" not in read.tags
    sources = [value for name, value in read.attributes if name in ("src", "href")]
    assert len(SAMPLES) == len(sources)
    assert all(source.startswith(("data:image/png;base64,", "data:image/jpeg;base64,")) for source in sources)
    for pair in pairs:
        for judged in (pair.right, pair.wrong):
            assert judged.prompt in read.text
            assert all(f"{judged.scores[metric]:.3f}" in read.text for metric in METRICS)
            assert judged.questions
            for asked in judged.questions:
                assert asked["text"] in read.text
                assert f"{asked['probability']:.3f}" in read.text
    assert "zeroed by 1" in read.text


def test_the_page_escapes_what_it_was_told():
    """Prompts, questions, reasons and file names are text; a zeroed question says by which parent."""
    asked = {"id": 2, "text": "Is <b>it</b>?", "answer": "no", "probability": 0.1, "zeroed_by": [1]}
    judged = Judged("a <script>", {"vqascore": 0.5}, {"dsg": "<i>broken</i>"}, [asked])

    read = Reader(html([Pair('"<x>.png', b"", judged, judged)], "<verdict>", "<caveat>"))

    assert not {"script", "x", "verdict", "caveat"} & set(read.tags)
    for text in ("a <script>", "Is <b>it</b>?", "<i>broken</i>", '"<x>.png', "<verdict>", "zeroed by 1"):
        assert text in read.text


# --- the process --------------------------------------------------------------------------------


def test_a_service_that_does_not_start_is_told_by_its_last_words(capsys, tmp_path):
    """Exit code 2, no page, and the last line of stderr."""
    page = tmp_path / "demo.html"
    words = "import sys; print('first', file=sys.stderr); sys.exit('scoregate-server: no weights')"

    assert 2 == show.main(["--page", str(page)], (sys.executable, "-c", words))

    told = capsys.readouterr().err
    assert "ended with status 1" in told
    assert "scoregate-server: no weights" in told
    assert "first" not in told
    assert not page.exists()


def test_a_taken_port_is_refused_before_another_service_could_answer(capsys):
    """Else the demo would score with whatever runs there."""
    with socket.create_server((serve.HOST, 0)) as other:
        port = other.getsockname()[1]
        assert 2 == show.main(["--port", str(port)], ("false",))

    assert f"port {port} can't be had" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, serve.Failed])
def test_the_service_is_stopped_whatever_happens(error):
    """Ctrl-C and failures end the process too, and signals are handled as before."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(error), serve.running(1, ("sleep", "60")) as process:
        raise error

    assert -signal.SIGTERM == process.returncode
    assert before == signal.getsignal(signal.SIGTERM)


def test_a_sigterm_to_the_demo_stops_the_service():
    """A demo that is ended by a supervisor leaves nothing behind."""
    with pytest.raises(SystemExit), serve.running(1, ("sleep", "60")) as process:
        signal.raise_signal(signal.SIGTERM)

    assert -signal.SIGTERM == process.returncode


@pytest.mark.integration
def test_the_whole_demo_runs_and_leaves_no_service(capfd, tmp_path):
    """Start, ready, score, show, stop; the fakes guess, so that some pair is told wrong."""
    port = serve.free_port(0)

    code = show.main(
        ["--port", str(port), "--page", str(tmp_path / "demo.html")], (sys.executable, "-c", FAKE_SERVICE)
    )

    told = capfd.readouterr()
    assert 1 == code, told.err
    assert "the service is ready after" in told.err
    assert "does not beat" in told.out
    assert all(sample.file in told.out for sample in SAMPLES)
    assert port == serve.free_port(port)


@pytest.mark.integration
def test_the_curl_line_of_make_serve_works_when_pasted(tmp_path):
    """A shell runs it as printed and gets three scores for two prompts."""
    port = serve.free_port(0)
    command = (sys.executable, "-c", FAKE_SERVICE)
    store = f"sqlite:///{tmp_path}/questions.sqlite3"
    with serve.running(port, command, SCOREGATE_CACHE__QUESTIONS=store) as process:
        serve.wait_until_ready(process, port)
        pasted = subprocess.run(["bash", "-c", serve.curl(port)], capture_output=True, check=True, timeout=60)

    results = json.loads(pasted.stdout)["results"]
    assert 2 == len(results)
    assert all(METRICS.keys() == result["scores"].keys() for result in results)
