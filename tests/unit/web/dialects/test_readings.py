"""What is read of the probabilities of a decision's options."""

import pytest

from service.web.dialects.decisions.questions import Reading


@pytest.mark.parametrize(
    ("mass", "expected"),
    [
        (1.0, True),
        (0.6, True),  # the first option has 0.48, all other tokens 0.4
        (0.5, False),  # 0.4, and another token may have 0.5
        (0.0, False),
    ],
)
def test_an_option_is_called_the_likeliest_only_if_no_other_token_can_be(mass, expected):
    """The probabilities of single other tokens are not known."""
    assert expected is Reading([0.8, 0.2], mass).is_likeliest
