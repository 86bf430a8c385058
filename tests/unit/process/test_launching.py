"""The processes that several GPUs need, since Python launches the batches of all in turn."""

import pytest

from models.families.registry import families
from service.process.launching import batch_ms, gpus_of_one_process, processes
from tests.support.pages import rows, section


@pytest.mark.parametrize(("batch_ms", "gpus"), [(250, 5), (399, 7), (400, 8), (5, 1)])
def test_launching_takes_half_of_the_lock_at_most(batch_ms, gpus):
    """25 ms for each batch of each GPU; a process drives one GPU in any case."""
    assert gpus == gpus_of_one_process(25, batch_ms)


@pytest.mark.parametrize(("gpus", "needed"), [(6, 2), (10, 2), (11, 3)])
def test_more_gpus_need_more_processes(gpus, needed):
    """The line has all figures of the reason."""
    line = processes("vqa", gpus, launch_ms=25, batch_ms=250)

    assert line.startswith(
        f"vqa: {needed} processes for {gpus} GPUs. Launching a batch takes 25 ms of Python's lock,"
    )
    assert "an H100 about 250 ms for a full batch, so one process drives 5." in line


def test_what_one_process_drives_needs_no_line():
    """Five at 250 ms."""
    assert "" == processes("vqa", 5, launch_ms=25, batch_ms=250)


def test_a_batch_ends_at_its_limit():
    """40 operations at 400 a second are 100 ms; float32 is slower by as much as on the card."""
    assert 100 == batch_ms(40 * 10**12, "bfloat16", 250)
    assert 80 == batch_ms(40 * 10**12, "bfloat16", 80)
    assert 33 / 400 == pytest.approx(batch_ms(10**12, "bfloat16", 1e9) / batch_ms(10**12, "float32", 1e9))


@pytest.mark.parametrize(("family", "network"), [("clip_flant5", "CLIP-FlanT5"), ("open_clip", "CLIP ")])
def test_a_launch_takes_what_was_measured_on_eight_threads(family, network):
    """The family's figure lies in the range of the page's runs."""
    page = rows(section("operations/several-gpus.md", "## What Python's lock allows"))
    [row] = [row for row in page if row[0].startswith(network) and row[0].endswith(", ms")]
    least, most = map(int, row[-1].split(" to "))

    assert least <= families()[family].launch_ms <= most
