"""The stderr of a process: JSON lines and nothing else."""

import json
import subprocess
import sys

LOUD = """
import io, logging, warnings
import PIL.Image
from models.images.image import Image, ImageError
from service.observability.logs import configure_logging

configure_logging()
file = io.BytesIO()
PIL.Image.effect_noise((64, 64), 50).save(file, "TIFF", compression="tiff_lzw")
broken = bytearray(file.getvalue())
broken[20:-300] = bytes(byte ^ 0x77 for byte in broken[20:-300])
try:
    Image(bytes(broken)).rgb
except ImageError:
    logging.getLogger("scoregate").info("the picture is broken")
warnings.warn("somebody warns")
logging.getLogger("python_multipart.multipart").warning("somebody's body")


class Failing:
    def __del__(self):
        raise RuntimeError


Failing()
"""


def test_stderr_has_json_lines_and_nothing_else():
    """Neither libtiff nor Python's warnings write past the loggers; the multipart parser quotes no bodies."""
    done = subprocess.run([sys.executable, "-c", LOUD], capture_output=True, text=True, check=True)
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]

    assert 3 == len(events)
    assert "the picture is broken" == events[0]
    assert "somebody warns" in events[1]
    assert "an exception was ignored" == events[2]
