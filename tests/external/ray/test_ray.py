"""What only Ray does: replicas that die, updates, several gateways, and clusters that cannot be used."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from demo.process import HOST, SERVICE, free_port
from tests.external.ray.services import Served, items
from tests.support.ray_cluster import STARTED_WITHIN_S, gateway, kill, replicas
from tests.support.service import series, until


def test_a_killed_replica_costs_no_answer_and_is_replaced(ray):
    before = replicas("vqa")
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ray.score, items(64, 64 * n), priority="bulk") for n in range(4)]
        until(lambda: ray.waiting() > 16)
        kill(before[0])
        answers = [each.result() for each in asked]

    assert [] == [answer.text[:600] for answer in answers if answer.status_code != 200]
    assert not any(answer.json()["partial"] for answer in answers)
    until(lambda: bool(set(replicas("vqa")) - set(before)), STARTED_WITHIN_S)


def test_an_update_under_load_costs_no_answer_and_mixes_no_models(ray, ray_profile, cluster):
    """
    The cluster has room, so the new replicas start before the old ones stop.  Those of other models stay.
    """
    others = [replicas(name) for name in ("clip", "questions", "models")]
    text = ray_profile.path.read_text().replace("[models.vqa]", "[models.vqa]\nreplicas = 2")
    two, newer = (ray_profile.path.with_name(f"{name}.toml") for name in ("two", "newer"))
    two.write_text(text)
    newer.write_text(text.replace("[models.vqa]", '[models.vqa]\nid = "newer"'))
    try:
        cluster.deploy(two)
        until(lambda: asked(ray) == 2, STARTED_WITHIN_S)
        with ThreadPoolExecutor(2) as pool:
            update = pool.submit(cluster.deploy, newer)
            running = pool.submit(most_until, update)
            answers = [ray.score(items(16, 20_000))]
            while not update.done():
                answers.append(ray.score(items(16, 20_000 + len(answers))))
            update.result()
        until(lambda: ray.model().startswith("newer"), STARTED_WITHIN_S)
    finally:
        cluster.deploy(ray_profile.path)
        until(lambda: asked(ray) == 1 and ray.model().startswith("fake-vqa"), STARTED_WITHIN_S)

    assert [] == [answer.text[:600] for answer in answers if answer.status_code != 200]
    assert not any(answer.json()["partial"] for answer in answers)
    assert running.result() > 2
    assert [*map(len, others)] == [1, 1, 1]
    assert others == [replicas(name) for name in ("clip", "questions", "models")]


def most_until(update):
    """Count the replicas ten times a second; between two scores they might come and go."""
    most = 0
    while not wait([update], timeout=0.1).done:
        most = max(most, len(replicas("vqa")))
    return most


def test_gateways_share_the_replicas(ray, ray_profile, tmp_path):
    with gateway(ray_profile, tmp_path / "log") as (_, port), ThreadPoolExecutor(2) as pool:
        both = [pool.submit(each.score, items(40)) for each in (ray, Served(port))]
        first, second = ([r["scores"] for r in each.result().json()["results"]] for each in both)

    assert first == second


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1:{port}", "nothing answers there"),
        ("ray://127.0.0.1:{port}", "nothing answers there"),
    ],
)
def test_a_cluster_that_is_not_there_is_told_in_one_line(ray_profile, tmp_path, address, reason):
    address = address.format(port=free_port(0))
    ended = started(ray_profile, tmp_path, ("address = ", f'address = "{address}" #'))

    assert os.EX_TEMPFAIL == ended.returncode
    assert [f"runtime.address: {address}: {reason}"] == [
        line.partition("scoregate-server: ")[2].partition(": [Errno")[0] for line in last(ended)
    ]


def test_models_that_were_not_deployed_are_told_in_one_line(ray_profile, tmp_path):
    ended = started(
        ray_profile,
        tmp_path,
        ("[models.clip]", '[models.other]\nrole = "vqa"\nfamily = "fake"\n\n[models.clip]'),
        ("[runtime]", "[runtime]\nstart_timeout_s = 5"),
        ("[cache]", '[metrics.vqascore]\nvqa = "other"\n\n[cache]'),
    )

    assert os.EX_TEMPFAIL == ended.returncode
    assert "models.other: " in last(ended)[0]
    assert "deploy" in last(ended)[0]


def test_what_fits_on_no_node_is_refused_before_anything_is_deployed(ray_profile, tmp_path):
    change = ("[models.clip]", '[models.clip]\ndevice = "cuda"\nnum_gpus = 0.5')
    ended = started(ray_profile, tmp_path, change, command=(*SERVICE, "deploy"))

    assert 2 == ended.returncode
    assert "models.clip: no node of the cluster has 0.5 GPU" in last(ended)[0]


def asked(served):
    """How many copies of the VQA model the gateway asks."""
    return series(served.port, 'scoregate_replicas{model="vqa"}')


def started(profile, folder, *changes, command=SERVICE):
    """The service with a changed profile, which is expected to end by itself."""
    text = profile.path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "changed.toml"
    path.write_text(text)
    return subprocess.run(
        [*profile.env, f"SCOREGATE_SERVER__HOST={HOST}", *command, "--config", str(path)],
        capture_output=True,
        text=True,
        timeout=120,
    )


def last(ended):
    """The last line that it wrote to stderr."""
    return ended.stderr.strip().splitlines()[-1:]
