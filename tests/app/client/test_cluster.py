"""`scoregate batch --ray` with the actors called in this process; tests/external/ray has a cluster."""

import json
import re
import shlex
from pathlib import Path

import pytest

from scoregate.errors import InputError, NoResultError
from scoregate.runs import cluster
from scoregate.runs.pool import SHARD_ATTEMPTS, WorkerSetup, attempt
from scoregate.runs.results import lines_of
from tests.support.pages import fences
from tests.support.paths import ROOT
from tests.support.pictures import png
from tests.support.ray_here import ray_here
from tests.support.shards import tar_of
from tests.unit.client.cli.conftest import run

pytestmark = pytest.mark.slow

__all__ = ["run"]

PROFILE = str(ROOT / "loadtest" / "fake.toml")
PAGE = "guides/billion-on-a-cluster.md"
LOCAL = ("--local", PROFILE)
ON_RAY = (*LOCAL, "--ray", "auto")
PINNED = {"prompt": "a red square", "style": "dsg", "questions": [{"id": 1, "text": "Is it red?"}]}


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """A store of question sets for what does not run on the cluster."""
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")


@pytest.fixture
def pool(monkeypatch):
    """Ray in this process; its `calls` are the batches by class or function."""
    return ray_here(monkeypatch)


@pytest.fixture
def shards(tmp_path):
    """Two shards of three rows and two prompts; one row is broken."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for number in range(2):
        members = {"none.txt": b"no picture"} if number else {}
        for key, prompt in enumerate(("a red square", "a red square", "a blue dot")[number:]):
            members |= {f"{key}.png": png(("red", "blue", "lime")[key]), f"{key}.txt": prompt.encode()}
        tar_of(folder / f"{number}.tar", members)
    return folder


def rows_in(folder):
    """The lines of each shard's file in *folder*."""
    return {file.name: [*lines_of(file)] for file in sorted(Path(folder).glob("*.parquet"))}


def written(folder, style="dsg"):
    """The question sets in the folder of results, by prompt."""
    lines = Path(folder, "questions", f"{style}.jsonl").read_text("utf-8").splitlines()
    found = {content["prompt"]: content for content in map(json.loads, lines)}
    assert len(lines) == len(found)
    return found


def test_the_files_are_those_of_one_process(run, shards, pool):
    """Row by row, errors among them; the next run checks the files and scores nothing."""
    metrics = ("-m", "vqascore", "-m", "dsg")
    here = run("batch", "shards", "-o", "here", *metrics, *LOCAL)
    done = run("batch", "shards", "-o", "there", *metrics, *ON_RAY)
    again = run("batch", "shards", "-o", "there", *metrics, *ON_RAY)

    assert [1, 1, 1] == [each.returncode for each in (here, done, again)]
    assert rows_in("here") == rows_in("there")
    assert {"0.parquet": 3, "1.parquet": 3} == {name: len(rows) for name, rows in rows_in("there").items()}
    here_said, there_said = (each.stderr.splitlines()[-6:-2] for each in (here, done))
    assert here_said == there_said  # what was not read, the figures and the summary
    assert "5 of 6 rows have all scores; 5 were requested in this run" in done.stderr
    assert "5 of 6 rows have all scores; 0 were requested in this run" in again.stderr


def test_a_distinct_prompt_gets_one_set_of_questions_before_any_row_is_scored(run, shards, pool):
    """In a file of its style, whose sets the rows name; the count is printed."""
    done = run("batch", "shards", "-o", "out", "-m", "dsg", *ON_RAY)
    ids = {
        row["prompt"]: row["question_sets"]["dsg"]
        for rows in rows_in("out").values()
        for row in rows
        if row["scores"]
    }
    order = [of for of, _ in pool.calls]

    assert "dsg: 2 distinct prompts in 5 rows, 2 of them without questions\n" in done.stderr
    assert "2 question sets were written to out/questions\n" in done.stderr
    assert {prompt: content["id"] for prompt, content in written("out").items()} == ids
    assert order == sorted(order, key=[cluster.prompts_in, cluster.QuestionActor, cluster.ShardActor].index)
    [asked] = [rows for of, rows in pool.calls if of is cluster.QuestionActor]
    assert ["a red square", "a blue dot"] == [row["prompt"] for row in asked]


