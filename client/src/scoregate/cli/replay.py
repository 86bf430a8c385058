"""
`scoregate replay`: published figures, computed from published answers by the service's code.

`scoregate replay` computes scores from published answers and prints one line of JSON:

```sh
scoregate replay dsg --answers mplug_dsg.csv --likert tifa160-likert-anns.csv --dependencies direct
scoregate replay vq2 --answers mplug_vq2a.csv --likert tifa160-likert-anns.csv
scoregate replay tifa --answers sample_evaluation_result.json
scoregate replay gecko --answers verdicts.jsonl
scoregate replay geneval --cases checks.jsonl --position-rule released
```

The files are those of j-min/DSG (`vqa_answers_release/`, `dsg/data/`) and Yushi-Hu/tifa (`sample/`), also
with `.gz`. For `gecko`, each line has a picture's `qas` and `rubric_results`, as in Google's notebook
(`evaluate_images_with_gecko.ipynb`); a question without a verdict counts 0. `geneval` has the options of
the metric that need no picture.

Over 800 pictures, the correlations of `direct`, `none` and VQ² with mPLUG and InstructBLIP are those that
the authors of DSG print: for `direct` Spearman 0.463 and 0.442. As there, the pictures of item
`tifa160_134`, which has no questions, count 0; `missing` counts other rated pictures without answers.
"""

import argparse
import json
from argparse import SUPPRESS
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scoregate.cli.arguments import OK, CommandText, UsageError, add_commands
from scoregate.records import json_or_text

METRICS = {
    "dsg": CommandText(
        "DSG's answers against people's ratings", "--answers answers.csv --likert ratings.csv"
    ),
    "vq2": CommandText(
        "VQ²'s answers against people's ratings", "--answers answers.csv --likert ratings.csv"
    ),
    "tifa": CommandText("TIFA's sample of an evaluation", "--answers result.json"),
    "gecko": CommandText("Gecko's verdicts on the questions of its rubrics", "--answers verdicts.jsonl"),
    "geneval": CommandText("GenEval's checks of the objects in pictures", "--cases cases.jsonl"),
}

ANSWERS = {
    "dsg": "CSV of a VQA model's answers",
    "vq2": "CSV of a VQA model's answers",
    "tifa": "JSON of an evaluation's result",
    "gecko": "JSON Lines: qas, rubric_results",
}

# Options of the metric on which its checks of detected objects depend.
OF_GENEVAL = (
    "position_rule",
    "position_threshold",
    "threshold",
    "counting_threshold",
    "max_objects",
    "max_overlap",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files and options of each metric."""
    add_commands(parser, "metric", METRICS, declare, "METRIC")


def declare(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of one metric."""
    add = parser.add_argument
    if name == "geneval":
        add("--cases", type=Path, required=True, help="JSON Lines: metadata and detections")
        what = "as the metric's option; default that of the released code"
        for option in OF_GENEVAL:
            flag = f"--{option.replace('_', '-')}"
            add(flag, type=json_or_text, default=SUPPRESS, metavar="VALUE", help=what)
        return
    add("--answers", type=Path, required=True, help=ANSWERS[name])
    if name in ("dsg", "vq2"):
        add("--likert", type=Path, required=True, help="CSV of people's ratings")
    if name == "dsg":
        add(
            "--dependencies",
            choices=["direct", "transitive", "none"],
            default="direct",
            help="as the metric's option",
        )


def run(arguments: argparse.Namespace) -> int:
    """
    Print the figures as JSON, one object per line.

    Raises:
        UsageError: a file cannot be used, or a package is not installed.
    """
    given = vars(arguments)
    try:
        from scoregate.replay import ratings, verdicts
    except ModuleNotFoundError as exc:
        ours = str(exc.name).partition(".")[0] == "service"
        package = "the package scoregate-server" if ours else "the extra `evaluate`"
        raise UsageError(f"replay needs {exc.name}, which {package} of the same checkout brings") from exc
    figures: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    try:
        if arguments.metric == "dsg":
            figures = ratings.dsg(arguments.answers, arguments.likert, arguments.dependencies)
        elif arguments.metric == "vq2":
            figures = ratings.vq2(arguments.answers, arguments.likert)
        elif arguments.metric == "tifa":
            figures = verdicts.tifa(arguments.answers)
        elif arguments.metric == "gecko":
            figures = verdicts.gecko(arguments.answers)
        else:
            options = {name: given[name] for name in OF_GENEVAL if name in given}
            figures = verdicts.geneval(arguments.cases, **options)
    except ValueError as exc:
        raise UsageError(str(exc)) from exc
    for row in [figures] if isinstance(figures, Mapping) else figures:
        print(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
    return OK
