"""The command as scripts and people run it, against a real service."""

import json
import subprocess

import httpx
import pytest

from tests.process.client.cli.conftest import COMMAND
from tests.support.fake_service import MODELS
from tests.support.pictures import png

PROMPT = ("-p", "a red square")


def test_scores_stand_in_a_table(scoregate, pictures):
    """A row for each picture, a column for each metric."""
    done = scoregate(
        "score", "pictures/red.png", "pictures/green.png", *PROMPT, "-m", "vqascore", "-m", "clipscore"
    )
    head, *rows = done.stdout.splitlines()

    assert 0 == done.returncode, done.stderr
    assert ["PICTURE", "vqascore", "clipscore"] == head.split()
    assert ["pictures/red.png", "pictures/green.png"] == [row.split()[0] for row in rows]
    assert len({tuple(row.split()[1:]) for row in rows}) == 2


@pytest.mark.parametrize("name", ["score", "rank"])
def test_a_url_is_downloaded_by_the_command(scoregate, httpserver, name):
    """The service, which downloads nothing here, gets its bytes."""
    httpserver.expect_request("/a.png").respond_with_data(png())
    httpserver.expect_request("/empty.png").respond_with_data(b"")
    url, empty = (httpserver.url_for(path) for path in ("/a.png", "/empty.png"))
    done, failed = (scoregate(name, each, *PROMPT) for each in (url, empty))

    assert 0 == done.returncode, done.stderr
    assert url in done.stdout
    assert (2, f"scoregate: {empty}: the file is empty\n") == (failed.returncode, failed.stderr)


def test_json_is_what_the_service_answers(scoregate, service, pictures):
    """Field by field, but for the id and the times of the request."""
    done = scoregate(
        "score", "pictures/red.png", *PROMPT, "--explain", "--json", "--option", "vqascore.output=logit"
    )
    request = {
        "items": [{"prompt": PROMPT[1], "image": {"part": "one"}}],
        "metrics": ["vqascore"],
        "explain": True,
        "options": {"vqascore": {"output": "logit"}},
    }
    answer = httpx.post(
        f"{service}/score",
        data={"request": json.dumps(request)},
        files={"one": ("one", (pictures / "red.png").read_bytes())},
        trust_env=False,
    ).json()
    shown = json.loads(done.stdout)

    assert answer.keys() == shown.keys()
    assert answer["models"] == shown["models"]
    [expected], [found] = answer["results"], shown["results"]
    assert expected["scores"] == found["scores"]
    assert expected["details"] == found["details"]


def test_explain_shows_questions_with_answers_and_probabilities(scoregate, pictures):
    """In the order of the set, with the score of each."""
    done = scoregate("score", "pictures/red.png", *PROMPT, "-m", "dsg", "--explain")
    lines = done.stdout.splitlines()
    [head] = [line.split() for line in lines if "QUESTION" in line]

    assert 0 == done.returncode, done.stderr
    assert {"ID", "QUESTION", "ANSWER", "P", "SCORE"} <= set(head)
    assert any(line.split()[:1] == ["1"] and "?" in line for line in lines)


def test_a_missing_score_is_a_dash_a_line_on_stderr_and_status_1(scoregate, pictures):
    """The other pictures have theirs."""
    done = scoregate("score", "pictures/broken.png", "pictures/red.png", *PROMPT)
    _, broken, red = done.stdout.splitlines()

    assert 1 == done.returncode
    assert ["pictures/broken.png", "–"] == broken.split()
    assert float(red.split()[1]) > 0
    assert done.stderr.startswith("pictures/broken.png: no vqascore: image_undecodable: ")
    assert 1 == scoregate("score", "pictures/broken.png", *PROMPT, "--json").returncode


def test_pictures_are_ranked_the_best_first(scoregate, pictures):
    """Within the best two, and by the cheap metric behind those that it cut."""
    files = [f"pictures/{name}.png" for name in ("red", "green", "blue")]
    done = scoregate("rank", *files, *PROMPT, "--top-k", "1", "--cascade", "clipscore:2")
    rows = [row.split() for row in done.stdout.splitlines()[1:]]
    ranking = json.loads(scoregate("rank", *files, *PROMPT, "--top-k", "1", "--json").stdout)["ranking"]

    assert 0 == done.returncode, done.stderr
    assert ["1", "2", "3"] == [row[0] for row in rows]
    assert ["yes", "no", "no"] == [row[3] for row in rows]
    assert ["vqascore", "vqascore", "clipscore"] == [row[4] for row in rows]
    assert [True, False, False] == [entry["accepted"] for entry in ranking]


def test_a_broken_picture_of_a_ranking_is_a_dash_a_line_on_stderr_and_status_1(scoregate, pictures):
    """The last row of the table."""
    done = scoregate("rank", "pictures/broken.png", "pictures/red.png", *PROMPT, "--on-error", "block")

    assert 1 == done.returncode
    assert ["2", "pictures/broken.png", "–", "no", "–"] == done.stdout.splitlines()[-1].split()
    assert done.stderr.startswith("pictures/broken.png: image_undecodable: ")


def test_pictures_are_compared_the_strongest_first(scoregate, pictures):
    """By scores the order is that of `rank`; with --json the answer is the service's."""
    files = [str(pictures / name) for name in ("red.png", "green.png", "blue.png")]
    done = scoregate("compare", *files, *PROMPT)
    answer = json.loads(scoregate("compare", *files, *PROMPT, "--json").stdout)
    ranking = json.loads(scoregate("rank", *files, *PROMPT, "--json").stdout)["ranking"]

    assert 0 == done.returncode
    assert [entry["index"] for entry in ranking] == answer["ranking"]
    shown = [line.split()[1] for line in done.stdout.splitlines()[1:]]
    assert [files[index] for index in answer["ranking"]] == shown


