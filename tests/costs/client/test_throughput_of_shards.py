"""Shards are scored as fast as a list in memory; `loadtest/shards.py` measures it with more samples."""

from loadtest.shards import measured, shares_of

LEAST = 0.85  # 0.76 to 0.84 with a pause between two shards, and with each shard read twice


def test_shards_are_scored_as_fast_as_a_list():
    """By `scoregate batch`, with fake models of this process that take 2 ms for a sample."""
    shares = shares_of(list(measured(600, 3, 5, ["tar", "parquet"])))

    assert min(shares.values()) > LEAST, shares
