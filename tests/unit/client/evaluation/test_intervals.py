"""Intervals and differences of accuracies, and what a small table says of itself."""

import json

import numpy as np
import pytest

from scoregate.cli.main import main
from scoregate.errors import ColumnError
from scoregate.evaluation.bootstrap import Drawn, Sample, differences, drawn, interval, means
from scoregate.evaluation.figures.metrics import AgreementSettings, of_agreement
from scoregate.evaluation.pair_accuracy import pair_accuracies, pair_accuracy, preference, preferences
from scoregate.evaluation.tables import read_table

FIGURES = ("accuracy", "accuracy_at_0")
OF_PREFERENCE = ("accuracy", "accuracy_ties_half")


def rows_of(seed, rows=24):
    """Scores with ties or without, ratings of three values, and groups of about four."""
    random = np.random.default_rng(seed)
    metric = random.random(rows)
    metric = metric if seed % 2 else np.round(metric, 1)
    return metric, random.integers(1, 4, rows).astype(float), list(map(str, random.integers(6, size=rows)))


def accuracy_of(pairs, metric, human):
    """The best accuracy over all distances, and that at 0, of a list of pairs with their groups."""
    apart = np.array([metric[a] - metric[b] for a, b, _ in pairs])
    order = np.array([np.sign(human[a] - human[b]) for a, b, _ in pairs])
    _, groups, sizes = np.unique([str(each) for *_, each in pairs], return_inverse=True, return_counts=True)

    def at(epsilon):
        tied = abs(apart) <= epsilon + 1e-12
        right = np.where(tied, order == 0, np.sign(apart) * order > 0)
        return float((right / sizes[groups]).sum() / len(sizes))

    return max(map(at, {0.0, *abs(apart)})), at(0.0)


@pytest.mark.parametrize("seed", range(4))
def test_the_mean_over_one_group_is_that_of_all_its_pairs(seed):
    """To the last bit of each drawing: without groups there is nothing to average."""
    metric, human, _ = rows_of(seed)
    by_group, of_pairs = (
        drawn(pair_accuracies(metric, human, average=each), 100, seed).values for each in ("groups", "pairs")
    )

    for name in FIGURES:
        assert by_group[name].tolist() == of_pairs[name].tolist()


@pytest.mark.parametrize("grouped", ["no group", "a pool of groups", "groups"])
@pytest.mark.parametrize("clustered", ["rows", "clusters"])
@pytest.mark.parametrize("seed", range(3))
def test_the_copies_of_a_cluster_are_not_compared_with_each_other(seed, clustered, grouped):
    """The figures are those of all other pairs of drawn rows, with an epsilon of their own."""
    metric, human, group = rows_of(seed)
    group = None if grouped == "no group" else group
    cluster = [str(row % 7 if clustered == "clusters" else row) for row in range(len(metric))]
    average = "groups" if grouped == "groups" else "pairs"
    sample = pair_accuracies(metric, human, group, cluster=cluster, average=average)
    names, random = sorted(set(cluster)), np.random.default_rng(seed)

    for _ in range(3):
        copies = random.integers(len(names), size=len(names))
        rows = [
            (row, copy, number)
            for number, copy in enumerate(copies)
            for row in range(len(metric))
            if cluster[row] == names[copy]
        ]
        pairs = [
            (a, b, group[a] if average == "groups" else "all")
            for place, (a, copy_a, number_a) in enumerate(rows)
            for b, copy_b, number_b in rows[:place]
            if (number_a == number_b or copy_a != copy_b) and (group is None or group[a] == group[b])
        ]
        found = sample.figures(np.bincount(copies, minlength=len(names)))
        assert accuracy_of(pairs, metric, human) == pytest.approx([found[name] for name in FIGURES])


@pytest.mark.slow
@pytest.mark.parametrize("average", ["groups", "pairs"])
@pytest.mark.parametrize("seed", range(6))
def test_a_group_drawn_twice_is_two_groups(seed, average):
    """The accuracies of both figures are those of a table with each copy under a name of its own."""
    metric, human, group = rows_of(seed)
    names = sorted(set(group))
    calibrated = pair_accuracies(metric, human, group, average=average).figures
    preferred = preferences(metric, human, group, average=average).figures
    random = np.random.default_rng(seed)

    for _ in range(5):
        copies = random.integers(len(names), size=len(names))
        of_copies = [np.flatnonzero(np.array(group) == names[copy]) for copy in copies]
        rows = np.concatenate(of_copies)
        renamed = [str(number) for number, each in enumerate(of_copies) for _ in each]
        times = np.bincount(copies, minlength=len(names))
        table = metric[rows], human[rows], renamed
        of_pairs, of_preference = (each(*table, average=average) for each in (pair_accuracy, preference))
        assert [getattr(of_pairs, name) for name in FIGURES] == pytest.approx([*calibrated(times).values()])
        assert [getattr(of_preference, name) for name in OF_PREFERENCE] == pytest.approx(
            [*preferred(times).values()]
        )


