"""
Lanes: the priority classes of calls.

`interactive` is for callers who wait, such as an online filter; `bulk` is for trainers and offline
runs.  `service.serving.batcher.queue` shares a device between them.
"""

INTERACTIVE, BULK = LANES = ("interactive", "bulk")
