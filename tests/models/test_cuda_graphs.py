"""CUDA graphs of parts of a network, with a recorder in place of CUDA, which runs the part at each replay."""

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
import torch

from loadtest.forward import build, make_batch
from models.families import cuda_graphs
from models.families.clip_flant5.forward import Forward
from models.families.cuda_graphs import Graphed


class Recorder:
    """What `torch.cuda` offers for graphs; a replay computes the result from the inputs of the capture."""

    def __init__(self, monkeypatch):
        self.captured, self.replays, self.pools = 0, 0, []
        stream = SimpleNamespace(wait_stream=lambda other: None)
        fakes = {"current_stream": lambda: stream, "Stream": lambda: stream, "stream": nullcontext}
        fakes |= {"CUDAGraph": SimpleNamespace, "graph": self.graph}
        monkeypatch.setattr(cuda_graphs, "cuda", SimpleNamespace(**fakes))

    @contextmanager
    def graph(self, graph, pool, capture_error_mode):
        assert "thread_local" == capture_error_mode
        self.captured += 1
        self.pools.append(pool)
        graph.pool = lambda: "a pool"
        graph.replay = self.replay
        yield

    def replay(self):
        self.replays += 1


@pytest.fixture
def recorder(monkeypatch):
    return Recorder(monkeypatch)


def doubled(part, x):
    return x * 2


def test_each_shape_is_captured_once_and_then_replayed(recorder):
    """Three runs, two shapes; the second graph takes the pool of the first."""
    graphed = Graphed(doubled, rows=4)
    for shape in ((2, 3), (3, 3), (2, 3)):
        graphed(None, torch.ones(shape))

    assert (2, 3) == (recorder.captured, recorder.replays)
    assert [None, "a pool"] == recorder.pools


def test_a_replay_reads_the_tensors_of_this_run(recorder):
    """They are copied to those that were captured, which others do not own."""
    graphed, seen = Graphed(lambda part, x: x, rows=4), torch.zeros(2, 3)
    first = graphed(None, seen)
    again = graphed(None, torch.ones(2, 3))

    assert again is first
    assert torch.equal(torch.ones(2, 3), again)
    assert torch.equal(torch.zeros(2, 3), seen)


def test_a_batch_of_more_rows_runs_without_a_graph(recorder):
    """It keeps a GPU busy by itself."""
    assert torch.equal(torch.full((5, 3), 2.0), Graphed(doubled, rows=4)(None, torch.ones(5, 3)))
    assert 0 == recorder.captured


def test_the_oldest_graph_is_dropped_for_a_new_shape(recorder):
    graphed, most = Graphed(doubled, rows=4), cuda_graphs.MAX_SHAPES
    for length in (*range(1, most + 2), *range(most + 1, 1, -1)):
        graphed(None, torch.ones(1, length))
    assert most + 1 == recorder.captured

    graphed(None, torch.ones(1, 1))
    assert most + 2 == recorder.captured


def test_offloading_drops_the_graphs(recorder):
    """Their kernels read the weights' old place."""
    graphed = Graphed(doubled, rows=4)
    graphed(None, torch.ones(1, 1))
    graphed.forget()
    graphed(None, torch.ones(1, 1))

    assert 2 == recorder.captured


def test_the_forward_pass_runs_its_three_stacks_through_graphs(recorder):
    """The same numbers as without; a Forward on a CPU has none, so they are put in by hand."""
    cpu = torch.device("cpu")
    network = build("demo", 2, cpu, torch.float32)
    batch = make_batch(network, images=1, questions=2, device=cpu)
    forward = Forward(network, device=cpu, dtype=torch.float32, graph_rows=8)

    def states():
        features = forward.features(batch.pixels)[[0, 0]]
        encoded, padding = forward.encode(features, [text for _, text in batch.pairs])
        return forward.logits(encoded, padding, [[(5, 1)]] * 2)

    with torch.inference_mode():
        plain = states()
        assert 0 == recorder.captured
        for part in (forward._tower, forward._encoder, forward._decoder):
            part.stack = Graphed(part.stack, rows=8)
        graphed = states()

    assert 3 == recorder.captured
    assert torch.equal(plain, graphed)
