"""
`scoregate batch`: a whole data set, in a file that the next run continues.

Scores a data set. Stop it at any time: the same command continues. A service that goes away is waited for
until `--timeout`, 600 s.

```json pairs.jsonl
{"image": "binding.png", "prompt": "a green circle and a red square", "good": 1}
{"image": "binding.png", "prompt": "a red circle and a green square", "good": 0}
{"image": "presence.jpg", "prompt": "an orange heart", "good": 1}
{"image": "presence.jpg", "prompt": "a black heart", "good": 0}
```

```console
$ scoregate batch pairs.jsonl -o scores.jsonl --html sheet.html
vqascore: mean 0.5056, median 0.5068; lowest 0.0089 binding.png, 0.0138 presence.jpg, 0.9999 binding.png
4 of 4 rows have all scores; 4 were requested in this run
scores.jsonl
$ scoregate batch pairs.jsonl -o scores.jsonl
vqascore: mean 0.5056, median 0.5068; lowest 0.0089 binding.png, 0.0138 presence.jpg, 0.9999 binding.png
4 of 4 rows have all scores; 0 were requested in this run
scores.jsonl
```

`batch` and `score` end with the mean, the median and the three worst pictures of each metric, and with the
seconds and the pictures per second.

Which data sets are read, which columns, and what OUT has: docs/reference/formats.md.

`--prompts FILE` is a JSON object, `{"cat.png": "a cat"}`, or a table with the columns `image` and `prompt`;
its further columns are those of the rows. Names are relative to the folder, and may lack the suffix; `cat`
also names `cat_0.png` and `cat/0.png`. A picture that FILE lacks is a row with an error, and so is a name
without a picture. Names match in both forms of accents (NFC and NFD). `--prompt-from-name '\\d+_(.*)_seed'`
has the prompt `a red cube` for `7_a_red_cube_seed1.png`: the group `prompt`, the first one, or all that
matches in the name with its folders, with underscores as spaces.

* **The next run retries errors**, and pictures whose bytes changed.
* **A row that cannot be read**, such as one with a URL, a too large file, or a GenEval prompt without
  samples, has the error `unreadable_row`. So has a row that stands for the rest of a damaged shard.
* **Scores of other metrics, options, `--orient` or models are not mixed**: the command exits. Use another
  file, or `--allow-model-change`.
* **Only pictures are sent**, only from the data set's folder or below, with links resolved. `--any-path`
  allows others, for trusted tables and for folders of links such as Hugging Face's cache.
* `--html FILE` writes thumbnails, the worst first. Requests use the lane `bulk`.
* **If OUT is a folder**, each shard has a Parquet file in it. The next run skips a shard that has a file;
  with `--retry` it scores the rows with errors again.
* `--filter "vqascore >= 0.6 and (dsg >= 0.5 or ocr > 0.8)"` writes the names of the rows that pass, one in
  each line, to `kept.txt` in that folder, or to `OUT.kept.txt`. A condition has metrics that are scored,
  numbers, `< <= > >= == !=`, `and`, `or`, `not`, `+ - * /`, `min`, `max`, `mean`, `sqrt` and parentheses. A
  row with an error does not pass. `--kept-shards FOLDER` also writes new shards of these samples there: of
  a tar with the same files, of Parquet and Arrow as Parquet with the same rows and columns.
* `A=folder B=folder`, or other data sets, are those of several generators: OUT is a folder with a file of
  each, and with `--ray` a folder of each. `--html` shows the pictures of a prompt side by side, `--filter`
  writes the names of each, and `--policy` decides about each row.
* `--no-prompt` reads no prompts, of any data set, for metrics that need none: `scoregate batch photos -m
  aesthetic --no-prompt -o scores.jsonl`.
* A manifest next to OUT, with all options and the question sets, is for reproduce.
* `--ray ADDRESS` scores shards on a Ray cluster with the models of `--local`: `HOST:PORT`, `auto`, or
  `local`, which starts one. `--actors` and `--actor-gpus` set the number of processes and their GPUs.

`--matrix` scores each picture of a row with each of its texts; `image` and `prompt` are lists, or several
columns (`--image-column image_0,image_1`). In OUT, `picture` and `caption` count them from 0, and `item` is
the data set's `item` or `id`, else the row. `--sweep METRIC.OPTION=FILE` scores each row with each line of
FILE as the value of an option.

`--grid 2x2` (rows x columns) is for **sheets**, which hold several pictures: each tile is a row of its own,
with the prompt of its sheet. Its `image` is `sheet.png#0`, counted row by row, and the columns `sheet` and
`tile` name both. A sheet is divided as its file stores it, and what cannot be divided evenly remains at the
right and below. It needs Pillow. Without `--grid` a sheet is scored as one picture, so that a right tile
hides a wrong one.

`--policy NAME` accepts, reviews or rejects each row by a policy of the service, or with `--local` of the
profile or `--policy-file FILE`. Each row gets `policy` (the id), `decision` and `because`, and the summary
counts the decisions:

```sh
scoregate batch pairs.jsonl -o decided.jsonl --policy show
```

* The metrics of `accept` and `review` are scored in bulk, by the policy's options, with those of `-m`. Then
  the rows are decided here, as `/decide` decides when it has time for all of these metrics. `/decide`
  itself is not used: its deadline would decide in place of scores that a busy service computes later, and
  rows come by the same way as without a policy.
* A score that is missing may be any of the metric's range; if it matters, `without_score` decides, and
  `unreadable` about a row that cannot be read. The status is 1 if a score is missing, whatever was decided.
* **Another policy of the same metrics and options decides anew**, also about finished shards. Nothing is
  scored again but rows with errors. Other metrics or options need another file. A run without `--policy`
  does not change decisions.
* Rows have no options of their own for these metrics, but a `question_set`. `--metrics-column` is refused.
  The log of the service has no rows of these decisions; the manifest has the conditions.
"""

import argparse

from scoregate.cli.arguments import (
    NO_SCORE,
    OK,
    add_settings,
    add_values,
    service_of,
    settings_of,
)
from scoregate.local import Service
from scoregate.runs.batch import TIMEOUT_S, score_batch, write_filtered
from scoregate.runs.batch_settings import Batch
from scoregate.runs.summary import say_summary
from scoregate.text import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, Batch)
    add_values(parser)


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some row lacks a score."""
    batch = settings_of(Batch, arguments)
    service = service_of(arguments, TIMEOUT_S)
    if batch.named:
        return run_generators(batch, service)
    outcome = score_batch(batch, service)
    again = "" if outcome.out in outcome.files or batch.retry else " with --retry"  # for finished shards
    say_summary(
        outcome.summary, outcome.requested, outcome.out, outcome.left_over, outcome.seconds, again=again
    )
    copied = not batch.filter or write_filtered(batch, batch.filter, outcome)
    return OK if outcome.complete and copied else NO_SCORE


def run_generators(batch: Batch, service: Service) -> int:
    """Score several generators.  Return 0, or 1 if some row lacks a score."""
    from scoregate.runs.generators import score_generators  # few runs need it

    generators = score_generators(batch, service)
    if batch.html:
        say(str(batch.html))
    return NO_SCORE if any(each.summary.incomplete for each in generators) else OK
