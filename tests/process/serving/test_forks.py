"""Forks of a process that loads a model."""

import os

from service.serving import loading


def test_a_process_that_is_forked_during_a_load_can_load():
    """The thread that held the lock is not there to release it."""
    with loading.LOADING.taken():
        if (child := os.fork()) == 0:
            os._exit(loading.LOADING.locked())
        _, status = os.waitpid(child, 0)

    assert 0 == status