def test_metrics_without_questions_have_no_pass_over_the_prompts(run, shards, pool):
    """Each shard is read once."""
    run("batch", "shards", "-o", "out", "-m", "vqascore", *ON_RAY)

    assert {cluster.ShardActor} == {of for of, _ in pool.calls}
    assert not Path("out", "questions").exists()


def test_a_run_writes_the_sets_that_a_stopped_one_lacks(run, shards, pool):
    """A last line that was not written to its end is cut off; finished shards are not read."""
    run("batch", "shards/{0..0}.tar", "-o", "out", "-m", "dsg", *ON_RAY)
    file = Path("out", "questions", "dsg.jsonl")
    [first, second] = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + second[:20])
    pool.calls.clear()
    done = run("batch", "shards", "-o", "out", "-m", "dsg", *ON_RAY)

    assert "dsg: 2 distinct prompts in 2 rows, 1 of them without questions\n" in done.stderr
    assert [first, second] == file.read_bytes().splitlines(keepends=True)
    assert [[{"shard": "shards/1.tar"}]] == [rows for of, rows in pool.calls if of is cluster.prompts_in]


def test_sets_in_the_folder_of_questions_are_used(run, shards, pool):
    """An exported file there is imported by every actor, also by those that write sets."""
    folder = Path("out", "questions")
    folder.mkdir(parents=True)
    (folder / "mine.jsonl").write_text(json.dumps(PINNED) + "\n", "utf-8")
    run("batch", "shards", "-o", "out", "-m", "dsg", *ON_RAY)
    used = {
        row["question_sets"]["dsg"]
        for row in rows_in("out")["0.parquet"]
        if row["prompt"] == PINNED["prompt"]
    }

    assert ["Is it red?"] == [each["text"] for each in written("out")[PINNED["prompt"]]["questions"]]
    assert {written("out")[PINNED["prompt"]]["id"]} == used


def test_an_invalid_set_ends_the_run(run, shards, pool):
    """With the name of the file."""
    folder = Path("out", "questions")
    folder.mkdir(parents=True)
    (folder / "mine.jsonl").write_text(json.dumps(PINNED | {"questions": []}) + "\n", "utf-8")
    done = run("batch", "shards", "-o", "out", "-m", "dsg", *ON_RAY)

    assert 2 == done.returncode
    assert "out/questions/mine.jsonl: 1 question sets are not valid" in done.stderr


def test_a_prompt_without_questions_is_an_error_of_its_rows(run, shards, pool):
    """The others are scored; the reason of the first is printed."""
    tar_of(shards / "2.tar", {"0.png": png(), "0.txt": b"sky"})
    done = run("batch", "shards", "-o", "out", "-m", "dsg", *ON_RAY)
    [row] = rows_in("out")["2.parquet"]

    assert "; 1 could not be written (first: no_questions: " in done.stderr
    assert "no_questions" == row["errors"]["dsg"]["code"]
    assert all(row["scores"] for row in rows_in("out")["0.parquet"])


def test_parts_of_a_composite_have_their_sets_written_too(run, shards, pool, tmp_path):
    """With the options that the profile gives the part."""
    profile = tmp_path / "mix.toml"
    table = "\n[composites.mix]\ndsg = { weight = 1 }\nvqascore = { weight = 1 }\n"
    profile.write_text(Path(PROFILE).read_text("utf-8") + table, "utf-8")
    done = run("batch", "shards", "-o", "out", "-m", "mix", "--local", "mix.toml", "--ray", "auto")

    assert "dsg: 2 distinct prompts in 5 rows" in done.stderr
    assert {row["question_sets"]["mix.dsg"] for row in rows_in("out")["0.parquet"]} == {
        content["id"] for content in written("out").values()
    }


