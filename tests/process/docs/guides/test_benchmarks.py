"""docs/benchmarks.md: the pictures of a generator are scored, and end in the tables of the papers."""

import json
import os
import shlex
import shutil
import subprocess
import sys

from demo.samples import FOLDER
from tests.support.packages import files_of
from tests.support.pages import ROOT, section

PAGE = "benchmarks.md"
GENERATOR = f"""
from PIL import Image


def generate(prompt, seed):
    return Image.open({str(FOLDER / "binding.png")!r})
"""
PROMPTS = [
    {
        "tag": "color_attr",
        "include": [
            {"class": "circle", "count": 1, "color": "green"},
            {"class": "square", "count": 1, "color": "red"},
        ],
        "prompt": "a green circle and a red square",
    },
    {"tag": "single_object", "include": [{"class": "star", "count": 1}], "prompt": "a star"},
]


def commands(heading):
    """The lines of the section's block of commands."""
    return section(PAGE, heading).split("```sh\n")[1].split("```")[0].splitlines()


def run(folder, *words):
    """Run Python in *folder*, and return what it prints."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'client' / 'src'}"}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout


def scoregate(folder, line):
    """Run a line of the page."""
    return run(folder, "-m", "scoregate.cli", *shlex.split(line)[1:])


def test_the_section_about_geneval_ends_with_its_table(tmp_path, demo_service):
    """By its program and its commands, with the demo's detector: one of two prompts is shown."""
    (tmp_path / "evaluation_metadata.jsonl").write_text("\n".join(map(json.dumps, PROMPTS)), "utf-8")
    (tmp_path / "my_generator.py").write_text(GENERATOR, "utf-8")
    (tmp_path / "program.py").write_text(files_of(PAGE)["geneval_folders.py"], "utf-8")
    run(tmp_path, "program.py")
    for line in commands("## GenEval"):
        shown = scoregate(tmp_path, line.replace("--local geneval", f"--base-url {demo_service.url}"))

    assert 8 == len([*tmp_path.glob("A/0000[01]/samples/000[0-3].png")])
    [heads, row] = shown.split("generators\n")[1].splitlines()[:2]
    assert heads.split()[1:9] == [
        *("single_object", "two_object", "counting", "colors", "position", "color_attr"),
        *("OVERALL", "IMAGES"),
    ]
    assert ["A", "0.0000", "–", "–", "–", "–", "1.0000", "–", "0.5000"] == row.split()[:9]


def test_the_section_about_t2i_compbench_ends_with_its_table(tmp_path, demo_service):
    """The pictures that `--prompts` names are scored by the demo's model, with phrases of a table."""
    prompts, install, score = commands("## T2I-CompBench")
    (tmp_path / "dataset").mkdir()
    for category in ("color", "shape", "texture"):
        (tmp_path / "dataset" / f"{category}_val.txt").write_text(
            "a green circle and a red square\n", "utf-8"
        )
    phrases = [f"{name}/0,a green circle\n{name}/0,a red square" for name in ("color", "shape", "texture")]
    (tmp_path / "phrases.csv").write_text("\n".join(["item,phrase", *phrases]), "utf-8")
    for line in scoregate(tmp_path, prompts.partition(" >")[0]).splitlines():
        for name in json.loads(line)["files"][:2]:
            path = tmp_path / "pictures" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(FOLDER / "binding.png", path)
    ours = f"--base-url {demo_service.url} --phrases phrases.csv"
    served = score.replace("--local Salesforce/blip-vqa-capfilt-large", ours)
    [heads, row] = scoregate(tmp_path, served).split("generators\n")[1].splitlines()[:2]

    assert install.startswith("pip install spacy")
    assert ["GENERATOR", "color", "shape", "texture", "PICTURES"] == heads.split()[:5]
    assert ["A", "6"] == [row.split()[0], row.split()[4]]
    assert all(0.5 < float(value) <= 1 for value in row.split()[1:4])
