"""What a bootstrap draws: clusters of pictures that are not independent of each other, such as a prompt's."""

import numpy as np
import pytest

from scoregate.evaluation.agreement import auroc as area
from scoregate.evaluation.agreement import auroc_sample as sample_of
from scoregate.evaluation.bootstrap import differences, drawn, interval

PROMPTS, PICTURES, TABLES, TIMES = 50, 5, 120, 100


def simulated():
    """Tables of labels and two equally good metrics, which each prompt shifts for all of its pictures."""
    random = np.random.default_rng(1)
    prompts = np.repeat(np.arange(PROMPTS), PICTURES)
    for _ in range(TABLES):
        good = random.integers(0, 2, len(prompts)).astype(float)
        shifts, noise = random.normal(0, 0.5, (2, PROMPTS)), random.normal(0, 0.5, (2, len(prompts)))
        slopes = random.normal(1, 2, (2, PROMPTS))  # a metric is better at some prompts
        yield good, slopes[:, prompts] * good + shifts[:, prompts] + noise


@pytest.fixture(scope="module")
def simulation():
    """The share of intervals with the true area, and of tables with p < 0.05, by what is drawn."""
    tables = list(simulated())
    truth = np.mean([area(metric, good).auroc for good, metrics in tables for metric in metrics])
    clusters = {
        "rows": [f"{row:03}" for row in range(PROMPTS * PICTURES)],
        "prompts": [f"{row // PICTURES:03}" for row in range(PROMPTS * PICTURES)],
    }
    found = {}
    for name, cluster in clusters.items():
        covered, different = [], []
        for seed, (good, metrics) in enumerate(tables):
            samples = [sample_of(metric, good, cluster) for metric in metrics]
            both = [(each.whole, drawn(each, TIMES, seed)) for each in samples]
            low, high = interval(both[0][1])["auroc"]
            [apart] = differences(dict(zip("ab", both, strict=True)))
            covered.append(low <= truth <= high)
            different.append(apart.p < 0.05)
        found[name] = np.mean(covered), np.mean(different)
    return found


@pytest.mark.slow
def test_an_interval_over_prompts_has_the_true_value_in_95_percent_of_tables(simulation):
    """One over rows, if pictures share prompts, in far fewer."""
    assert 0.9 <= simulation["prompts"][0] <= 0.99
    assert simulation["rows"][0] < 0.85


@pytest.mark.slow
def test_two_equally_good_metrics_seldom_differ_over_prompts(simulation):
    """Over rows more often than p says."""
    assert simulation["prompts"][1] <= 0.08
    assert simulation["rows"][1] > 0.1


ROWS = [
    {
        "m": (place * 7 % 20) / 20,
        "h": (place * 7 % 20) / 20 + (place * 3 % 10) / 20,
        "good": int(place * 7 % 20 + place % 8 > 12),
        "unit": f"unit {place:02}",
        "tag": "counting",
        "correct": place % 3 > 0,
        "a": "x",
        "b": "y",
        "vote": 1 if place % 3 else -1,
    }
    for place in range(20)
]
FOUR = [{"caption": caption, "image": image} for caption in (0, 1) for image in (0, 1)]
CHOICES = [
    {"unit": row["unit"], **each, "m": (row["m"] + each["caption"] * 3 + each["image"] * 5) % 0.7}
    for row in ROWS
    for each in FOUR
]
RATINGS = [
    {"unit": row["unit"], "rater": rater, "h": (place * 7 + rater * (place % 3)) % 5}
    for place, row in enumerate(ROWS)
    for rater in (0, 1, 2)
]
CALLS = {
    "agreement": (ROWS, ("--scores", "--metric", "m", "--human", "h"), ("pearson", "spearman")),
    "auroc": (ROWS, ("--scores", "--metric", "m", "--label", "good"), ("auroc",)),
    "winoground": (CHOICES, ("--scores", "--metric", "m", "--item", "unit"), ("text", "image", "group")),
    "alpha": (RATINGS, ("--ratings", "--unit", "unit", "--rater", "rater", "--rating", "h"), ("interval",)),
}


def copied(rows):
    """Each row four times, as rows of four units of one source."""
    return [
        row | {"source": row["unit"], "unit": f"{row['unit']} {copy}"} for row in rows for copy in range(4)
    ]