def test_sets_are_written_with_the_options_of_the_run_and_of_the_rows(run, tmp_path, pool):
    """They are those that the same rows have in one process."""
    fields = {"prompt": "a red square", "dsg.generation": "three_calls"}
    tar_of(tmp_path / "0.tar", {"0.png": png(), "0.json": json.dumps(fields).encode()})
    tar_of(tmp_path / "1.tar", {"0.png": png(), "0.txt": b"a red square"})
    generation = ("--option", "dsg.generation=three_calls")
    for shard, options in (("0.tar", ()), ("1.tar", generation)):
        out = f"out-{shard[0]}"
        run("batch", shard, "-o", f"here-{shard[0]}", "-m", "dsg", *options, *LOCAL)
        run("batch", shard, "-o", out, "-m", "dsg", *options, *ON_RAY)
        [asked] = [rows for of, rows in pool.calls if of is cluster.QuestionActor]
        pool.calls.clear()

        assert {"generation": "three_calls"} == json.loads(asked[0]["options"])
        assert rows_in(f"here-{shard[0]}") == rows_in(out)


def test_metrics_of_one_style_share_its_sets(run, shards, pool):
    """A row counts once."""
    done = run("batch", "shards", "-o", "out", "-m", "tifa", "-m", "soft_tifa", *ON_RAY)

    assert "tifa: 2 distinct prompts in 5 rows, 2 of them without questions\n" in done.stderr
    assert 2 == len(written("out", "tifa"))


def test_options_of_rows_that_change_the_questions_end_the_run(run, tmp_path, pool):
    """A prompt has one set of a style there; rows that fix their set have no say."""
    options = [{}, {"dsg": {"generation": "three_calls"}}]
    for number, own in enumerate(options):
        fields = {"prompt": "a red square", "options": own}
        tar_of(tmp_path / f"{number}.tar", {"0.png": png(), "0.json": json.dumps(fields).encode()})
    done = run("batch", "{0..1}.tar", "-o", "out", "-m", "dsg", *ON_RAY)

    assert 2 == done.returncode
    assert "the options of dsg write other questions about a prompt" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-o", "out", "--ray", "auto"), "--ray needs --local NAME"),
        (
            ("-o", "out.jsonl", *ON_RAY),
            "--ray: the data set has to be in shards, and the results in a folder",
        ),
        (("-o", "out", *ON_RAY, "--actors", "0"), "a number from 1, or two such as 1:64"),
        (("-o", "out", *ON_RAY, "--actors", "3:2"), "a number from 1, or two such as 1:64"),
        (("-o", "out", *ON_RAY, "--actor-gpus", "-1"), "a number from 0"),
    ],
)
def test_arguments_that_do_not_fit_are_one_line(run, shards, arguments, why):
    """Nothing is started."""
    done = run("batch", "shards", "-m", "vqascore", *arguments)

    assert 2 == done.returncode
    assert why in done.stderr


def test_a_cluster_that_is_not_there_is_one_line(run, shards):
    """With the status of a service that may be there later."""
    done = run("batch", "shards", "-o", "out", "-m", "vqascore", *LOCAL, "--ray", "127.0.0.1:1")

    assert 3 == done.returncode
    assert "--ray: 127.0.0.1:1: nothing answers there" in done.stderr


def test_a_node_without_the_folders_is_named(tmp_path):
    """Else each of its shards would be a row with an error."""
    setup = WorkerSetup(tmp_path / "none", [PROFILE], "run")
    shard = tar_of(tmp_path / "0.tar", {})
    with pytest.raises(InputError, match=r"has no folder .*none: run the command in a folder that all nodes"):
        setup.enter()
    with pytest.raises(InputError, match=r"has no .*1\.tar: data set and results"):
        setup.check(tmp_path / "1.tar", tmp_path)
    with pytest.raises(InputError, match=r"has no .*none: data set and results"):
        setup.check(shard, tmp_path / "none")
    setup.check(shard, tmp_path)


def test_results_that_stay_on_another_node_end_the_run(run, shards, pool):
    """The folder is there on both, and is not the same one."""

    def lost(of, found):
        if of is cluster.ShardActor:
            Path(found["file"][0]).unlink()

    pool.done = lost
    done = run("batch", "shards", "-o", "out", "-m", "vqascore", *ON_RAY)

    assert 2 == done.returncode
    assert "-o has to be in a folder that all nodes share" in done.stderr


