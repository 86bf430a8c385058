"""The id that every answer carries, a caller's own or a new one."""

import pytest

pytestmark = pytest.mark.anyio


@pytest.mark.shared
@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "a/b", "<script>", "é".encode()])
async def test_a_bad_request_id_is_replaced(serve, given):
    """A good one is echoed on every answer, whatever the status."""
    async with serve() as client:
        for path in ("/health", "/nothing", "/score", "/questions/x"):
            bad = await client.get(path, headers={"X-Request-Id": given})
            good = await client.get(path, headers={"X-Request-Id": "a.good_one-1"})
            assert 32 == len(bad.headers["X-Request-Id"])
            assert "a.good_one-1" == good.headers["X-Request-Id"]
