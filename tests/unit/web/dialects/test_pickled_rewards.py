"""What a pickled request without prompts is told."""

from types import SimpleNamespace

import pytest

from service.web.dialects.pickled.requests import no_prompts

NEEDED = 'the request has no "prompts", and vqascore scores a picture against its prompt: '
SEND = 'send {"images": [bytes, …], "prompts": [str, …]}'


@pytest.mark.parametrize(
    ("served", "advice"),
    [
        ([], ""),
        (["aesthetic"], ", or to the path /aesthetic, which needs none"),
        (["aesthetic", "beauty"], ", or to the path /aesthetic or /beauty, which needs none"),
    ],
)
def test_whoever_sends_pictures_alone_is_told_what_to_send_and_where_else(served, advice):
    """Metrics that are configured and look at pictures alone are named."""
    vqascore = SimpleNamespace(name="vqascore", reads_prompt=True)
    free = {name: SimpleNamespace(name=name, reads_prompt=False) for name in ("aesthetic", "beauty")}
    dialects = SimpleNamespace(
        known={"vqascore": vqascore, **free}, absent=lambda name: "" if name in served else "no model"
    )

    assert NEEDED + SEND + advice == no_prompts(vqascore, dialects).detail
