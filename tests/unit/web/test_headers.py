"""What browsers are told: headers of every answer, and whose pages may read one."""

import pytest
from pydantic import ValidationError

from service.core.settings.sections import Server


@pytest.mark.parametrize(
    "origin", ["studio.example", "https://studio.example/", "ftp://a", "https://a b", ""]
)
def test_an_origin_that_no_browser_sends_is_refused_at_the_start(origin):
    """A slash at its end is the usual mistake: nothing would match."""
    with pytest.raises(ValidationError, match="origin"):
        Server(cors_origins=[origin])