@pytest.mark.parametrize("name", CALLS)
def test_units_that_are_alike_say_as_much_as_one(written, evaluate, name):
    """Four copies of each, drawn with their source, have the interval of a table without copies."""
    rows, (flag, *arguments), figures = CALLS[name]
    key = "intervals" if name == "alpha" else "interval"
    each, clustered, apart = (
        evaluate(name, flag, written(table, f"{number}.jsonl"), *arguments, "--bootstrap", 200, *more)
        for number, (table, more) in enumerate(
            [(rows, ()), (copied(rows), ("--cluster", "source")), (copied(rows), ())]
        )
    )

    noise = {"abs": 0.02} if name == "alpha" else {"abs": 1e-9}  # alpha corrects for the number of ratings
    for figure in figures:
        assert each[key][figure] == pytest.approx(clustered[key][figure], **noise)
        assert np.ptp(apart[key][figure]) < 0.7 * np.ptp(each[key][figure])
    assert ("source", 20) == (clustered["cluster"], clustered["clusters"])
    assert "20 clusters, fewer than 30" == clustered.get("caution") or name == "alpha"


def test_prompts_of_one_cluster_are_drawn_together(written, evaluate):
    """Of GenEval; and the items of votes."""
    rows = [row | {"prompt": row["unit"], "item": row["unit"]} for row in copied(ROWS)]
    verdicts = evaluate("geneval", "--results", written(rows), "--cluster", "source")
    pictures = [
        {"item": row["item"], "model": model, "m": int((model == "x") == bool(row["correct"]))}
        for row in rows
        for model in "xy"
    ]
    files = written([row | {"vote": 1} for row in rows], "votes.csv"), written(pictures, "pictures.csv")
    command = ("sxs", "--votes", files[0], "--scores", files[1], "--metric", "m")
    narrow, wide = (evaluate(*command, *more) for more in ((), ("--cluster", "source")))

    assert ("source", 20) == (verdicts["cluster"], verdicts["clusters"])
    assert ("item", 80, "source", 20) == tuple(
        each[name] for each in (narrow, wide) for name in ("cluster", "clusters")
    )
    assert 20 == wide["accuracy"][0]["clusters"]
    widths = [np.ptp(each["accuracy"][0]["interval"]["accuracy"]) for each in (narrow, wide)]
    assert widths[0] < 0.7 * widths[1]


@pytest.mark.parametrize(
    ("columns", "more", "drawn_by"),
    [
        (("prompt", "item", "text_id"), (), "prompt"),
        (("item", "text_id"), (), "item"),
        (("text_id",), (), "text_id"),
        (("prompt",), ("--cluster", "half"), "half"),
        ((), (), "row"),
        ((), ("--group", "half"), "half"),
        (("prompt",), ("--group", "half"), "prompt"),
    ],
)
def test_the_prompt_is_drawn_by_default_where_pictures_share_it(written, evaluate, columns, more, drawn_by):
    """By its usual names; what is paired is drawn if nothing says what the prompt is."""
    cells = [dict.fromkeys(columns, f"prompt {place % 5}") for place in range(len(ROWS))]
    rows = [
        {**row, **cell, "half": place % 2} for place, (row, cell) in enumerate(zip(ROWS, cells, strict=True))
    ]
    command = ("agreement", "--scores", written(rows), "--metric", "m", "--human", "h", "--bootstrap", 20)
    found = evaluate(*command, *more)

    assert (drawn_by, {"half": 2, "row": 20}.get(drawn_by, 5)) == (found["cluster"], found["clusters"])


@pytest.mark.parametrize("cell", ["one prompt", None, "another for each"])
def test_a_column_that_no_pictures_share_is_not_drawn(written, evaluate, cell):
    """Nor one with a single value, nor an empty one: then rows are."""
    rows = [row | {"prompt": cell and cell + row["unit"] * ("another" in cell)} for row in ROWS]
    command = ("agreement", "--scores", written(rows), "--metric", "m", "--human", "h", "--bootstrap", 20)

    assert "row" == evaluate(*command)["cluster"]


