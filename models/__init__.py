"""Models: loaded weights behind one small synchronous contract (see `models.core.contract`)."""

import os

# oneDNN's kernels for Intel's matrix tiles (AMX) round bfloat16 differently for every shape, so that a
# score would move with its batch mates, 5e-3 and more.  Read when torch first multiplies; yours is kept.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# A thread of OpenMP that waits for work takes its core from those that decode: large requests were a quarter
# slower.  So it sleeps after some microseconds.  Read when torch is imported; yours is kept.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
