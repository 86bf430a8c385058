"""`scoregate bench tifa160` and `seetrue`: metrics against people's ratings and labels."""

import json

import pytest

from tests.unit.client.evaluation.conftest import RELEASED


def test_the_released_scores_of_tifa_have_their_correlations(bench):
    """Those of a second implementation."""
    [row] = bench("tifa160", RELEASED / "tifa.csv.gz", "--metric", "tifa_mplug-large")["metrics"]

    names = ("pearson", "spearman", "kendall", "accuracy", "epsilon")
    assert (0.59672, 0.592188, 0.471716, 0.609418, 0.00606061) == pytest.approx(
        [row[name] for name in names], rel=1e-5
    )


def test_dsgs_ratings_replace_those_of_tifa(bench, written, tmp_path):
    """Joined by the prompt and the generator, whose names differ, and averaged."""
    pictures = {
        f"coco_{item}_{model}": {"image_path": f"coco_{item}_{model}.jpg", "human_avg": 1, "m": item}
        for item in (1, 2)
        for model in ("mini_dalle", "vq_diffusion")
    }
    data = tmp_path / "ratings.json"
    data.write_text(json.dumps(pictures), "utf-8")
    likert = [
        {"t2i_model": model, "source_id": f"coco_{item}", "answer": answer}
        for item, model, answer in (
            (1, "mini-dalle", 1),
            (1, "mini-dalle", 2),
            (1, "vq-diffusion", 2),
            (2, "mini-dalle", 4),
        )
    ]
    [row] = bench("tifa160", data, "--likert", written(likert, "likert.csv"))["metrics"]

    assert (3, 1) == (row["n"], row["dropped"])
    assert 0.9 < row["pearson"] < 1


def test_a_rating_of_dsg_outside_the_scale_is_counted_and_left_out(bench, written):
    """As a typing error; and so is a mean of TIFA's."""
    rows = [{"image_path": f"c_{n}_mini_dalle.jpg", "human_avg": n, "m": n} for n in range(5)]
    likert = [
        {"t2i_model": "mini-dalle", "source_id": f"c_{n}", "answer": answer}
        for n in range(5)
        for answer in (n + 1, 33)
    ]
    command = ("tifa160", written(rows, "t.jsonl"), "--scale", "1:5")
    of_dsg, of_tifa = bench(*command, "--likert", written(likert, "likert.csv")), bench(*command)

    [row] = of_dsg["metrics"]
    assert (5, 5, pytest.approx(1)) == (of_dsg["out_of_scale"], row["n"], row["pearson"])
    assert (1, 4) == (of_tifa["out_of_scale"], of_tifa["metrics"][0]["n"])


@pytest.mark.parametrize("key", [{"image_path": "a.jpg"}, {"text_id": "a", "generator": "x"}])
def test_a_picture_of_tifa160_with_two_rows_is_refused(refused, written, key):
    """It would count twice."""
    rows = [{**key, "human_avg": n, "m": n} for n in range(2)]

    assert f"column {', '.join(key)}: {', '.join(key.values())} has 2 rows" in refused(
        "bench", "tifa160", written(rows)
    )


def test_seetrue_has_the_area_of_each_source(bench, written):
    """And their mean, which is not that of all rows."""
    rows = [
        {"image": name, "text": "x", "label": label, "source": source}
        for name, label, source in (("a", 1, "s"), ("b", 0, "s"), ("c", 1, "t"), ("d", 0, "t"))
    ]
    scores = [{"image": name, "prompt": "x", "m": m} for name, m in (("d", 3), ("c", 2), ("b", 4), ("a", 9))]
    found = bench("seetrue", written(rows, "SeeTRUE.csv"), "--scores", written(scores, "s.jsonl"))

    [row] = found["metrics"]
    assert ({"s": 1, "t": 0}, 0.5, 0.5) == (row["mean"], row["of sources"], row["all"])
    assert [{"source": "s", "rows": 2}, {"source": "t", "rows": 2}] == found["sources"]


def test_results_of_several_runs_are_joined(bench, written):
    """Their question sets, options and warnings differ, which are no data of the benchmark."""
    rows = [
        {"image": name, "text": "x", "label": label, "source": "s"} for name, label in (("a", 1), ("b", 0))
    ]
    lines = [
        {"image": name, "prompt": "x", "scores": {metric: score}, "errors": {}}
        | {"question_sets": {metric: name}, "own_options": {metric: {"question_set": name}}}
        | {"warnings": [{"text": metric}]}
        for metric in ("dsg", "tifa")
        for name, score in (("a", 0.9), ("b", 0.1))
    ]
    runs = [written(of_run, f"{name}.jsonl") for name, of_run in (("dsg", lines[:2]), ("tifa", lines[2:]))]
    found = bench("seetrue", written(rows, "SeeTRUE.csv"), "--scores", runs[0], "--scores", runs[1])

    assert {"dsg": 1, "tifa": 1} == {row["metric"]: row["all"] for row in found["metrics"]}


def test_a_source_with_one_label_is_told_beside_the_others(bench, written):
    """It has no area, and the mean is that of the others."""
    rows = [
        {"label": label, "source": source, "m": m}
        for label, source, m in ((1, "s", 2), (0, "s", 1), (1, "t", 2), (1, "t", 1), (1, "u", None))
    ]
    found = bench("seetrue", written(rows))

    assert ({"s": 1, "t": None, "u": None}, 1) == (
        found["metrics"][0]["mean"],
        found["metrics"][0]["of sources"],
    )
    known, one_class, unscored = (row.get("undefined") for row in found["sources"])
    assert (None, "m: all 2 labels are 1") == (known, one_class)
    assert unscored.startswith("m: ")


def test_an_id_of_tifas_rows_is_no_metric(bench, written):
    """A data set may number its rows."""
    rows = [{"id": n, "image_path": f"{n}.jpg", "human_avg": n % 3, "m": n} for n in range(4)]

    assert ["m"] == [row["metric"] for row in bench("tifa160", written(rows))["metrics"]]


def test_a_source_with_one_label_is_named(refused, written):
    """Its area is undefined, and no other figure takes its place."""
    rows = [{"label": 1, "source": "s", "m": 1}, {"label": 1, "source": "s", "m": 2}]

    assert "column label, source s: all 2 labels are 1" in refused("bench", "seetrue", written(rows))


def test_ratings_that_are_missing_are_asked_for_by_their_argument(refused, written):
    """t2v_metrics' list of pictures has none."""
    said = refused("bench", "tifa160", written([{"image_path": "a.jpg"}], "tifa160.jsonl"), "--metric", "m")

    assert said.endswith("tifa160.jsonl: no column human_avg; name a file of ratings by --likert")
