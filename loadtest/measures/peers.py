"""Two rows of `python -m loadtest.peers` against Flask and gunicorn, the easiest peer to install."""

import sys
import tempfile
from pathlib import Path

from loadtest import servers
from loadtest.peers.measuring import check_same, running
from loadtest.peers.peer import PEERS
from loadtest.peers.rounds import Result, alternate
from loadtest.peers.rows import ROWS
from loadtest.peers.serving import peer_served
from loadtest.report import Report
from loadtest.sizes import Size

FIGURES = {"burst_over_flask": "burst", "large_over_flask": "4x128"}


def measure(report: Report, size: Size) -> None:
    """Report 512 single requests, and large ones; Flask is in this environment for the tests."""
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.demo() as ours,
        peer_served(PEERS["flask"], "vqa", Path(sys.executable), Path(folder) / "log") as theirs,
    ):
        check_same(ours, theirs, "vqascore")
        for figure, name in FIGURES.items():
            row = ROWS[name].scaled(min(1.0, 4 * size.scale))
            runs = alternate(size.rounds, running(ours, row), running(theirs, row))
            note = f"{runs[0][-1].value:.0f} over {runs[1][-1].value:.0f} images/s, {row.what}"
            report.add(figure, Result(name, "flask", PEERS["flask"].version, *runs).ratio, note=note)
