"""Groups of pictures that lie on several ranks, gathered by accelerate between real processes."""

import json
from pathlib import Path

import pytest

from demo.process import free_port
from scoregate.trainers.reward import Reward
from tests.support.clients import program, run
from tests.support.pictures import png

RANK = Path(__file__).with_name("rank.py")
COLOURS = ("red", "lime", "blue", "white", "black", "cyan", "pink", "grey")
PROMPTS = ("a red square", "a red square", "a green square", "a green square")


def test_ranks_that_gather_get_the_rewards_of_one_process(here, tmp_path):
    """Each has half of each group; groups of one rank alone would have other win rates."""
    rows = []
    for colour, prompt in zip(COLOURS, PROMPTS * 2, strict=True):
        (tmp_path / f"{colour}.png").write_bytes(png(colour))
        rows.append({"image": str(tmp_path / f"{colour}.png"), "prompt": prompt})
    (tmp_path / "rows.json").write_text(json.dumps(rows), "utf-8")
    address = f"SCOREGATE_BASE_URL={here}"
    port = str(free_port(0))
    ran = run(address, program(), RANK, tmp_path / "rows.json", tmp_path / "rewards", port)
    assert 0 == ran.returncode, ran.stderr

    found = [json.loads((tmp_path / f"rewards.{rank}").read_text("utf-8")) for rank in range(2)]
    whole = Reward(group_by="prompt")([png(colour) for colour in COLOURS], [row["prompt"] for row in rows])
    assert [whole[0::2], whole[1::2]] == found
    assert pytest.approx(4) == sum(whole)
    assert [2, 2] != [*map(sum, found)]
