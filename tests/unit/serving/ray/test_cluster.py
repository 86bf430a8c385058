"""Clusters that are not there yet."""

import pytest

from demo.process import HOST, free_port
from service.core.settings import NotYet, SettingsError
from service.serving.ray.cluster import reach


@pytest.mark.parametrize("client", ["", "ray://"])
def test_a_cluster_that_does_not_answer_may_do_so_later(client):
    """A gateway often starts before it; the line names the address."""
    address = f"{client}{HOST}:{free_port(0)}"
    with pytest.raises(NotYet, match=rf"runtime\.address: {address}: nothing answers there"):
        reach(address)


def test_a_port_that_is_none_stays_wrong():
    """Only a person can change it."""
    with pytest.raises(SettingsError) as wrong:
        reach(f"{HOST}:{2**70}")

    assert not isinstance(wrong.value, NotYet)
