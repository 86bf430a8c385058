"""Ray Data on a real cluster: `batch --ray` with processes that are killed, and `scoregate.ray.Scorer`."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoregate.runs.results import lines_of
from tests.external.ray.services import picture
from tests.support.pages import fences
from tests.support.ray_cluster import kill, processes
from tests.support.service import until
from tests.support.shards import tar_of
from tests.unit.client.cli.conftest import run

__all__ = ["run"]

COMMAND = (sys.executable, "-m", "scoregate.cli")
METRICS = ("-m", "vqascore", "-m", "dsg")
SHARDS, SAMPLES, PROMPTS, ROWS = 4, 48, 7, 128
WITHIN_S = 120
TIMED = """
[models.vqa]
family = "fake"
per_call_ms = {per_call_ms}
batch = {{ max_items = 8, max_batch_ms = 1000 }}

[models.questions]
family = "fake"
"""

SCORE = """
import json, sys, time
import ray
import scoregate.ray

class Timed(scoregate.ray.Scorer):
    def __call__(self, batch):
        began = time.time()
        table = super().__call__(batch)
        for name, value in (("began", began), ("ended", time.time())):
            table = table.append_column(name, [[value] * len(table)])
        return table

address, profile, pictures, out = sys.argv[1:]
ray.init(address=address, log_to_driver=False)
ray.data.DataContext.get_current().wait_for_min_actors_s = 120  # all have loaded before the first batch
data = ray.data.read_parquet(pictures).repartition(8).materialize()  # for both
with open("page.py") as page:
    exec(compile(page.read(), "page.py", "exec"))
rows = []
for actors in (1, 2):
    scored = data.map_batches(
        Timed,
        fn_constructor_args=(profile, ["vqascore"]),
        compute=ray.data.ActorPoolStrategy(size=actors),
        num_cpus=0.5,  # with those of the service on this cluster, one is left to read
        batch_size=16,
    )
    columns = ["key", "scores", "errors", "models", "sha256", "began", "ended"]
    rows.append([{name: row[name] for name in columns} for row in scored.iter_rows()])
with open(out, "w") as file:
    json.dump(rows, file)
