"""A small corpus, and outcomes as a generator notes them."""

import pytest

from loadtest import corpus
from loadtest.results import Outcome


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A corpus of tiny pictures under every kind's name: sizes are not the point here."""
    folder = tmp_path_factory.mktemp("corpus")
    for name, kind in corpus.KINDS.items():
        small = corpus.Kind(16, kind.format, kind.quality)
        for number in range(corpus.EACH):
            data = corpus.encode(corpus.draw(16, number), small)
            (folder / f"{name}-{number}.{kind.format.lower()}").write_bytes(data)
    return folder


def outcome(due=0.0, done=1.0, sent=None, lane="interactive", status=200, scored=1, **more):
    return Outcome(due, due if sent is None else sent, done, lane, 1, scored, status, **more)


def refusal(at, says):
    return outcome(at, at, status=429, scored=0, failure="lane_full", retry_after_s=says)
