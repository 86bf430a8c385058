"""Instruments: buckets by range, closed labels, and memory of GPUs that are in use."""

import sys
from itertools import pairwise
from math import inf
from types import SimpleNamespace

import pytest

from service.core import errors
from service.observability.instruments import SCORE_RESULTS, STATUSES, Instruments, result_of, score_buckets
from service.web.openapi import tree


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0, 1), (0, 1)),
        ((-1, 1), (-1, 1)),
        ((-inf, inf), (-20, 20)),
        ((-inf, 0), (-40, 0)),
        ((1, inf), (1, 41)),
        ((999.9999, 1000.0001), (999.9999, 1000.0001)),  # a checklist of small weights beside its intercept
    ],
)
def test_a_scores_buckets_span_its_range(ends, expected):
    """Forty equal ones; a range without an end is cut where log-odds rarely are."""
    buckets = score_buckets(*ends)
    widths = [above - below for below, above in pairwise(buckets)]

    assert 41 == len(buckets)
    assert expected == (buckets[0], buckets[-1])
    assert all(width == pytest.approx(widths[0]) for width in widths)


def test_no_bucket_of_a_score_is_there_twice():
    """Also where floats have fewer numbers than buckets: Prometheus refuses a series twice."""
    assert [1.0, 1.0000000000000002] == score_buckets(1.0, 1.0000000000000002)


def test_each_metric_has_the_buckets_of_its_own_range():
    """In one instrument."""
    instruments = Instruments([], {"share": (0, 1), "cosine": (-1, 1)})
    instruments.count_score("cosine", -0.5)
    [family] = [f for f in instruments.registry.collect() if f.name == "scoregate_score"]
    buckets: dict[str, dict[float, float]] = {"share": {}, "cosine": {}}
    for sample in family.samples:
        if "le" in sample.labels:
            buckets[sample.labels["metric"]][float(sample.labels["le"])] = sample.value

    assert ("histogram", 0, -1) == (family.type, min(buckets["share"]), min(buckets["cosine"]))
    assert {0} == set(buckets["share"].values())
    assert (0, 1) == (buckets["cosine"][-0.55], buckets["cosine"][-0.5])


def test_every_status_of_an_error_is_a_label_from_the_start():
    """So that an alert on its rate sees the first one."""
    assert {error.status for error in tree()} | {200, 202, 499} == set(STATUSES)


def test_every_error_is_one_of_the_results():
    """Those of callers, of load, of time, and ours."""
    results = {error.code: result_of(error()) for error in tree()}

    assert set(results.values()) == set(SCORE_RESULTS) - {"ok"}
    assert {
        errors.ImageUndecodable.code: "invalid",
        errors.LaneFull.code: "refused",
        errors.NotReady.code: "refused",
        errors.DeadlineExceeded.code: "late",
        errors.ModelFault.code: "error",
    }.items() <= results.items()


def test_a_device_that_goes_takes_its_series_with_it():
    """The model and its other devices keep theirs."""
    instruments = Instruments(["vqa"])
    instruments.add_device("vqa", "cuda:0", lambda: 1.0)
    before = instruments.exposition()
    instruments.add_device("vqa", "cuda:1", lambda: 1.0)
    instruments.count_device("vqa", "cuda:1", 1, 1.0)
    instruments.remove_device("vqa", "cuda:1")

    assert "cuda:1" not in instruments.exposition().decode()
    assert len(before.splitlines()) == len(instruments.exposition().splitlines())


def test_memory_is_shown_for_each_gpu_once_cuda_is_in_use(monkeypatch):
    """A scrape initialises nothing: without CUDA there is no sample."""
    cuda = SimpleNamespace(
        is_initialized=lambda: False,
        device_count=lambda: 2,
        memory_allocated=lambda number: 10 + number,
        memory_reserved=lambda number: 20 + number,
        get_device_properties=lambda number: SimpleNamespace(total_memory=100),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    instruments = Instruments([])

    def shown():
        [family] = [f for f in instruments.registry.collect() if f.name == "scoregate_gpu_memory_bytes"]
        return {(s.labels["device"], s.labels["kind"]): s.value for s in family.samples}

    assert {} == shown()
    cuda.is_initialized = lambda: True
    assert {
        ("cuda:0", "allocated"): 10,
        ("cuda:0", "reserved"): 20,
        ("cuda:0", "total"): 100,
        ("cuda:1", "allocated"): 11,
        ("cuda:1", "reserved"): 21,
        ("cuda:1", "total"): 100,
    } == shown()
