"""docs/benchmarks.md: GenEval's folders are written by a generator, scored, and counted."""

import json
import os
import shlex
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


def test_the_section_about_geneval_ends_with_its_table(tmp_path):
    """By its program and its commands, with the demo's detector: one of two prompts is shown."""
    (tmp_path / "evaluation_metadata.jsonl").write_text("\n".join(map(json.dumps, PROMPTS)), "utf-8")
    (tmp_path / "my_generator.py").write_text(GENERATOR, "utf-8")
    (tmp_path / "program.py").write_text(files_of(PAGE)["geneval_folders.py"], "utf-8")
    block = section(PAGE, "## GenEval").split("```sh\n")[1].split("```")[0]
    commands = [
        shlex.split(line)[1:] for line in block.replace("--local geneval", "--local demo").splitlines()
    ]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'client' / 'src'}"}

    for words in (["program.py"], *(["-m", "scoregate.cli", *command] for command in commands)):
        command = [sys.executable, *words]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert not done.returncode, done.stderr

    assert 8 == len([*tmp_path.glob("A/0000[01]/samples/000[0-3].png")])
    [heads, row] = done.stdout.split("generators\n")[1].splitlines()[:2]
    assert heads.split()[1:9] == [
        *("single_object", "two_object", "counting", "colors", "position", "color_attr"),
        *("OVERALL", "IMAGES"),
    ]
    assert ["A", "0.0000", "–", "–", "–", "–", "1.0000", "–", "0.5000"] == row.split()[:9]
