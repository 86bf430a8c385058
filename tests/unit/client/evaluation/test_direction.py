"""`scoregate evaluate` on scores of which the lower ones are better."""

import json

import pytest

from scoregate.cli.main import main

ROWS = [
    {"distance": score, "human": rating, "good": int(rating > 3), "prompt": prompt, "model": model}
    for score, rating, prompt, model in [
        (0.1, 5, "a", "x"),
        (0.9, 1, "a", "y"),
        (0.2, 4, "b", "x"),
        (0.7, 2, "b", "y"),
        (0.3, 5, "c", "x"),
        (0.8, 3, "c", "y"),
    ]
]
FIGURES = {
    "agreement": (("--metric", "distance", "--human", "human", "--bootstrap", "0"), "kendall"),
    "auroc": (("--metric", "distance", "--label", "good"), "auroc"),
    "preference": (("--metric", "distance", "--human", "human", "--group", "prompt"), "accuracy"),
}


@pytest.fixture
def figures(capsys):
    """A figure of a table, as a program reads it."""

    def figures(figure, table, *arguments):
        assert 0 == main(["evaluate", figure, "--scores", table, "--json", *FIGURES[figure][0], *arguments])
        return json.loads(capsys.readouterr().out)

    return figures


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
def test_a_metric_that_falls_with_quality_agrees_with_people(figures, written, figure):
    """Where it is said; else it is taken for the opposite."""
    table, key = written(ROWS), FIGURES[figure][1]
    told, assumed = figures(figure, table, "--lower-is-better"), figures(figure, table)

    assert told[key] > 0.6
    assert assumed[key] < 0.4
    assert told["lower_is_better"]
    assert "lower_is_better" not in assumed


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet", "out.csv"])
def test_a_result_of_batch_says_it_itself(figures, written, figure, name):
    """In JSON Lines as a list, in Parquet as its text; only of the metrics that it names."""
    noted = ["distance"] if name.endswith(".jsonl") else '["distance"]'
    table = written([row | {"lower_is_better": noted} for row in ROWS], name)

    assert figures(figure, table)["lower_is_better"]


def test_the_best_generator_stands_first(capsys, written):
    """It has the lowest mean."""
    columns = ("--value", "distance", "--model", "model", "--item", "prompt")
    main(["evaluate", "ordering", "--scores", written(ROWS), "--json", *columns, "--lower-is-better"])

    assert ["x", "y"] == json.loads(capsys.readouterr().out)["order"]
