"""Models: loaded weights behind one small synchronous contract (see `models.core.contract`)."""

import os

# oneDNN's kernels for Intel's matrix tiles (AMX) round bfloat16 differently for every shape, so a score would
# depend on its batch (5e-3 and more).  Read when torch first multiplies; a value that is set is kept.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# Idle OpenMP threads would spin on cores that decode images (large requests were a quarter slower), so they
# sleep after some microseconds.  Read when torch is imported; a value that is set is kept.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

# onnxruntime, which reads texts for `ocr`, would write a store into the home directory and send it.
# Read when it is imported.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
