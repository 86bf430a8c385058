"""Threads that others work on."""

from concurrent.futures import ThreadPoolExecutor


def one_thread(name: str) -> ThreadPoolExecutor:
    """A thread that does one thing after the other."""
    return ThreadPoolExecutor(1, thread_name_prefix=name)
