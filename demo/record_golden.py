"""`python -m demo.record_golden`: record the demo models' scores for `scoregate verify`."""

import json
import shutil
import tempfile
from pathlib import Path

from demo.process import SERVICE, free_port, running, url, wait_until_ready
from demo.samples import FOLDER, listed
from scoregate import Client, Item
from scoregate.runs.verification import GOLDEN, SCORES, label

IMAGE_NAMES = (
    "binding.png",
    "relation-left.png",
    "negation.png",
)  # lossless, so any decoder gives these pixels
METRICS = ("vqascore", "clipscore")


def main() -> None:
    """Write the pictures, and the scores of their right and wrong prompts."""
    samples = {sample["file"]: sample for sample in listed()}
    for name in IMAGE_NAMES:
        shutil.copyfile(FOLDER / name, GOLDEN / name)
    port = free_port(0)
    with tempfile.TemporaryDirectory() as folder:
        store = {"SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{folder}/questions.sqlite3"}
        with running(port, SERVICE, Path(folder) / "stderr", **store) as process:
            wait_until_ready(process, port)
            with Client(url(port)) as client:
                prompts = {name: [samples[name][side] for side in ("right", "wrong")] for name in IMAGE_NAMES}
                recorded = {metric: scores_of(client, metric, prompts) for metric in METRICS}
    SCORES.write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")


def scores_of(client: Client, metric: str, prompts: dict[str, list[str]]) -> dict[str, object]:
    """Return the label of the metric's only model, and the scores by picture and prompt."""
    answer = client.models()
    [model] = answer["metrics"][metric]["models"]
    [entry] = [entry for entry in answer["models"] if entry["name"] == model]
    pairs = [(name, prompt) for name, each in prompts.items() for prompt in each]
    items = [Item(prompt=prompt, image=(FOLDER / name).read_bytes()) for name, prompt in pairs]
    scores: dict[str, dict[str, float]] = {name: {} for name in prompts}
    for (name, prompt), result in zip(pairs, client.score_items(items, [metric]), strict=True):
        scores[name][prompt] = round(result.scores[metric], 5)
    return {"model": label(entry), "scores": scores}


if __name__ == "__main__":
    main()