def test_a_drawing_without_pairs_has_no_accuracy():
    """One row drawn again and again, or groups of one row."""
    assert {} == pair_accuracies([0.1, 0.2, 0.3], [1, 2, 3]).figures(np.array([3, 0, 0]))
    of_rows = pair_accuracies([0.1, 0.2, 0.3], [1, 2, 3], ["a", "a", "b"])
    assert {} == of_rows.figures(np.array([0, 2]))
    of_groups = preferences([0.1, 0.2, 0.3, 0.4, 0.5], [1, 2, 3, 4, 5], list("aabbc"))
    assert {} == of_groups.figures(np.array([0, 0, 3]))


def test_one_unit_has_no_interval():
    """Every drawing would be the same, and the interval without a width."""

    def no_figures(times):
        raise ColumnError("metric", "it is not called")

    assert {} == drawn(Sample(1, no_figures), 10, 0).values
    sample = means({"one": ([0, 0], [1, 2]), "both": ([0, 1], [1, 2])}, 2)
    assert ["both"] == list(drawn(sample, 10, 0).values)


@pytest.mark.parametrize("grade", [0.0, 7.0, 0.1, -1e-9])
def test_equal_values_have_no_interval_unless_they_are_shares(grade):
    """Every drawing is the same but for the rounding of its sum, which does not make the mean certain."""
    codes, grades = np.arange(9), np.full(9, grade)
    equal = drawn(means({"mean": (codes, grades)}, 9), 200, 0)
    varied = drawn(means({"mean": (codes, grades + (codes > 6))}, 9), 200, 0)
    shares = drawn(means({"mean": (codes, np.ones(9))}, 9, shares={"mean"}), 200, 0)
    [apart] = differences(
        {
            "a": ({"mean": 9.0}, drawn(means({"mean": (codes, grades + 1)}, 9), 200, 0)),
            "b": ({"mean": 8.0}, equal),
        }
    )

    assert {} == interval(equal)
    assert 0 < np.diff(interval(varied)["mean"])
    assert (1 - 3.841459 / (9 + 3.841459), 1) == pytest.approx(interval(shares)["mean"])
    assert (1, (None, None)) == (apart.difference, apart.interval)


def test_figures_that_differ_by_the_rounding_of_their_sums_do_not_differ():
    """0.1 + 0.2 is above 0.3 in each drawing, by 5.6e-17."""
    of_sums, of_one = np.full(99, 0.1 + 0.2), np.full(99, 0.3)
    sample = Sample(10, dict, {"share": 10})
    found = {
        name: ({"mean": value[0], "share": value[0]}, Drawn(sample, {"mean": value, "share": value}))
        for name, value in (("a", of_sums), ("b", of_one))
    }
    mean, share = differences(found)

    assert (0, (None, None), 1) == (pytest.approx(mean.difference), mean.interval, mean.p)
    assert (-0.277533, 0.277533) == pytest.approx(share.interval, abs=1e-6)
    assert 1 == share.p


def test_metrics_that_always_agree_have_a_difference_without_ends(evaluate, table, capsys):
    """In JSON they are null, and a table has a dash; the correlation of equal columns has no interval."""
    rows = [{"m": place, "n": 2 * place, "human": place} for place in range(12)]
    table.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    columns = ("--metric", "m", "--metric", "n", "--human", "human")
    command = ("agreement", "--scores", table, *columns, "--bootstrap", 100)
    found = evaluate(*command)
    [pearson] = [each for each in found["differences"] if each["figure"] == "pearson"]
    assert 0 == main(["evaluate", *map(str, command)])
    line = next(each for each in capsys.readouterr().out.splitlines() if "pearson" in each and "m  " in each)

    assert not {"pearson", "spearman", "kendall"} & found["metrics"]["m"].get("interval", {}).keys()
    assert [None, None] == pearson["interval"]
    assert ["m", "n", "pearson", "0.0000", "–", "–", "1.0000"] == line.split()


