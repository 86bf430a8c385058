"""Question sets as files, and a Redis as the store."""

from tests.app.questions.conftest import questions, server
from tests.app.questions.test_exchange import SETS, lines

__all__ = ["questions", "server"]


import pytest

pytestmark = pytest.mark.anyio


def test_sets_go_through_a_redis_too(questions, tmp_path, redis):
    """Nothing but the sets comes back, whatever else is there."""
    redis.do("SET", "somebody:else", "x")
    given, file = tmp_path / "given.jsonl", tmp_path / "sets.jsonl"
    given.write_bytes(lines(*SETS))
    questions("import", given, place=redis.url)
    done, _, _ = questions("export", file, place=redis.url)

    assert {"exported": 3} == done
    assert sorted(lines(*SETS).splitlines()) == sorted(file.read_bytes().splitlines())
