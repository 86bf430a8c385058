"""What knows the models without their weights starts without the libraries that compute."""

import subprocess
import sys

DECLARATIONS = ["registry", "family", "plugins", "settings", "fake", "question_llm.prompt"]
LIGHT = [*DECLARATIONS, "contract", "calls", "outcomes", "image"]
HEAVY = ["torch", "transformers", "open_clip", "llguidance", "huggingface_hub"]


def test_declarations_and_the_contract_import_no_torch():
    """So settings are checked, and a metric is imported, in no time."""
    modules = ", ".join(f"models.{name}" for name in LIGHT)
    program = f"import sys, {modules}; print(*[name for name in {HEAVY} if name in sys.modules])"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )

    assert "" == ended.stdout.strip()
