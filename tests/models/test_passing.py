"""Which failures of a start pass by themselves: a supervisor should start the process again."""

import httpx
import pytest
import torch
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

from models.core.contract import CheckpointAway, CheckpointError
from models.core.family import named
from models.core.passing import passes


def answered(status):
    """What the hub's client raises for an answer with that status."""
    response = httpx.Response(status, request=httpx.Request("GET", "http://hub"))
    return HfHubHTTPError("no", response=response)


def because(cause):
    """What the hub's client raises for files that are not here, and why it could not get them."""
    try:
        raise LocalEntryNotFoundError("not here") from cause
    except LocalEntryNotFoundError as exc:
        return exc


@pytest.mark.parametrize(
    ("exc", "expected"),
    [
        (because(ConnectionRefusedError()), True),
        (because(httpx.ConnectError("refused")), True),
        (because(httpx.RemoteProtocolError("cut")), True),
        (because(TimeoutError()), True),
        (answered(503), True),
        (answered(429), True),
        (answered(404), False),
        (answered(401), False),
        (because(OfflineModeIsEnabled("offline")), False),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("size mismatch"), False),
        (FileNotFoundError("no such file"), False),
        (CheckpointError("no weights"), False),
    ],
)
def test_what_is_away_may_come_back_and_what_is_wrong_stays_wrong(exc, expected):
    """Whether it is the error itself or what it was raised for, the loader's error of the table says so."""
    with pytest.raises(CheckpointError, match=r"models\.vqa: ") as caught:
        named("vqa", lambda: raised(exc))

    assert expected == passes(exc) == isinstance(caught.value, CheckpointAway)


def raised(exc):
    """Raise what a family raises for *exc*."""
    raise CheckpointError("it cannot be loaded") from exc
