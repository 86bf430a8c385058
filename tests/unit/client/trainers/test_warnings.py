"""What the service warns about during training: told once, counted, an error where the reward is strict."""

import pickle
import warnings
from asyncio import gather
from contextlib import nullcontext
from functools import partial

import httpx2 as httpx
import pytest

from scoregate import ScoregateWarning
from scoregate.errors import NoScoreError, WarnedError
from scoregate.trainers.diffusers import best_of_n, gate
from scoregate.trainers.flow_grpo import factory
from scoregate.trainers.reward import Reward
from scoregate.trainers.trl import reward_function
from tests.support.pauses import Unpaused
from tests.support.pictures import png
from tests.unit.client.trainers.scripted import Scripted, answer, failing

TEXT = "item 0, vqascore: the question was cut"
CUT = {"code": "prompt_truncated", "item": 0, "metric": "vqascore"}


def warning(asked, request):
    """A step whose answer warns about the first item."""
    content = answer(asked).json() | {"warnings": [TEXT], "warning_codes": [CUT]}
    return httpx.Response(200, json=content)


def test_each_kind_is_told_once_and_counted(scripted):
    """Over all requests of a run."""
    reward, _ = scripted(*[warning] * 6, batch_size=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            reward([png()] * 4, ["0.1", "0.2", "0.3", "0.4"])

    assert ["prompt_truncated: item 0, vqascore: the question was cut"] == [
        str(each.message) for each in caught if each.category is ScoregateWarning
    ]
    assert {"prompt_truncated": 6} == reward.warned


def test_kinds_of_a_service_without_codes_do_not_differ_by_their_numbers(scripted):
    """Neither by what stands behind a colon, such as the words of one prompt."""

    def numbered(asked, request):
        number = asked["items"][0]["prompt"]
        texts = [f"item 0, vqascore: {number} of it", f"words that x never learnt: {number}"]
        return httpx.Response(200, json=answer(asked).json() | {"warnings": texts})

    reward, _ = scripted(*[numbered] * 5)
    with pytest.warns(ScoregateWarning) as caught:
        _ = [reward([png()], [f"0.{number}"]) for number in range(5)]

    assert 2 == len(caught)
    assert [5, 5] == list(reward.warned.values())


def test_pythons_filters_make_errors_of_them(scripted):
    """Each time, and not the first time alone."""
    reward, _ = scripted(*[warning] * 2)
    for _ in range(2):
        with pytest.raises(ScoregateWarning, match="the question was cut"):
            reward([png()], ["0.1"])


def test_a_strict_reward_has_no_score_for_what_is_warned_about(scripted):
    """The others have theirs, nothing stands for it, and it is not asked again."""
    reward, double = scripted(warning, warning, strict=True)
    bad, good = reward.outcomes([png()] * 2, ["0.1", "0.2"])

    assert isinstance(bad, WarnedError)
    assert 0.2 == good
    assert 1 == len(double.requests)
    with pytest.raises(NoScoreError, match="picture 0: warned: vqascore: the question was cut"):
        reward([png()] * 2, ["0.1", "0.2"], fill=-10.0)


def test_every_adapter_takes_it():
    """As a setting; a reward that travels stays strict."""
    double = Scripted([warning] * 2)
    score = factory(strict=True, transport=double.transport)()
    function = reward_function(images="images", strict=True, transport=double.transport)

    for call in (lambda: score([png()], ["0.1"]), lambda: function(["0.1"], images=[png()])):
        with pytest.raises(NoScoreError, match="warned"):
            call()
    assert pickle.loads(pickle.dumps(Reward(strict=True))).strict


PROMPT_BLIND = {"clip_i": {"direction": "higher is better", "reads_prompt": False}}
ADAPTERS = {
    "trl": lambda settings: partial(reward_function("clip_i", **settings), completions=[]),
    "flow_grpo": lambda settings: trained_by_flow_grpo(factory("clip_i", **settings)()),
}


def trained_by_flow_grpo(function):
    """The call of flow_grpo, with the keywords of TRL."""
    return lambda prompts, pictures: function(pictures, prompts)[0]


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)
def test_the_first_scores_of_a_trainer_warn_that_no_metric_reads_the_prompt(scripted, adapter):
    """Once, whatever follows; a call without a score gives no warning."""
    _, double = scripted(failing(**{"0.1": "no_questions"}))
    double.metrics = PROMPT_BLIND
    function, counts = adapter({"transport": double.transport}), []
    for call in range(4):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(NoScoreError) if call == 0 else nullcontext():
                assert [0.1] == function(["0.1"], pictures=[png()])
        counts.append([str(each.message)[:22] for each in caught])

    assert [[], ["clip_i read no prompt:"], [], []] == counts


@pytest.mark.anyio
async def test_an_awaited_reward_gives_its_warning_once_to_many_calls(scripted):
    """As verl-omni sends them, all at once."""
    reward, double = scripted(metric="clip_i")
    double.metrics = PROMPT_BLIND
    with pytest.warns(ScoregateWarning, match="clip_i read no prompt") as caught:
        assert [[0.1]] * 8 == await gather(*(reward.outcomes_soon([png()], ["0.1"]) for _ in range(8)))

    assert 1 == len(caught)


def test_the_first_scores_warn_that_lower_ones_are_better(scripted):
    """The other warning of the check, which a call of it gives already."""
    lower = {"clip_i": {"direction": "lower is better"}}
    reward, double = scripted(metric="clip_i")
    checked, double.metrics = Reward("clip_i", transport=double.transport), lower
    for act in (lambda: reward([png()], ["0.1"]), checked.check):
        with pytest.warns(ScoregateWarning, match="lower scores of clip_i are better"):
            act()
    assert [0.1] == checked([png()], ["0.1"])  # another warning would fail


@pytest.mark.parametrize(
    "metrics", [{}, {"clip_i": 3}, None], ids=["no such metric", "no entry", "no metrics"]
)
def test_a_check_that_fails_costs_no_scores(scripted, metrics):
    """A key that may not list models has scores all the same."""
    reward, double = scripted(metric="clip_i")
    double.metrics = metrics

    assert [0.1] == reward([png()], ["0.1"])


def test_a_check_that_is_refused_costs_no_scores(scripted):
    """And is not sent again."""
    reward, double = scripted(metric="clip_i")
    answered, asked = double.answer, []

    def refused(request):
        if request.url.path != "/models":
            return answered(request)
        asked.append(request)
        return httpx.Response(403, json={"status": 403, "code": "forbidden", "detail": "not with this key"})

    reward.transport = Unpaused(refused)

    assert [[0.1], [0.1]] == [reward([png()], ["0.1"]) for _ in range(2)]
    assert 1 == len(asked)


def test_a_choice_among_pictures_gives_no_warning_about_training(scripted):
    """The best by a metric that reads no prompt is what a user wants."""
    reward, double = scripted(metric="clip_i", logit=False)
    double.metrics = PROMPT_BLIND

    assert [True] == gate([png()], "0.5", 0.3, reward=reward)
    assert 0.5 == best_of_n([png()], "0.5", reward=reward).score
