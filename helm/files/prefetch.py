"""Download the models that a release's pods load, then write an empty file that marks them as complete."""

import json
import os
from pathlib import Path

from huggingface_hub import snapshot_download

ready = Path(os.environ["READY"])
root = ready.parents[1]
for model in json.loads(os.environ["MODELS"]):
    place = snapshot_download(
        model["repository"],
        revision=model["revision"],
        allow_patterns=model.get("files"),
        local_dir=root / model["directory"] if "directory" in model else None,
    )
    print(model["repository"], model["revision"], place, flush=True)
ready.parent.mkdir(exist_ok=True)
ready.touch()
