"""docs/guides/rl-reward.md: a reward by an address alone; a failure never becomes one."""

import json
import re
import shlex

import numpy as np
import PIL.Image
import pytest

import scoregate
from demo.process import free_port
from tests.support.packages import files_of, served
from tests.support.pages import fences, page
from tests.support.paths import ROOT

PAGE = "rl-reward.md"
VQA = '[models.vqa]\nfamily = "clip_flant5"\ncheckpoint = "demo:clip_flant5"\n'
RED, BLUE = (PIL.Image.new("RGB", (16, 16), colour) for colour in ("red", "blue"))


@pytest.fixture(autouse=True)
def here(fake_service, monkeypatch):
    """The service, named in the environment as the page does."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", fake_service.url)


def test_a_trainer_gets_log_odds_by_an_address_alone(tmp_path, monkeypatch, capsys):
    """A service with the variables of the page answers the page's program as the page says."""
    [exported] = [text for _, text in fences(f"guides/{PAGE}", "sh") if "DIALECTS__ENABLED" in text]
    words = [word for line in exported.splitlines() for word in shlex.split(line)]
    variables = dict(word.split("=", 1) for word in words if word.startswith("SCOREGATE_"))
    ports = {variables[name]: free_port(0) for name in variables if name.endswith("PORT")}
    program = re.sub(
        r"(?<=127\.0\.0\.1:)\d+", lambda port: str(ports[port[0]]), files_of(f"guides/{PAGE}")["pickled.py"]
    )
    settings = {name: ports.get(value, value) for name, value in variables.items()}
    stated = re.search(
        r"log-odds:\s([\d.-]+) for the right prompt, and ([\d.-]+) for", page(f"guides/{PAGE}")
    )

    monkeypatch.chdir(ROOT)
    with served(tmp_path, VQA, **settings):
        exec(compile(program, "pickled.py", "exec"), {})
    assert json.loads(capsys.readouterr().out) == pytest.approx([*map(float, stated.groups())], abs=0.01)


def test_each_picture_gets_the_log_odds_of_its_own_prompt(module):
    """In order, the same for the same pair, and not a probability."""
    first, second, again = module(PAGE, "reward.py").rewards([RED, BLUE, RED], ["red"] * 3)
    with scoregate.Client() as client:
        [result] = client.score_items([(RED, "red")], explain=True)

    assert first == again != second
    assert first == pytest.approx(result.details["vqascore"]["logit"])


def test_a_picture_without_a_score_is_not_a_number_and_leaves_its_group(module):
    """Its advantage is masked, and the others are normalised without it."""
    reward = module(PAGE, "reward.py")
    rewards = reward.rewards([RED, b"no picture", BLUE], ["red"] * 3)
    values, mask = reward.advantages(np.append(rewards, 5.0), np.array([0, 0, 0, 1]))

    assert [False, True, False] == np.isnan(rewards).tolist()
    assert [True, False, True, False] == mask.tolist()  # the last is alone in its group
    assert {-1, 0, 1} == set(values.round(4).tolist())


def test_a_group_has_win_rates_and_advantages(module):
    """Each part apart; the advantages of all pictures have the mean 0 and the deviation 1."""
    groups = module(PAGE, "groups.py")
    reward = groups.reward_of_groups()
    pictures, prompts = [RED, BLUE] * 2, ["red", "red", "blue", "blue"]
    parts = reward(pictures, prompts).parts
    values = groups.advantages_of(reward, pictures, prompts)
    reward.close()

    assert {"judge", "clipscore"} == parts.keys()
    assert all(1 == each[0] + each[1] == each[2] + each[3] for each in parts.values())
    assert (0, 1) == pytest.approx((np.mean(values), np.std(values, ddof=1)), abs=1e-6)


def test_questions_are_written_before_training(module):
    """Each prompt's id; one without anything to ask about is missing, and the sets are stored."""
    prompts = ["a red square", "a green circle and a blue star", "hello"]
    with scoregate.Client() as client:
        ids = module(PAGE, "warm.py").warm(client, prompts)
        stored = client.question_set(ids[prompts[0]])

    assert set(prompts[:2]) == ids.keys()
    assert prompts[0] == stored.prompt


def test_each_item_is_asked_the_questions_of_its_own_prompt(module):
    """The ids go back in the items' options, as the page shows."""
    prompts = ["a red square", "a green circle"]
    [shown] = re.findall(r"^Item\(.*question_set.*\)$", page(f"guides/{PAGE}"), re.MULTILINE)
    with scoregate.Client() as client:
        ids = module(PAGE, "warm.py").warm(client, prompts)
        names = {"Item": scoregate.Item, "image": RED, "ids": ids}
        items = [eval(shown, {**names, "prompt": prompt}) for prompt in prompts]
        report = client.score_items(items, "dsg", explain=True)

    assert list(ids.values()) == [result.details["dsg"]["question_set"] for result in report]


def test_the_sizes_of_a_step_follow_from_the_pictures(module):
    """The rows of the table: bytes, and seconds on both networks; a raw picture is the client's own."""
    lines = [
        line.split("|")
        for line in page(f"guides/{PAGE}").splitlines()
        if re.match(r"\| `\w+` \| \d+ kB", line)
    ]
    sizes = {each[1].strip(" `"): [float(cell.split()[0]) for cell in each[2:6]] for each in lines}
    raw = scoregate.images.encoded(np.zeros((512, 512, 3), np.uint8))

    assert ["raw", "png", "jpeg"] == list(sizes)
    assert len(raw) == pytest.approx(sizes["raw"][0] * 1000, rel=0.001)
    for picture, step, slow, fast in sizes.values():
        assert picture * 1.152 == pytest.approx(step, abs=1)
        assert step / 118 == pytest.approx(slow, abs=0.05)
        assert step / 1180 == pytest.approx(fast, abs=0.05)
