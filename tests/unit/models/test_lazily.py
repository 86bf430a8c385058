"""What an object finds out when it is first asked."""

import threading

from models.images.image import lazily


class Picture:
    """Has a size, and counts how often that was found out."""

    found = 0

    def __init__(self, hold: threading.Event | None = None) -> None:
        self.hold, self.begun = hold, threading.Event()

    @lazily
    def size(self) -> int:
        self.found += 1
        self.begun.set()
        if self.hold:
            self.hold.wait(10)
        return 7


def test_it_is_found_out_once():
    """And may be told instead."""
    asked, told = Picture(), Picture()
    told.size = 9

    assert [7, 7, 1] == [asked.size, asked.size, asked.found]
    assert [9, 0] == [told.size, told.found]


def test_nobody_waits_for_what_another_one_finds_out():
    """The event loop reads small pictures while a thread reads a large one."""
    hold = threading.Event()
    large, small = Picture(hold), Picture()
    thread = threading.Thread(target=lambda: large.size)
    thread.start()
    assert large.begun.wait(10)
    before = small.size, thread.is_alive()
    hold.set()
    thread.join()

    assert (7, True) == before
    assert 7 == large.size