def test_a_shard_that_ends_each_process_ends_the_run(tmp_path):
    """Ray would repeat it without a limit; the next run tries again."""
    shard, file = tmp_path / "0.tar", tmp_path / "0.parquet"
    begun = [attempt("run", shard, file) for _ in range(SHARD_ATTEMPTS)]
    for each in begun:
        each.__enter__()  # and the process ends
    with pytest.raises(NoResultError, match=r"0\.tar: 4 processes ended"), attempt("run", shard, file):
        pass
    assert not any(tmp_path.iterdir())

    for each in begun:
        each.__exit__(None, None, None)


def test_attempts_of_earlier_runs_do_not_count(tmp_path):
    """And an attempt that ends is none, with an error or without."""
    shard, file = tmp_path / "0.tar", tmp_path / "0.parquet"
    record = tmp_path / "0.parquet.attempts"
    record.write_text("earlier\n" * SHARD_ATTEMPTS, "utf-8")
    with attempt("run", shard, file):
        assert [*["earlier"] * SHARD_ATTEMPTS, "run"] == record.read_text("utf-8").split()
    assert not record.exists()
    with pytest.raises(ZeroDivisionError), attempt("run", shard, file):
        1 / 0  # noqa: B018

    assert not record.exists()


def test_the_command_of_the_page_scores_its_shards(run, shards, pool):
    """With fake models in place of a real one."""
    [(_, command)] = fences(PAGE, "sh")
    name = "zhiqiulin/clip-flant5-xl"
    assert name in command
    done = run(*shlex.split(command.replace(name, PROFILE))[1:])

    assert "5 of 6 rows have all scores" in done.stderr
    assert ["0.parquet", "1.parquet"] == [*rows_in("scores")]


def test_the_lines_of_the_page_are_those_of_a_run_with_questions(run, shards, pool):
    """But for the numbers."""
    [(_, text)] = fences(PAGE, "text")
    done = run("batch", "shards", "-o", "scores", "-m", "dsg", *ON_RAY)
    forms = [re.sub(r"\d+", r"\\d+", re.escape(line)) for line in text.splitlines()]

    assert 2 == len(forms)
    assert all(re.search(f"^{form}$", done.stderr, re.MULTILINE) for form in forms)


POLICY = """
[policies.asked]
accept = "dsg >= 0.5 and vqascore >= 0.5"
without_score = "review"
"""


def test_processes_of_a_cluster_decide_as_this_one(run, pool, shards, tmp_path):
    """By the metrics of the policy, whose question sets are written before."""
    (tmp_path / "policies.toml").write_text(POLICY, "utf-8")
    policy = ("--policy", "asked", "--policy-file", "policies.toml")
    done = run("batch", "shards", "-o", "scores", *ON_RAY, *policy)
    alone = run("batch", "shards", "-o", "alone", *LOCAL, *policy)

    assert done.returncode == alone.returncode
    assert decided(tmp_path / "alone") == decided(tmp_path / "scores")
    assert 6 == len(decided(tmp_path / "scores"))
    assert "dsg: 2 distinct prompts" in done.stderr
    assert re.search(r"\d review|\d accept", done.stderr)


def test_an_unknown_policy_is_found_before_a_process_loads_models(run, pool, shards):
    """By the settings of the models."""
    done = run("batch", "shards", "-o", "scores", *ON_RAY, "--policy", "none")

    assert 2 == done.returncode
    assert "no policy none" in done.stderr
    assert [] == pool.calls


def decided(folder):
    """The decisions about the rows of shards."""
    return [(row["decision"], row["because"]) for rows in rows_in(folder).values() for row in rows]


def test_each_generator_has_a_folder_of_shards(run, pool, shards, tmp_path):
    """Scored one after the other, and compared by `versus`."""
    done = run("batch", "a=shards", "b=shards", "-o", "scores", *ON_RAY)
    files = {f"{name}/{number}.parquet" for name in "ab" for number in range(2)}

    assert 1 == done.returncode  # a row is broken
    assert files == {
        str(each.relative_to(tmp_path / "scores")) for each in tmp_path.glob("scores/*/*.parquet")
    }
    assert "Traceback" not in done.stderr
