"""
Metrics, one file each.

A file holds its options, its coroutine, which reads like its paper's equation, and one declaration, `metric`,
from which everything else that depends on it is derived.
"""
