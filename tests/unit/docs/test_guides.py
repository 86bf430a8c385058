"""docs/guides/: pages that answer a question begin with what to run, and with its result."""

import pytest

from tests.support.pages import FENCE, page

SCREEN = 45  # lines
QUESTIONS = ("score-a-folder", "notebook", "million-pictures", "flux-sd3-qwen-image", "compare-generators")
RUN = ("sh", "python")


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_guide_has_its_first_command_and_result_on_one_screen(name):
    """What to run, and something after it."""
    text = page(f"guides/{name}.md")
    first = next(found for found in FENCE.finditer(text) if found[1] in RUN)
    after = text[first.end() :].lstrip().splitlines()

    assert text[: first.end()].count("\n") + 5 < SCREEN
    assert not after[0].startswith("#")
