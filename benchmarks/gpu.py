"""`python -m benchmarks.gpu` is `python -m loadtest.gpu`."""

import runpy

if __name__ == "__main__":
    runpy.run_module("loadtest.gpu", run_name="__main__", alter_sys=True)
