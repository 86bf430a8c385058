"""
A virtual environment for each peer, in `build/peers/NAME/venv`.

It contains the peer's pinned packages, and falls back to this process's environment for all others, such as
torch.  So it is small and quick to make, and both sides use the same torch.
"""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from loadtest.peers.peer import FOLDER, Peer

BEHIND = "import site; site.addsitedir({!r})"  # searched after the environment's own packages


def python_of(peer: Peer, folder: Path = FOLDER) -> Path:
    """
    Return the Python of *peer*'s environment; create it if it is missing or the lock has changed.

    Raises:
        subprocess.CalledProcessError: pip failed; it has printed the reason.
    """
    home = folder / peer.name / "venv"
    python, made = home / "bin" / "python", home / "requirements.lock"
    if made.is_file() and made.read_bytes() == peer.lock.read_bytes():
        return python
    print(f"setting up {home}", flush=True)
    venv.create(home, clear=True)
    [packages] = home.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "-r", str(peer.lock)], check=True)
    shared = sysconfig.get_path("purelib")
    (packages / "scoregate.pth").write_text(BEHIND.format(shared) + "\n")
    shutil.copy(peer.lock, made)
    return python