def test_a_pair_without_a_verdict_is_named_on_stderr(scoregate, pictures):
    """With status 1; the other pictures are compared."""
    files = ("pictures/red.png", "pictures/broken.png", "pictures/green.png")
    done = scoregate("compare", *files, *PROMPT)

    assert 1 == done.returncode
    assert 3 == len(done.stdout.splitlines())
    assert "pictures/red.png, pictures/broken.png: image_undecodable" in done.stderr


def test_without_on_error_a_broken_picture_ends_the_ranking(scoregate, pictures):
    """The line names it."""
    done = scoregate("rank", "pictures/red.png", "pictures/broken.png", *PROMPT)

    assert 1 == done.returncode
    assert done.stderr.startswith("scoregate: pictures/broken.png: ")
    assert not done.stdout


def test_questions_are_shown_with_their_kinds_and_what_they_depend_on(scoregate):
    """Below their prompt and the id of their set."""
    done = scoregate("questions", "a red square", "a green circle")
    first, second = done.stdout.split("\n\n")
    [found, _] = json.loads(scoregate("questions", "a red square", "a green circle", "--json").stdout)["sets"]

    assert 0 == done.returncode, done.stderr
    assert ["a red square", found["id"]] == first.splitlines()[:2]
    assert second.startswith("a green circle\nsha256:")
    assert all(question["text"] in first for question in found["questions"])


def test_health_is_ready_with_its_models(scoregate):
    """Status 0; both tables, and both as JSON."""
    done = scoregate("health")
    shown = json.loads(scoregate("health", "--json").stdout)

    assert 0 == done.returncode, done.stderr
    assert done.stdout.startswith("ready\n\nMODEL ")
    assert shown["ready"] is True
    assert MODELS == {model["name"] for model in shown["models"]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("score",), "required: IMAGE"),
        (("score", "pictures/red.png"), "/items/0/prompt: is needed by vqascore"),
        (("score", "none.png", *PROMPT), "scoregate: none.png: No such file or directory"),
        (("score", "empty.png", *PROMPT), "scoregate: empty.png: the file is empty"),
        (("score", "pictures/red.png", "-p", " "), "prompt: is empty"),
        (
            ("score", "pictures/red.png", *PROMPT, "-m", "none"),
            "unknown_metric: /metrics/0: there is no such",
        ),
        (
            ("score", "pictures/red.png", *PROMPT, "--option", "output=1"),
            "it has the form METRIC.OPTION=VALUE",
        ),
        (("score", "pictures/red.png", *PROMPT, "--option", "vqascore.output=5"), "/options/vqascore/output"),
        (("score", "pictures/red.png", *PROMPT, "--options", "[]"), "an object of objects"),
        (("score", "pictures/red.png", *PROMPT, "--timeout", "0"), "a number of seconds above 0"),
        (("score", "pictures/red.png", *PROMPT, "--base-url", "here"), "must begin with http"),
        (("score", "pictures/red.png", *PROMPT, "-o", "vqascore.output=logit"), "unrecognized arguments: -o"),
        (("rank", "pictures/red.png", *PROMPT, "--cascade", "clipscore"), "it has the form METRIC:KEEP"),
        (("rank", "pictures/red.png", *PROMPT, "--threshold", "nan"), "a finite number"),
        (("compare", "pictures/red.png", *PROMPT, "--schedule", "swiss"), "it has the form KIND:N"),
        (("compare", "pictures/red.png", *PROMPT, "-m", "ocr", "--rubric", "preference"), "not allowed with"),
        (("questions", "x", "--style", "none"), "style"),
        (("batch", "none", "-o", "out.jsonl"), "scoregate: none: no such file or folder"),
        (("batch", "pictures", "-o", "out.txt"), "must end in .jsonl, .parquet, .csv"),
        (("batch", "pictures", "-o", "none/out.jsonl"), "there is no folder none"),
        (("batch", "pictures", "-o", "out.jsonl", "-m", "none"), "no metric none; the service has vqascore"),
        (("none",), "invalid choice: 'none'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_call_is_status_2(scoregate, pictures, arguments, said):
    """Nothing is printed that looks like a result, and stderr says what is wrong."""
    (pictures.parent / "empty.png").touch()
    done = scoregate(*arguments)

    assert 2 == done.returncode
    assert not done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_written_by_others_cannot_steer_the_terminal(scoregate, pictures):
    """Escapes in a prompt come back in the question, and in the name of a file in the table."""
    (pictures / "\x1b[31m.png").write_bytes((pictures / "red.png").read_bytes())
    done = scoregate("score", "pictures/\x1b[31m.png", "-p", "red\x1b[2J\u202e", "--explain")

    assert 0 == done.returncode, done.stderr
    assert not set(done.stdout) & set("\x1b\u202e")
    assert "\\x1b[31m.png" in done.stdout
    assert "red\\x1b[2J\\u202e" in done.stdout


def test_a_terminal_of_ascii_gets_escapes_and_no_error(installed, pictures):
    """The dash of a missing score is not ASCII; the process ends with the command's status."""
    done = installed("score", "pictures/broken.png", *PROMPT, PYTHONIOENCODING="ascii")

    assert 1 == done.returncode
    assert "\\u2013" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_reader_who_has_seen_enough_is_no_error(service, pictures, tmp_path):
    """As `| head` does: it closes the pipe before anything is written."""
    command = [str(COMMAND), "score", "pictures/red.png", *PROMPT, "--base-url", service]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()

    assert 0 == process.wait(60)
    assert b"" == said
