"""`python -m benchmarks.shards` is `python -m loadtest.shards`."""

import runpy

if __name__ == "__main__":
    runpy.run_module("loadtest.shards", run_name="__main__", alter_sys=True)
