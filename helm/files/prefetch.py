"""Download the models that the pods of a release load, and say with an empty file that they are there."""

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
