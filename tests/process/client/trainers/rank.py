"""A rank of a trainer: `python rank.py ROWS OUTPUT` scores its own rows, in groups that lie on all ranks."""

import json
import sys
from pathlib import Path

from accelerate import PartialState
from accelerate.utils import gather_object

from scoregate.trainers.reward import Reward


def main() -> None:
    """Write the rewards of the rows of this rank to OUTPUT, with the rank's number as its suffix."""
    rows, output = (Path(each) for each in sys.argv[1:])
    state = PartialState(cpu=True)
    own = json.loads(rows.read_text("utf-8"))[state.process_index :: state.num_processes]
    reward = Reward(group_by="prompt", gather=gather_object)
    rewards = reward([Path(row["image"]).read_bytes() for row in own], [row["prompt"] for row in own])
    output.with_suffix(f".{state.process_index}").write_text(json.dumps(rewards), "utf-8")
    state.destroy_process_group()


main()
