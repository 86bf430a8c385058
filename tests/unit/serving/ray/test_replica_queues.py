"""Which replica a call is meant for, and whether all replicas fit on the nodes."""

from copy import copy

import pytest

from models.core.contract import ModelInfo, Prepared
from service.core.errors import DeadlineExceeded, Fault, Invalid, LaneFull, ScoregateError
from service.core.settings.tree import Settings
from service.serving.batcher.batching import Queue
from service.serving.job import Job
from service.serving.ray.groups import Described, has_room, unplaced
from service.serving.ray.replicas import ReplicaQueue, choose

DIGESTS = [f"image {n}" for n in range(300)]


def places(*ids):
    info = ModelInfo("vqa", "fake", "m", "1", "float32", "cpu")
    queue = {"max_items": 8, "max_cost": 100, "max_waiting": 1000}
    return [ReplicaQueue(Described(id, info, 10, 0.1), Queue(**queue), 0.0) for id in ids]


def busy(place, calls):
    """Have so many calls wait for *place*."""
    for _ in range(calls):
        place.put(Job(Prepared(10, None), "bulk", 0.0))


def chosen(among):
    return {digest: choose(among, digest, 4).id for digest in DIGESTS}


def test_images_are_spread_evenly():
    found = list(chosen(places("a", "b", "c")).values())
    assert all(70 < found.count(id) < 130 for id in "abc")


def test_a_new_replica_takes_its_share_and_moves_nothing_else():
    before, after = chosen(places("a", "b")), chosen(places("a", "b", "c"))
    moved = [digest for digest in DIGESTS if before[digest] != after[digest]]
    assert {after[digest] for digest in moved} == {"c"}
    assert 70 < len(moved) < 130


def test_a_replica_that_has_much_more_to_do_is_passed_over():
    a, b = places("a", "b")
    busy(b, 5)
    assert {choose([a, b], digest, 4).id for digest in DIGESTS} == {"a"}


def test_a_call_without_an_image_goes_to_the_least_loaded():
    a, b = places("a", "b")
    busy(a, 1)
    assert choose([a, b], "", 4) is b


def settings(**tables):
    models = {name: {"family": "fake", **table} for name, table in tables.items()}
    return Settings.model_validate({"runtime": {"kind": "ray"}, "models": models})


@pytest.mark.parametrize(
    ("gpus", "nodes", "fits"),
    [
        ({"replicas": 8, "num_gpus": 1}, [8], True),
        ({"replicas": 8, "num_gpus": 1}, [4, 3], False),
        ({"replicas": 4, "num_gpus": 0.25}, [1], True),
        ({"replicas": 3, "num_gpus": 0.4}, [1], False),  # two on one GPU, and 0.2 of it left
        ({"replicas": 1, "num_gpus": 2}, [1, 1], False),
    ],
)
def test_replicas_fit_where_the_gpus_of_single_nodes_allow_it(gpus, nodes, fits):
    asked = settings(vqa={"device": "cuda", "num_cpus": 0, **gpus})
    reason = unplaced(asked, [{"GPU": float(count), "CPU": 8.0} for count in nodes])
    assert fits == (reason == "")
    assert fits or reason.startswith("models.vqa: no node of the cluster has ")


def test_of_a_model_that_scales_the_fewest_copies_must_fit():
    scaled = {"autoscaling": {"min_replicas": 2, "max_replicas": 50}}
    assert unplaced(settings(vqa=scaled), [{"CPU": 2.0}]) == ""
    assert "1 CPU" in unplaced(settings(vqa=scaled), [{"CPU": 1.0}])


@pytest.mark.parametrize(
    ("free", "room"),
    [([{"GPU": 1.0, "CPU": 1.0}], True), ([{"GPU": 1.0}, {"CPU": 9.0}], False), ([{}], False)],
)
def test_an_update_has_room_if_one_more_replica_of_any_model_fits(free, room):
    """Then a new replica can start before an old one stops, and each that stops makes room for the next."""
    gpu = {"device": "cuda", "num_gpus": 1, "num_cpus": 1, "replicas": 8}
    assert room is has_room(settings(vqa=gpu, clip={"num_cpus": 0}), free)


@pytest.mark.parametrize(
    "error",
    [
        LaneFull("full", retry_after_s=3.5),
        DeadlineExceeded(stage="queue"),
        Invalid("wrong", faults=[Fault("/items/0", "code", "what")]),
        ScoregateError(),
    ],
)
def test_errors_say_the_same_after_their_way_from_a_replica(error):
    again = copy(error)  # as it travels
    assert type(again) is type(error)
    assert again.__dict__ == error.__dict__
    assert str(again) == str(error)
