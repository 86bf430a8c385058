"""The chart's Redis, with a real redis-server in place of its image."""

import pytest
import redis

from tests.external.helm.chart import pods
from tests.support.redis_server import redis_server


def test_it_asks_for_the_password_keeps_question_sets_and_drops_answers_first(tmp_path):
    """Started with the container's own arguments, but for the folder of its volume."""
    [container] = pods("one-gpu")["redis"]["spec"]["containers"]
    known = {"$(REDIS_PASSWORD)": "secret", "/data": str(tmp_path)}
    arguments = [known.get(each, each) for each in container["args"]]
    assert ["redis-server"] == container["command"]
    assert "/data" in [each["mountPath"] for each in container["volumeMounts"]]

    with redis_server(tmp_path, *arguments) as server:
        with pytest.raises(redis.AuthenticationError):
            server.do("PING")
        with redis.Redis(port=server.port, password="secret", decode_responses=True) as client:
            set_up = client.config_get("maxmemory*", "appendonly")
    assert "volatile-lru" == set_up["maxmemory-policy"]
    assert "yes" == set_up["appendonly"]
    assert int(set_up["maxmemory"]) == 2**30