def test_a_mean_of_a_drawing_counts_each_value_as_often_as_its_unit_is_drawn():
    """A unit may have several values, or none."""
    sample = means({"mean": (np.array([0, 0, 2]), [1.0, 2.0, 6.0])}, 3)

    assert {"mean": 3.0} == sample.whole
    assert {"mean": (2 * (1 + 2) + 6) / 5} == sample.figures(np.array([2, 0, 1]))
    assert {} == sample.figures(np.array([0, 3, 0]))


@pytest.fixture
def table(tmp_path):
    """Two metrics of 12 rows, ratings, labels, prompts, and items of two captions and two images."""
    metric, human, _ = rows_of(1, 12)
    path = tmp_path / "scores.jsonl"
    rows = [
        {
            "m": score,
            "worse": -score,
            "human": rating,
            "good": bool(rating > 2),
            "prompt": f"prompt {place % 4}",
            "item": place // 4,
            "caption": place // 2 % 2,
            "image": place % 2,
        }
        for place, (score, rating) in enumerate(zip(metric, human + metric, strict=True))
    ]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return path


CALLS = {
    "agreement": (("--human", "human"), {"pearson", "spearman", "kendall", *FIGURES}),
    "preference": (("--human", "human", "--group", "prompt"), {*OF_PREFERENCE}),
    "auroc": (("--label", "good"), {"auroc"}),
    "winoground": (("--item", "item"), {"text", "image", "group"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("figure", CALLS)
def test_each_figure_has_its_interval_seed_and_caution(evaluate, table, figure):
    """Without a further argument; `--bootstrap 0` switches the intervals off, but no caution about rows."""
    arguments, names = CALLS[figure]
    command = (figure, "--scores", table, "--metric", "m", *arguments)
    found, without = evaluate(*command), evaluate(*command, "--bootstrap", 0)

    assert names == found["interval"].keys()
    assert all(low <= found[name] <= high for name, (low, high) in found["interval"].items())
    assert 0 == found["seed"]
    assert not {"interval", "seed", "cluster", "clusters"} & without.keys()
    name, count = ("item", 3) if figure == "winoground" else ("prompt", 4)
    assert (name, count) == (found["cluster"], found["clusters"])
    assert f"{count} {name}s, fewer than 30" == found["caution"]
    of_rows = "12 rows, fewer than 30"
    assert {"winoground": found["caution"]}.get(figure, of_rows) == without["caution"]


@pytest.mark.slow
@pytest.mark.parametrize("figure", CALLS)
def test_each_accuracy_is_compared_between_metrics(evaluate, table, figure):
    """On the same drawings, with a p-value."""
    arguments, names = CALLS[figure]
    found = evaluate(figure, "--scores", table, "--metric", "m", "--metric", "worse", *arguments)

    assert names == {each["figure"] for each in found["differences"]}
    assert all(each["interval"][0] <= each["difference"] for each in found["differences"])
    assert found["caution"].endswith("s, fewer than 30")


def test_a_row_that_is_left_out_does_not_count_for_the_caution(evaluate, table):
    """40 rows of which 12 have a rating are 12."""
    table.write_text(table.read_text("utf-8") + '\n{"m": 0.5}' * 28, "utf-8")

    found = evaluate("agreement", "--scores", table, "--metric", "m", "--human", "human", "--bootstrap", 0)

    assert "12 rows, fewer than 30" == found["caution"]


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_a_table_has_the_differences_and_the_seed(capsys, table, form):
    """The differences are a second table; a CSV file has the figures only."""
    command = ["evaluate", "auroc", "--scores", str(table), "--metric", "m", "--metric", "worse"]
    more = [] if form == "text" else ["--format", form]
    assert 0 == main([*command, "--label", "good", *more, "--seed", "7"])
    figures, differences = capsys.readouterr().out.split("\n\n")

    assert all(word in figures.lower() for word in ("seed", "7", "caution"))
    assert all(word in differences.lower() for word in ("difference", "worse", "auroc"))
    assert 0 == main([*command, "--label", "good", "--format", "csv"])
    assert 3 == len(capsys.readouterr().out.splitlines())


@pytest.mark.slow
def test_too_many_pairs_have_no_interval_and_say_so(table):
    """The correlations have theirs."""
    settings = AgreementSettings(table=table, metrics=["m"], human="human")
    found = of_agreement(settings, read_table(table), most_pairs=65).content

    assert {"pearson", "spearman", "kendall"} == found["interval"].keys()
    assert "of accuracy: 66 pairs, more than 65" == found["no_interval"]
