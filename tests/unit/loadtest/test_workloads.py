"""Workloads: requests that the service takes, the same every time."""

import hashlib
import json
from base64 import b64decode
from itertools import islice
from random import Random

import pytest

from loadtest import corpus
from loadtest.workloads import WORKLOADS, Spec, plan
from service.metrics.common.registry import metrics
from service.web.wire.translate import all_items
from service.web.wire.types import requests_with

ASKED = requests_with(metrics()).score


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_request_of_a_workload_is_one_that_the_service_takes(workload, folder):
    """Bodies fit the wire types, times rise, and no request is larger than the service's limit."""
    made = plan(Spec(workload, scale=0.03, rate=8, seconds=1), folder)

    assert made.arrivals
    assert [a.at_s for a in made.arrivals] == sorted(a.at_s for a in made.arrivals)
    for arrival in made.arrivals:
        wanted = ASKED.model_validate_json(arrival.body, context={"max_items": 128})
        assert (arrival.items, arrival.lane) == (len(all_items(wanted)), wanted.priority)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_two_pictures_of_a_run_are_the_same(workload, folder):
    """By digest, so that no cache and no coalescing can answer for the model."""
    made = plan(Spec(workload, scale=0.03, rate=8, seconds=1), folder)
    items = [item for arrival in made.arrivals for item in json.loads(arrival.body)["items"]]
    digests = [hashlib.sha256(b64decode(item["image"])).digest() for item in items]

    assert len(set(digests)) == len(digests)


def test_a_workload_is_the_same_every_time_and_another_with_another_seed(folder):
    """The seed decides everything."""
    first, again, other = (plan(Spec("mixed", seed, 0.01, seconds=2), folder) for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_a_burst_has_its_real_size_at_scale_one(folder):
    """512 single images at once, 16 for each of 32 prompts, shuffled."""
    made = plan(Spec("rl-burst"), folder).arrivals
    prompts = [json.loads(arrival.body)["items"][0]["prompt"] for arrival in made]

    assert {(0.0, 1, "bulk")} == {(arrival.at_s, arrival.items, arrival.lane) for arrival in made}
    assert 512 == len(prompts)
    assert all(prompts.count(prompt) % 16 == 0 for prompt in prompts)
    assert prompts != sorted(prompts, key=prompts.index)


def test_poisson_arrivals_come_at_their_rate(folder):
    """1,000 a second for two seconds: within four standard deviations of 2,000."""
    made = plan(Spec("poisson", rate=1000, seconds=2), folder).arrivals

    assert 2000 == pytest.approx(len(made), abs=180)
    assert all(0 < arrival.at_s < 2 for arrival in made)


def test_pictures_have_the_sizes_that_trainers_send(tmp_path):
    """A 512² JPEG at quality 75 has about 37 kB, as a request of nine has 0.33 MB."""
    [picture] = islice(corpus.distinct("rl", Random(0), tmp_path), 1)

    assert 25_000 < len(picture) < 50_000
