"""
`python rank.py ROWS OUTPUT PORT`: two ranks of a trainer score their rows, in groups that lie on both.

The ranks are forks of one process, so that torch is imported once.
"""

import json
import os
import sys
from multiprocessing import get_context
from pathlib import Path

from accelerate import PartialState
from accelerate.utils import gather_object

from scoregate.trainers.reward import Reward

RANKS = 2


def main() -> int:
    """Run the ranks; return 0 if each ended well."""
    rows, output, port = sys.argv[1:]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, WORLD_SIZE=str(RANKS))
    context = get_context("fork")
    ranks = [context.Process(target=score, args=(rank, Path(rows), Path(output))) for rank in range(RANKS)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
    return max(abs(each.exitcode or 0) for each in ranks)


def score(rank: int, rows: Path, output: Path) -> None:
    """Write the rewards of the rows of this rank to OUTPUT, with the rank's number as its suffix."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    state = PartialState(cpu=True)
    own = json.loads(rows.read_text("utf-8"))[state.process_index :: state.num_processes]
    reward = Reward(group_by="prompt", gather=gather_object)
    rewards = reward([Path(row["image"]).read_bytes() for row in own], [row["prompt"] for row in own])
    output.with_suffix(f".{state.process_index}").write_text(json.dumps(rewards), "utf-8")
    state.destroy_process_group()


sys.exit(main())
