"""The memory of `scoregate batch` does not grow with the data set."""

import random
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.shards import tar_of

FEW, MANY = 200, 2000
MORE_MB = 50
START = b"\x89PNG\r\n\x1a\n"  # all that the command looks at
SIZE = 50_000  # bytes of a picture: 100 MB in all

SCORE = """
import os
import sys
from functools import partial

import httpx2 as httpx

from loadtest.servers import memory_mb
from scoregate import local
from scoregate.cli.main import main
from tests.unit.client.cli.served import Service, metric

transport = httpx.MockTransport(Service("clip@1", metrics={"vqascore": metric()}))
local.Client = partial(local.Client, transport=transport)
for folder in sys.argv[1:]:
    out = f"{folder}/out"
    status = main(["batch", folder, "-o", out, "-m", "vqascore", "--base-url", "http://test"])
    print(status, memory_mb(os.getpid(), "VmHWM"))
"""


def samples(number: int) -> Iterator[tuple[str, bytes]]:
    """Yield the prompt and the picture of each sample."""
    drawn = random.Random(0)
    return ((f"cat {each}", START + drawn.randbytes(SIZE)) for each in range(number))


def in_tar(path, number):
    files = (
        (f"{n}.{kind}", data)
        for n, (text, picture) in enumerate(samples(number))
        for kind, data in (("png", picture), ("txt", text.encode()))
    )
    tar_of(path, dict(files))


def in_parquet(path, number):
    """In groups of 100 rows, as `datasets` writes pictures."""
    pq.write_table(table(number), path, row_group_size=100)


def in_arrow(path, number):
    rows = table(number)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
        stream.write_table(rows, max_chunksize=100)


def table(number):
    images = [{"bytes": data, "path": f"{text}.png"} for text, data in samples(number)]
    return pa.table({"image": images, "prompt": [text for text, _ in samples(number)]})


def peaks_mb(*folders):
    """Return the peak memory of a process after each of *folders*, scored by a service that is a function."""
    done = subprocess.run(
        [sys.executable, "-c", SCORE, *folders], capture_output=True, text=True, check=False, timeout=60
    )
    scored = [line.split() for line in done.stdout.splitlines()]
    assert ["0"] * len(folders) == [status for status, _ in scored], done.stderr
    return [float(peak) for _, peak in scored]


@pytest.mark.parametrize(("suffix", "write"), [("tar", in_tar), ("parquet", in_parquet), ("arrow", in_arrow)])
def test_twenty_times_as_many_samples_need_no_more_memory(tmp_path, suffix, write):
    """The pictures of a few requests are in memory, and a line of each row."""
    folders = [tmp_path / str(number) for number in (FEW, MANY)]
    for folder, number in zip(folders, (FEW, MANY), strict=True):
        folder.mkdir()
        write(folder / f"0.{suffix}", number)
    few, many = peaks_mb(*folders)

    assert many - few < MORE_MB, (few, many)