def test_a_row_without_its_cluster_is_dropped_only_if_the_column_was_named(written, evaluate):
    """By default it is drawn by itself, so that no figure depends on a column that nobody named."""
    rows = [row | {"prompt": place // 2 or None} for place, row in enumerate(ROWS)]
    command = ("agreement", "--scores", written(rows), "--metric", "m", "--human", "h", "--bootstrap", 20)
    found, named = evaluate(*command), evaluate(*command, "--cluster", "prompt")

    assert (20, 11, 0) == (found["n"], found["clusters"], found["dropped"])
    assert (18, 9, 2) == (named["n"], named["clusters"], named["dropped"])


@pytest.mark.slow
@pytest.mark.parametrize("figure", ["agreement", "preference"])
def test_the_output_says_what_an_accuracy_is_averaged_over(written, evaluate, figure):
    """Groups of four sizes: their mean is not the share of all pairs, and its interval is not either."""
    rows = [
        row | {"source": "aaaabbbccddddddddddd"[place], "h": place * 3 % 7} for place, row in enumerate(ROWS)
    ]
    command = (figure, "--scores", written(rows), "--metric", "m", "--human", "h", "--group", "source")
    default, of_groups, of_pairs = (
        evaluate(*command, "--bootstrap", 100, *more)
        for more in ((), ("--average", "groups"), ("--average", "pairs"))
    )

    assert ("groups", "pairs") == (of_groups["average"], of_pairs["average"])
    assert default == {"agreement": of_groups, "preference": of_pairs}[figure]
    assert of_groups["accuracy"] != pytest.approx(of_pairs["accuracy"])
    assert of_groups["interval"]["accuracy"] != pytest.approx(of_pairs["interval"]["accuracy"])
    assert all(
        low <= each["accuracy"] <= high
        for each in (of_groups, of_pairs)
        for low, high in [each["interval"]["accuracy"]]
    )


def test_a_cluster_that_divides_an_item_is_refused(refused, written):
    """With file, column and item."""
    said = refused(
        *("evaluate", "winoground", "--scores", written(CHOICES), "--metric", "m"),
        *("--item", "unit", "--cluster", "image"),
    )

    assert "column image: item unit 00 has several of its values" in said


def test_several_metrics_and_slices_draw_the_same_clusters(written, evaluate):
    """Each part of the output says how many."""
    rows = [
        row | {"prompt": place // 4, "n": -row["m"], "half": place // 10} for place, row in enumerate(ROWS)
    ]
    found = evaluate(
        *("auroc", "--scores", written(rows), "--metric", "m", "--metric", "n", "--label", "good"),
        *("--bootstrap", 20, "--by", "half"),
    )

    of_all = [part["clusters"] for part in found["metrics"].values()]
    assert [5, 5] == of_all
    assert [3, 3] == [part["metrics"]["m"]["clusters"] for part in found["by"].values()]
    assert "5 prompts, fewer than 30" == found["caution"]


SAME = {"caption": 0, "image": 0}


@pytest.mark.parametrize("units", [2, 20])
def test_a_share_that_is_1_or_0_has_wilsons_interval(written, evaluate, units):
    """Every drawing is the same, which does not make it certain."""
    rows = [
        {"item": item, **each, "m": int(each["caption"] == each["image"]), "n": 0 if each == SAME else 1}
        for item in range(units)
        for each in FOUR
    ]
    command = ("winoground", "--scores", written(rows), "--metric", "m", "--metric", "n", "--item", "item")
    found = evaluate(*command)
    width = 3.841459 / (units + 3.841459)
    [text] = [each for each in found["differences"] if each["figure"] == "text"]

    assert [1 - width, 1] == pytest.approx(found["metrics"]["m"]["interval"]["group"])
    assert [0, width] == pytest.approx(found["metrics"]["n"]["interval"]["group"])
    assert [1 - width, 1] == pytest.approx(text["interval"])
    assert max(2 / 1001, 2 * 0.5**units) == pytest.approx(text["p"])


def test_a_perfect_area_is_as_certain_as_the_smaller_class_is_large(written, evaluate):
    """Ten right pictures and three wrong ones."""
    rows = [{"m": place, "good": int(place > 2)} for place in range(13)]
    found = evaluate("auroc", "--scores", written(rows), "--metric", "m", "--label", "good")

    assert (1, [3 / (3 + 3.841459), 1]) == (found["auroc"], pytest.approx(found["interval"]["auroc"]))


def test_an_item_without_any_score_is_incomplete(written, evaluate):
    """As one that lacks a score, also if several metrics are compared."""
    rows = (
        CHOICES[:8]
        + [CHOICES[8] | {"m": None}, *CHOICES[9:12]]
        + [row | {"m": None} for row in CHOICES[12:16]]
    )
    rows = [row | {"n": row["m"]} for row in rows]
    command = ("winoground", "--scores", written(rows), "--item", "unit", "--metric", "m")
    found, both = evaluate(*command), evaluate(*command, "--metric", "n")

    assert (2, 2) == (found["items"], found["incomplete"])
    assert (2, 2) == (both["metrics"]["m"]["items"], both["metrics"]["m"]["incomplete"])
    assert "2 items, fewer than 30" == found["caution"] == both["caution"]
