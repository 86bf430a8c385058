"""`scoregate bench gecko2k`: metrics against people in four templates."""

import pytest

RELIABLE = "max_disagreement_less_0.5"
PROMPTS = [  # in the released form
    {"dataset_id": source, "prompt": f"prompt {item}", "prompt_type": kind, "prompt_id": item, RELIABLE: kept}
    for item, (source, kind, kept) in enumerate(
        [
            ("att/count:simple_numeric", "Gecko(S)", True),
            ("att/count:additive_2", "Gecko(S)", True),
            ("rel/spatial:spatial_basic", "Gecko(S)", True),
            ("whoops_98", "Gecko(R)", True),
            ("whoops_77", "Gecko(R)", False),
        ]
    )
]
TAGS = ["all", "Gecko(R)", "Gecko(S)", "att/count", "rel/spatial"]


def scores(name, *of_models, models="xy"):
    """A row for each picture: the scores of each generator, by prompt."""
    return [
        {"prompt_id": item, "model": model, name: score}
        for model, each in zip(models, of_models, strict=False)
        for item, score in enumerate(each)
    ]


PEOPLE = scores("wl", [0.9, 0.8, 0.7, 0.6, 0.1], [0.2, 0.3, 0.1, 0.5, 0.9])
VOTES = [
    {"prompt_id": item, "a": "y", "b": "x", "rater": rater, "vote": vote}
    for item, of_item in enumerate([(-1, -1, 1), (-1, -1, 0), (1, 1, 1), (1, -1, 0), (1, 1, 1)])
    for rater, vote in enumerate(of_item)
]


@pytest.fixture
def files(written):
    """The prompts, people's scores, their votes and a metric's scores."""
    metric = scores("m", [0.8, 0.9, 0.6, 0.4, 0.2], [0.1, 0.3, 0.2, 0.5, 0.3])
    return (
        *(written(PROMPTS, "prompts.csv"), "--answers", written(PEOPLE, "people.csv")),
        *("--votes", written(VOTES, "votes.csv"), "--scores", written(metric, "m.csv")),
    )


def of_tag(rows, tag, **wanted):
    [row] = [row for row in rows if row["tag"] == tag and wanted.items() <= row.items()]
    return row


def test_metrics_correlate_with_each_template_by_set_and_skill(bench, files):
    """Over pictures; a skill with two pictures has a correlation of 1 or -1."""
    rows = bench("gecko2k", *files)["metrics"]

    assert TAGS == [row["tag"] for row in rows]
    assert {"wl": 10} == of_tag(rows, "all")["pictures"]
    assert {"wl": pytest.approx(1)} == of_tag(rows, "rel/spatial")["pearson"]
    assert {"wl": pytest.approx(0.2)} == of_tag(rows, "Gecko(R)")["spearman"]


def test_metrics_and_templates_choose_what_most_raters_prefer(bench, files):
    """Prompt 3 has no majority; both are wrong about 2, and people's scores are right about 4."""
    rows = bench("gecko2k", *files)["sxs"]

    found = {row["judge"]: (row["correct"], row["comparisons"]) for row in rows if row["tag"] == "all"}
    assert {"wl": (3, 4), "m": (3, 4)} == found
    assert 0 == of_tag(rows, "rel/spatial", judge="m")["accuracy"]
    assert 1 == of_tag(rows, "att/count", judge="m")["accuracy"]


def test_only_reliable_prompts_count_if_asked(bench, files):
    """By the column of that share."""
    found = bench("gecko2k", *files, "--reliable", 0.5)

    assert 4 == found["prompts"]
    assert {"wl": 8} == of_tag(found["metrics"], "all")["pictures"]
    assert 3 == of_tag(found["sxs"], "all", judge="m")["comparisons"]


