"""Checkpoints that cannot be served end the start: one clear line, exit status 2."""

import subprocess
import sys
from pathlib import Path

from tests.support.flant5_checkpoints import golden_copy, save

WEIGHT = "lm_head.weight"
OWN = "[server]\nport = 0\n"  # the port is taken before anything is loaded


def test_a_pickle_with_code_is_refused_by_the_real_process(tmp_path):
    """One line on stderr behind the log, status 2, and nothing was run."""
    ran = tmp_path / "ran"

    class Payload:
        def __reduce__(self):
            return Path.touch, (ran,)

    save({WEIGHT: Payload()}, golden_copy(tmp_path / "c"), "bin")
    profile = tmp_path / "profile.toml"
    profile.write_text(f'{OWN}[models.vqa]\nfamily = "clip_flant5"\ncheckpoint = "{tmp_path / "c"}"\n')
    store = f"SCOREGATE_CACHE__QUESTIONS=sqlite:///{tmp_path}/questions.sqlite3"
    command = ["env", store, sys.executable, "-m", "service", "--config", str(profile)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert 2 == ended.returncode
    assert "nothing else is unpickled" in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert not ran.exists()