"""


@dataclass
class Story:
    """
    What two runs left in a folder; the first was killed, and an actor of the second.

    Attributes:
        kept: the files of the first run, with their inodes.
        killed: the actor that was killed in the middle of a shard.
        said: by the second run.
    """

    folder: Path
    kept: dict[str, int]
    killed: list[int]
    said: str
    status: int


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """A folder with the data set, and profiles of models that take more or less time."""
    folder = tmp_path_factory.mktemp("cluster")
    for name, per_call_ms in (("fast", 0), ("timed", 12), ("slow", 60)):  # long beside the work of the rows
        (folder / f"{name}.toml").write_text(TIMED.format(per_call_ms=per_call_ms))
    (folder / "shards").mkdir()
    for shard in range(SHARDS):
        members = {}
        for sample in range(SAMPLES):
            number = shard * SAMPLES + sample
            fields = {"prompt": f"a red square and a blue dot{number % PROMPTS}", "number": number}
            members |= {f"{sample}.png": picture(number), f"{sample}.json": json.dumps(fields).encode()}
        tar_of(folder / "shards" / f"{shard}.tar", members)
    return folder


@pytest.fixture(scope="module")
def story(shards, cluster):
    """A run that is killed when a shard is finished, and the same again, of which an actor is killed."""
    out, log = shards / "out", shards / "log"
    command = [*COMMAND, "batch", "shards", "-o", "out", *METRICS, "--local", "timed.toml"]
    command += ["--ray", cluster.address, "--concurrency", "1"]  # the lines of a shard come in three parts
    environment = {**os.environ, **cluster.profile(Path()).environment}

    def started(actors):
        with log.open("w") as said:
            return subprocess.Popen(
                [*command, "--actors", str(actors)], cwd=shards, env=environment, stdout=said, stderr=said
            )

    def journals():
        return {file.name: file.stat().st_size for file in out.glob("*.part.jsonl")}

    def finished():
        return {file.name: file.stat().st_ino for file in out.glob("*.parquet")}

    with started(2) as first:
        until(lambda: bool(finished()) or first.poll() is not None, WITHIN_S)
        first.send_signal(signal.SIGKILL)
        first.wait(WITHIN_S)
    until(lambda: not actors(), WITHIN_S)
    kept, before = finished(), journals()
    with started(1) as second:
        killed = []

        def kill_the_actor():
            """When it has written lines of a shard."""
            if any(size > before.get(name, 0) for name, size in journals().items()):
                killed.extend(actors())
                kill(killed[0])
            return bool(killed) or second.poll() is not None

        until(kill_the_actor, WITHIN_S)
        second.wait(WITHIN_S)
    return Story(out, kept, killed, log.read_text(), second.returncode)


def actors():
    """The processes that score shards."""
    return [
        pid for pid, command in processes().items() if command.startswith("ray::") and "ShardActor" in command
    ]


def test_a_killed_command_keeps_the_shards_that_are_finished(story):
    """The same files, which the next run does not write again; the others are scored."""
    assert 0 < len(story.kept) < SHARDS
    assert story.kept == {name: (story.folder / name).stat().st_ino for name in story.kept}


def test_a_killed_actor_loses_no_row_and_scores_none_twice(story):
    """The run ends with all rows, each once."""
    rows = [row for shard in range(SHARDS) for row in lines_of(story.folder / f"{shard}.parquet")]

    assert 0 == story.status, story.said
    assert 1 == len(story.killed)
    assert [*range(SHARDS * SAMPLES)] == [row["columns"]["number"] for row in rows]
    assert f"{SHARDS * SAMPLES} of {SHARDS * SAMPLES} rows have all scores" in story.said
    assert [] == [*story.folder.glob("*.part.jsonl"), *story.folder.glob("*.attempts")]


def test_the_rows_of_a_cluster_are_those_of_one_process(story, shards, run, monkeypatch):
    """Every cell, the ids of question sets among them."""
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{shards}/questions.sqlite3")
    monkeypatch.chdir(shards)
    done = run("batch", "shards", "-o", "here", *METRICS, "--local", "fast.toml")

    assert 0 == done.returncode, done.stderr
    for shard in range(SHARDS):
        here, there = ([*lines_of(folder / f"{shard}.parquet")] for folder in (shards / "here", story.folder))
        assert here == there


def test_a_distinct_prompt_of_the_data_set_has_one_set_of_questions(story):
    """Written by the first run; the second has none to write."""
    lines = (story.folder / "questions" / "dsg.jsonl").read_text("utf-8").splitlines()

    assert PROMPTS == len(lines) == len({json.loads(line)["prompt"] for line in lines})
    assert f"dsg: {PROMPTS} distinct prompts in " in story.said
    assert " rows, 0 of them without questions" in story.said
    assert "0 question sets were written" in story.said


@pytest.fixture(scope="module")
def scored(shards, cluster):
    """The rows of a pipeline with one actor, and with two."""
    (shards / "pictures").mkdir()
    images = [{"bytes": picture(number), "path": None} for number in range(ROWS)]
    table = {"key": [*range(ROWS)], "image": images, "prompt": ["a red square"] * ROWS}
    pq.write_table(pa.table(table), shards / "pictures" / "0.parquet")
    [(_, program)] = fences("guides/billion-on-a-cluster.md", "python")
    model, gpus = '"zhiqiulin/clip-flant5-xl"', "num_gpus=1"
    assert model in program
    assert gpus in program
    program = (
        program.replace(model, repr(str(shards / "fast.toml")))
        .replace(gpus, "num_cpus=0.5")
        .replace("/shared", str(shards))
    )
    (shards / "page.py").write_text(program, "utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            SCORE,
            cluster.address,
            str(shards / "slow.toml"),
            str(shards / "pictures"),
            str(shards / "rows.json"),
        ],
        cwd=shards,
        env={**os.environ, **cluster.profile(Path()).environment},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    found = json.loads((shards / "rows.json").read_text("utf-8"))
    return [sorted(rows, key=lambda row: row["key"]) for rows in found]


def test_two_actors_score_nearly_twice_as_many_rows(scored):
    """In the time from the first row to the last; the models take most of it."""
    one, two = (
        len(rows) / (max(r["ended"] for r in rows) - min(r["began"] for r in rows)) for rows in scored
    )

    assert two >= 1.8 * one, (one, two)


def test_a_pipeline_has_the_rows_of_batch(scored, shards, run, monkeypatch):
    """With one actor and with two."""
    monkeypatch.chdir(shards)
    done = run(
        "batch", "pictures/0.parquet", "-o", "pictures.jsonl", "-m", "vqascore", "--local", "fast.toml"
    )
    here = [(line["scores"], line["sha256"], line["models"]) for line in lines_of(shards / "pictures.jsonl")]

    assert 0 == done.returncode, done.stderr
    for rows in scored:
        assert here == [(row["scores"], row["sha256"], json.loads(row["models"])) for row in rows]


def test_the_program_of_the_page_writes_the_rows_of_batch(scored, shards):
    """After their own columns, which are as before."""
    table = pq.read_table(shards / "scored").sort_by("key")

    assert ["key", "image", "prompt", "sha256", "scores", "errors"] == table.column_names[:6]
    assert [row["scores"] for row in scored[0]] == table["scores"].to_pylist()
