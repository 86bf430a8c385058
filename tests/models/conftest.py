"""One thread, a machine without a network, an architecture that open_clip knows by name, and detectors."""

import json
import socket
from collections.abc import Iterator

import open_clip
import pytest
import torch

from tests.support.clip_checkpoints import PLAIN, TINY
from tests.support.detector_checkpoints import mask2former, owlv2


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Torch computes in one thread: the networks are small, and other tests run beside these."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def offline(monkeypatch):
    """No socket can be made."""

    def refuse(*_, **__):
        raise AssertionError("a socket was made")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def known(tmp_path):
    """A small architecture among those that open_clip knows by name."""
    path = tmp_path / f"{TINY}.json"
    path.write_text(json.dumps(PLAIN))
    open_clip.add_model_config(path)
    yield TINY
    open_clip.factory._MODEL_CONFIG_PATHS.remove(path)
    del open_clip.factory._MODEL_CONFIGS[TINY]


@pytest.fixture(scope="module")
def segmenter(tmp_path_factory):
    """The directory of a small Mask2Former."""
    return mask2former(tmp_path_factory.mktemp("segmenter"))


@pytest.fixture(scope="module")
def open_vocabulary(tmp_path_factory):
    """The directory of a small OWLv2."""
    return owlv2(tmp_path_factory.mktemp("vocabulary"))
