"""Inputs of a batch on their way to a device."""

from contextlib import contextmanager

import pytest
import torch

from models.families import inputs as upload
from tests.support.dry_run import dry_run

ROWS = [torch.full((3, 2, 2), number, dtype=torch.uint8) for number in (1, 2)]


class Stream:
    """A stream of a GPU that is not there: only what it is asked to wait for."""

    def __init__(self, name):
        self.name, self.waits_for = name, []

    def wait_stream(self, other):
        self.waits_for.append(other.name)


@pytest.fixture
def dry():
    """A dry run, whose streams are replaced."""
    with dry_run():
        yield


@pytest.fixture
def gpu(dry, monkeypatch):
    """The streams of a GPU, by name, and what was done: "copy" on which stream, "read" on which."""
    streams = {name: Stream(name) for name in ("copies", "kernels")}
    current, done = [streams["kernels"]], []
    place = torch.Tensor.to

    @contextmanager
    def switched(stream):
        current.append(stream)
        yield
        current.pop()

    def to(self, *args, **kwargs):
        done.append(("copy", current[-1].name, self.dtype, kwargs.get("non_blocking", False)))
        return place(self, *args, **kwargs)

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: current[-1])
    monkeypatch.setattr(torch.cuda, "stream", switched)
    monkeypatch.setattr(upload, "copying", lambda device: streams["copies"])
    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(
        torch.Tensor, "record_stream", lambda self, stream: done.append(("read", stream.name))
    )
    return streams, done


def test_a_cpu_gets_the_rows_stacked():
    """Nothing is copied a second time."""
    moved = upload.upload(ROWS, torch.device("cpu"))

    assert torch.equal(torch.stack(ROWS), moved)


def test_a_gpu_gets_8_bits_on_a_stream_of_their_own(gpu):
    """Kernels wait for the copy, and its memory for the kernels."""
    streams, done = gpu
    moved = upload.upload(ROWS, torch.device("cuda"))

    assert ("cuda", torch.uint8, (2, 3, 2, 2)) == (moved.device.type, moved.dtype, (*moved.shape,))
    assert [("copy", "copies", torch.uint8, True), ("read", "kernels")] == [*dict.fromkeys(done)]
    assert ["copies"] == streams["kernels"].waits_for
