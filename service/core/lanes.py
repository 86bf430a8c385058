"""
Lanes: the priority classes of calls.

`interactive` is for callers who wait, an online filter for example; `bulk` is for trainers and offline
runs.  How the two share a device is decided in `service.serving.batcher.batch`.
"""

INTERACTIVE, BULK = LANES = ("interactive", "bulk")
