"""One thread, a machine without a network, an architecture that open_clip knows by name, and small models."""

import json
import shutil
import socket
from collections.abc import Iterator
from functools import cache

import open_clip
import pytest
import torch

from tests.models.contract.kind import outcomes
from tests.models.contract.kinds import KINDS
from tests.support.clip_checkpoints import PLAIN, TINY


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


@pytest.fixture(scope="session")
def directories(tmp_path_factory):
    """Return the small checkpoint of a kind by its name, to be read only."""

    def made(name):
        directory = tmp_path_factory.mktemp("kind") / name.replace(" ", "-")
        directory.mkdir()
        KINDS[name].make(directory)
        return directory

    return cache(made)


@pytest.fixture(scope="session")
def models(directories):
    """Return the loaded model of a kind by its name, which no test changes."""
    return cache(lambda name: KINDS[name].load(directories(name)))


@pytest.fixture(scope="session")
def answers(models):
    """Return the outcomes of all calls of a kind, in one batch."""
    return cache(lambda name: outcomes(models(name), *KINDS[name].calls))


@pytest.fixture
def own(directories, tmp_path):
    """Return a copy of a kind's checkpoint, to be spoiled."""
    return lambda name: shutil.copytree(directories(name), tmp_path / name.replace(" ", "-"))


@pytest.fixture(scope="session")
def segmenter(directories):
    """The directory of a small Mask2Former."""
    return directories("mask2former")


@pytest.fixture(scope="session")
def open_vocabulary(directories):
    """The directory of a small OWLv2."""
    return directories("owlv2")
