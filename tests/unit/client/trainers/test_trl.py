"""scoregate.trainers.trl: what a mask stands for."""

import httpx2 as httpx
import pytest

from scoregate.errors import NoScoreError
from scoregate.trainers.trl import reward_function
from tests.support.pictures import png
from tests.unit.client.trainers.scripted import failing, gone, refusing

MASKED = {
    "a fault of a model, tried three times": [failing(**{"0.002": "model_fault"})] * 9,
    "a prompt without questions": [failing(**{"0.002": "no_questions"})],
}


@pytest.mark.parametrize("script", MASKED.values(), ids=MASKED)
def test_a_mask_is_for_what_an_answer_says_of_one_picture(scripted, script):
    """Beside the scores of the others."""
    _, double = scripted(*script)
    function = reward_function(mask=True, transport=double.transport)

    assert [0.001, None] == function(["0.001", "0.002"], completions=[], pictures=[png()] * 2)


RAISED = {
    "unknown_metric": refusing(422, "unknown_metric", "/metrics/0"),
    "unauthorized": refusing(401, "unauthorized"),
    "connection_failed": gone,
    "unknown shape": lambda asked, request: httpx.Response(200, json={}),
}


@pytest.mark.parametrize(("said", "step"), RAISED.items(), ids=RAISED)
def test_a_mask_never_hides_that_there_are_no_scores_at_all(scripted, said, step):
    """Training would go on, with nothing to learn from."""
    _, double = scripted(*[step] * 100_000)
    function = reward_function(mask=True, transport=double.transport, timeout_s=0.2)

    with pytest.raises(NoScoreError, match=said):
        function(["0.001"] * 2, completions=[], pictures=[png()] * 2)


def test_the_columns_of_a_data_set_may_have_any_name(scripted):
    """TRL passes each of them by its name."""
    _, double = scripted()
    function = reward_function(transport=double.transport)
    columns = {"reward": [1.0], "mask": [0], "pictures": [png()]}

    assert [0.001] == function(prompts=["0.001"], completions=[""], **columns)
