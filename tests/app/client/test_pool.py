"""`scoregate.runs.pool`: what it requests of Ray, by a module in place of Ray."""

from pathlib import Path

import pytest

from scoregate.errors import InputError, NoResultError
from scoregate.runs.batch_settings import Batch
from scoregate.runs.pool import Pool, with_errors
from tests.support.ray_here import RayActorError, ray_here


class Doubled:
    """A call of an actor."""

    @with_errors
    def __call__(self, batch):
        if batch["n"] == [13]:
            raise InputError("13 is no number")
        return {"n": [2 * n for n in batch["n"]]}


@pytest.fixture
def pool(monkeypatch):
    """A function that makes a pool in a cluster of *gpus* by arguments, and its data."""

    def pool(gpus=0, actors=None, actor_gpus=None):
        data = ray_here(monkeypatch, gpus)
        return Pool(data, Batch(dataset=Path(), out=Path(), actors=actors, actor_gpus=actor_gpus)), data

    return pool


ROWS = [{"n": n} for n in range(5)]


@pytest.mark.parametrize(
    ("given", "sizes", "gpus"),
    [
        ({}, (1, 1), None),
        ({"gpus": 4}, (4, 4), 1),
        ({"gpus": 64}, (5, 5), 1),
        ({"gpus": 4, "actors": (1, 64)}, (1, 5), 1),
        ({"gpus": 4, "actors": (2, 2), "actor_gpus": 2.0}, (2, 2), 2.0),
        ({"actors": (2, 3)}, (2, 3), None),
    ],
)
def test_each_gpu_has_an_actor_unless_the_command_says_otherwise(pool, given, sizes, gpus):
    """No more than there are calls; each takes one call at a time, so that no actor waits at the end."""
    made, data = pool(**given)
    assert [0, 2, 4, 6, 8] == [row["n"] for row in made.map(Doubled, (), ROWS)]
    [request] = data.requests

    assert {"min_size": sizes[0], "max_size": sizes[1], "max_tasks_in_flight_per_actor": 1} == request[
        "compute"
    ]
    assert gpus == request["num_gpus"]


def test_the_variables_of_the_command_are_set_in_its_actors(pool, monkeypatch):
    """Those of Scoregate alone."""
    monkeypatch.setenv("SCOREGATE_QUEUE__X", "1")
    monkeypatch.setenv("SECRET", "2")
    made, data = pool()
    list(made.map(Doubled, (), ROWS))
    variables = data.requests[0]["runtime_env"]["env_vars"]

    assert "1" == variables["SCOREGATE_QUEUE__X"]
    assert all(name.startswith("SCOREGATE_") for name in variables)


def test_a_function_runs_in_tasks_which_need_no_models(pool):
    """A call has a batch of rows, and its arguments."""
    made, data = pool(gpus=4)
    found = made.map(lambda batch, more: {"n": [n + more for n in batch["n"]]}, (10,), ROWS, 2)

    assert [10, 11, 12, 13, 14] == [row["n"] for row in found]
    assert [{"batch_size": 2, "fn_args": (10,), "blocks": 3}] == data.requests


def test_an_expected_error_of_a_call_is_raised_with_its_own_text(pool):
    """Ray would add to it."""
    made, _ = pool()
    with pytest.raises(InputError, match=r"^13 is no number$"):
        list(made.map(Doubled, (), [{"n": 13}]))


def test_a_stopped_command_says_that_it_can_continue(pool, capsys):
    """And ends as Ctrl-C ends others."""
    made, data = pool()
    data.fault = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        list(made.map(Doubled, (), ROWS))

    expected = "scoregate: interrupted: what is finished is kept, and the same command goes on from there\n"
    assert expected == capsys.readouterr().err


def test_processes_that_ray_cannot_replace_end_the_run(pool):
    """In one line."""
    made, data = pool()
    data.fault = RayActorError("the node died\nand more")
    with pytest.raises(
        NoResultError, match=r"^processes of the cluster were lost: the node died; what is finished"
    ):
        list(made.map(Doubled, (), ROWS))
