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

from scoregate.cli.arguments import OK, CommandText, add_commands, add_settings, settings_of
from scoregate.replay import REPLAYS, replay


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files and options of each metric."""
    texts = {name: CommandText(each.help, each.example) for name, each in REPLAYS.items()}
    add_commands(parser, "metric", texts, declare, "METRIC")


def declare(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of one metric."""
    add_settings(parser, REPLAYS[name].settings)


def run(arguments: argparse.Namespace) -> int:
    """Print the figures as JSON, one object per line."""
    for row in replay(settings_of(REPLAYS[arguments.metric].settings, arguments)):
        print(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
    return OK
