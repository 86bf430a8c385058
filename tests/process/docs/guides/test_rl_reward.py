"""docs/guides/rl-reward.md: a failure never becomes a reward."""

import re

import httpx
import numpy as np
import PIL.Image
import pytest

from service.wiring.load import DEMO_PROFILE, load_settings
from tests.support.pages import fences, page

PAGE = "rl-reward.md"
RED, BLUE = (PIL.Image.new("RGB", (16, 16), colour) for colour in ("red", "blue"))


def test_each_picture_gets_the_log_odds_of_its_own_prompt(module, client):
    """In order, the same for the same pair, and not a probability."""
    reward = module(PAGE, "reward.py")
    first, second, again = reward.rewards(client, [RED, BLUE, RED], ["red", "red", "red"])
    [result] = reward.post(
        client, "/score", {"prompt": "red", "images": [reward.encoded(RED)], "explain": True}
    )["results"]

    assert first == again != second
    assert first == pytest.approx(result["details"]["vqascore"]["logit"])


def test_a_picture_without_a_score_is_not_a_number_and_leaves_its_group(module):
    """Its advantage is masked, and the others are normalised without it."""
    reward = module(PAGE, "reward.py")
    results = [{"scores": {"vqascore": 1.0}}, {"scores": {}}, {"scores": {"vqascore": 3.0}}]
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"results": results}))
    with httpx.Client(transport=transport, base_url="http://test") as answered:
        rewards = reward.rewards(answered, [RED] * 3, ["x"] * 3)
    values, mask = reward.advantages(np.append(rewards, 5.0), np.array([0, 0, 0, 1]))

    assert np.isnan(rewards[1])
    assert [True, False, True, False] == mask.tolist()  # the last is alone in its group
    assert [-1, 0, 1, 0] == pytest.approx(values.tolist(), abs=1e-5)


def test_a_busy_service_is_asked_again_and_a_wrong_request_is_not(module):
    """A 503 and a lost connection pass; a 422 is raised at once."""
    reward, asked = module(PAGE, "reward.py"), []

    def respond(request):
        asked.append(request)
        if len(asked) == 1:
            return httpx.Response(503, headers={"Retry-After": "0"})
        return httpx.Response(200 if len(asked) == 2 else 422, json={})

    with httpx.Client(transport=httpx.MockTransport(respond), base_url="http://test") as client:
        assert {} == reward.post(client, "/score", {})
        with pytest.raises(httpx.HTTPStatusError):
            reward.post(client, "/score", {})

    assert 3 == len(asked)


def test_questions_are_written_before_training(module, client):
    """Each prompt's id; one without anything to ask about is missing, and the sets are stored."""
    prompts = ["a red square", "a green circle and a blue star", "hello"]
    ids = module(PAGE, "warm.py").warm(client, prompts)

    assert set(prompts[:2]) == ids.keys()
    assert 200 == client.get(f"/questions/{ids[prompts[0]]}").status_code


def test_each_item_is_asked_the_questions_of_its_own_prompt(module, client):
    """The ids go back in the items' options, as the page shows."""
    prompts = ["a red square", "a green circle"]
    ids = module(PAGE, "warm.py").warm(client, prompts)
    image = module(PAGE, "reward.py").encoded(RED)
    [shown] = re.findall(r"^\{.*question_set.*\}$", page(f"guides/{PAGE}"), re.MULTILINE)
    items = [eval(shown, {"prompt": prompt, "image": image, "ids": ids}) for prompt in prompts]
    body = {"items": items, "metrics": ["dsg"], "explain": True}
    results = client.post("/score", json=body).json()["results"]

    assert list(ids.values()) == [result["details"]["dsg"]["question_set"] for result in results]


def test_the_composite_shown_is_one_that_a_profile_can_define(tmp_path):
    """Beside the demo models."""
    [(_, table)] = fences(f"guides/{PAGE}", "toml")
    profile = tmp_path / "profile.toml"
    profile.write_text(DEMO_PROFILE.read_text("utf-8") + table, "utf-8")

    assert {"reward"} == load_settings(profile, {}).composites.keys()


def test_the_encoding_of_a_picture_can_be_compared(module, client):
    """One score per encoding, each of bytes of its own."""
    noise = np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)
    scores = module(PAGE, "quality.py").by_encoding(client, PIL.Image.fromarray(noise), "noise")

    assert ["png", "jpeg 95", "jpeg 85", "jpeg 75"] == list(scores)
    assert 4 == len(set(scores.values()))
