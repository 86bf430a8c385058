"""A video in PromptRL's form has the score of `POST /score`."""

import httpx

from tests.process.real_clients.conftest import PROMPT
from tests.support.films import mp4
from tests.support.pictures import b64


def test_a_video_of_a_group_has_the_mean_of_its_frames(service):
    """As its client posts it."""
    video = mp4()
    form = {
        "group_id": "g",
        "request_id": "r",
        "sample_id": "s",
        "expected_group_size": "1",
        "original_prompt": PROMPT,
        "reward_tag": "",
        "fps": "8",
    }
    with httpx.Client(timeout=60, trust_env=False) as client:
        files = {"video": ("sample.mp4", video, "video/mp4")}
        answer = client.post(f"{service.dialects}/v1/rewards:score", data=form, files=files)
        expected = client.post(f"{service.url}/score", json={"prompt": PROMPT, "image": b64(video)})

    assert expected.json()["results"][0]["scores"]["vqascore"] == answer.json()["score"]