def test_the_order_of_generators_is_compared_with_that_of_most_templates(bench, written):
    """Two templates say `<`, the votes say `=`, a metric says the opposite and another one nothing."""
    prompts = [
        {"dataset_id": f"coco_{item}", "prompt_type": "Gecko(R)", "prompt_id": item} for item in range(20)
    ]
    low, high = [0.1 + item / 100 for item in range(20)], [0.5 + item / 90 for item in range(20)]
    people = [{**row, "likert": row["wl"]} for row in scores("wl", low, high)]
    votes = [{"prompt_id": item, "a": "x", "b": "y", "vote": 0} for item in range(20)]
    metrics = [written(scores("a", high, low), "a.csv"), written(scores("b", low, low), "b.csv")]
    rows = bench(
        *("gecko2k", written(prompts, "prompts.csv"), "--answers", written(people, "people.csv")),
        *("--votes", written(votes, "votes.csv"), "--scores", metrics[0], "--scores", metrics[1]),
    )["ordering"]

    of_all = {row["judge"]: row for row in rows if row["tag"] == "all"}
    signs = {judge: row["relation"]["x : y"] for judge, row in of_all.items()}
    assert {"wl": "<", "likert": "<", "sxs": "=", "majority": "<", "a": ">", "b": "="} == signs
    assert (0, 1) == (of_all["a"]["agreement"], of_all["a"]["opposite"])
    assert (0, 0) == (of_all["b"]["agreement"], of_all["b"]["opposite"])
    assert of_all["a"]["p"]["x : y"] < 0.001


def test_generators_have_means_by_skill(bench, files):
    """Of people and of metrics."""
    rows = bench("gecko2k", *files)["means"]

    [row] = [row for row in rows if (row["metric"], row["skill"]) == ("wl", "att/count")]
    assert {"x": pytest.approx(0.85), "y": pytest.approx(0.25)} == row["mean"]
    assert {"wl", "m"} == {row["metric"] for row in rows}


def test_raters_answers_become_scores(bench, written, files):
    """As in `evaluate templates`."""
    answers = [
        {"template": "likert", "prompt_id": row["prompt_id"], "model": row["model"], "rater": rater}
        | {"answer": 1 + row["prompt_id"] % 5}
        for row in PEOPLE
        for rater in "rs"
    ]
    found = bench("gecko2k", files[0], "--answers", written(answers, "answers.csv"), *files[5:])

    assert {"likert": 10} == of_tag(found["metrics"], "all")["pictures"]
    assert {"x": 0.5, "y": 0.5} == next(
        row["mean"] for row in found["means"] if (row["metric"], row["skill"]) == ("likert", "rel/spatial")
    )


def test_a_metrics_file_for_each_generator_is_one_metric_and_lower_may_be_better(bench, written, files):
    """Its means stand as in the files."""
    parts = [scores("d", [each] * 5, models=model) for model, each in (("x", 1), ("y", 3))]
    metric = [written(part, f"{name}.csv") for name, part in zip("xy", parts, strict=True)]
    found = bench(
        *("gecko2k", files[0], *files[3:5], "--lower-is-better", "d"),
        *("--scores", metric[0], "--scores", metric[1]),
    )

    assert (2, 4) == tuple(
        of_tag(found["sxs"], "all", judge="d")[name] for name in ("correct", "comparisons")
    )
    [row] = [row for row in found["means"] if row["skill"] == "all"]
    assert {"x": 1, "y": 3} == row["mean"]


@pytest.mark.parametrize(
    ("rows", "options", "line"),
    [
        (scores("m", [1]), (), "no ratings to compare with: name a file by --answers or --votes"),
        (scores("wl", range(6)), ("--answers",), "prompts.csv: there is no prompt 5"),
        (scores("m", [1]), ("--answers",), "no column template, and none of wl, likert, dsg"),
        ([*VOTES[:1], {**VOTES[0], "vote": 7}], ("--votes",), "row 2, column vote: '7' is no vote"),
        ([*VOTES, VOTES[0]], ("--votes",), "column rater: 0 voted 2 times about x and y for 0"),
        (scores("wl", [1]), ("--reliable", "0.2", "--answers"), "no column 'max_disagreement_less_0.2'"),
    ],
)
def test_what_cannot_be_compared_is_refused(refused, written, rows, options, line):
    """With one line."""
    prompts, metric = written(PROMPTS, "prompts.csv"), written(scores("m", [1]), "m.csv")
    given = (*options, written(rows, "rows.csv")) if options else ()

    assert line in refused("bench", "gecko2k", prompts, *given, "--scores", metric)
