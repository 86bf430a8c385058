"""From released data the commands give the published numbers, and those of a second implementation."""

from collections.abc import Iterator
from functools import cache

import pytest

from scoregate.evaluation import tables
from scoregate.records import records
from tests.unit.client.evaluation.conftest import RELEASED

pytestmark = pytest.mark.slow

TS2 = RELEASED / "t2iscorescore.csv.gz"
TIFA = RELEASED / "tifa.csv.gz"
TEASER = RELEASED / "teaser.csv.gz"
LIKERT = RELEASED / "likert.csv.gz"


@pytest.fixture(scope="module", autouse=True)
def _read_once() -> Iterator[None]:
    """Parse each released table once for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "records_in", cache(lambda path: list(records(path))))
        yield


NAMES = ("DALLE_3", "DeepFloyd_I_XL_v1", "Midjourney_6", "SDXL_Base")


@pytest.mark.parametrize(
    ("metric", "rank", "sep", "delta", "delta_raw", "std"),
    [
        ("alignscore", 0.739016, 0.928342, 0.95623, 0.165812, 0.173402),
        ("clipscore", 0.714139, 0.906539, 0.897094, 0.146511, 0.163317),
        ("blip1_dsg", 0.765827, 0.80756, 1.03668, 0.320249, 0.308917),
        ("instruct_blip_dsg", 0.789955, 0.841569, 1.10578, 0.342937, 0.310133),
    ],
)
def test_the_papers_table_of_t2iscorescore_is_reproduced(evaluate, metric, rank, sep, delta, delta_raw, std):
    """Graph 164 is in no mean, but its pictures are in the deviation."""
    found = evaluate(*ts2(metric, "released"), "--skip-graph", 164)

    expected = {"rank": rank, "sep": sep, "delta": delta, "delta_raw": delta_raw, "std": std}
    assert expected == pytest.approx({name: found[name] for name in expected}, rel=1e-5)
    assert (164, 2840, 0) == (found["graphs"], found["images"], found["dropped"])


@pytest.mark.parametrize(
    ("metric", "rank", "sep", "delta"),
    [
        ("alignscore", 0.706142, 0.927592, 0.195563),
        ("clipscore", 0.683858, 0.904564, 0.172252),
        ("blip1_dsg", 0.745759, 0.803607, 0.371079),
        ("instruct_blip_dsg", 0.771979, 0.837339, 0.390163),
    ],
)
def test_the_current_codes_summary_is_reproduced(evaluate, metric, rank, sep, delta):
    """Over all 165 graphs, and delta is not divided."""
    found = evaluate(*ts2(metric, "current"))

    assert [rank, sep, delta, delta] == pytest.approx(
        [found[name] for name in ("rank", "sep", "delta", "delta_raw")], abs=6e-7
    )
    assert 165 == found["graphs"]


@pytest.mark.parametrize(
    ("version", "parts"),
    [
        (
            "released",
            [
                (0.851465, 0.877712, 0.403134),
                (0.707277, 0.818171, 0.208902),
                (0.61993, 0.719179, 0.223972),
            ],
        ),
        (
            "current",
            [
                (0.837996, 0.874903, 0.456786),
                (0.691574, 0.805896, 0.258758),
                (0.588609, 0.720668, 0.248438),
            ],
        ),
    ],
)
def test_the_three_parts_of_the_data_have_their_own_means(evaluate, version, parts):
    """Synthetic errors, natural images and real errors, by the graph's id."""
    skipped = ("--skip-graph", 164) if version == "released" else ()
    found = evaluate(*ts2("instruct_blip_dsg", version), *skipped)["partitions"]

    assert ["synth", "nat", "real"] == list(found)
    for part, expected in zip(found.values(), parts, strict=True):
        assert expected == pytest.approx((part["rank"], part["sep"], part["delta_raw"]), abs=6e-7)


@pytest.mark.parametrize(
    ("metric", "correlations", "accuracies", "epsilon", "counts"),
    [
        (
            "tifa_vilt",
            (0.493225, 0.500007, 0.382409),
            (0.575707, 0.575707),
            0,
            (177432, 70352, 47515, 17737, 6564),
        ),
        (
            "tifa_git-large",
            (0.544501, 0.545105, 0.425508),
            (0.592763, 0.592775),
            0.00757576,
            (180365, 62684, 44993, 22472, 9086),
        ),
        (
            "tifa_ofa-large",
            (0.496147, 0.486596, 0.372478),
            (0.568379, 0.568392),
            0.00757576,
            (174708, 70854, 47129, 19959, 6950),
        ),
        (
            "tifa_blip2-flant5xl",
            (0.558983, 0.558073, 0.435997),
            (0.601521, 0.601521),
            0,
            (182329, 61718, 44162, 21474, 9917),
        ),
        (
            "tifa_mplug-large",
            (0.59672, 0.592188, 0.471716),
            (0.609409, 0.609418),
            0.00606061,
            (181490, 53776, 40799, 30255, 13280),
        ),
        (
            "clipscore_vitb32",
            (0.331818, 0.319803, 0.231446),
            (0.520873, 0.520873),
            0,
            (166471, 99049, 54079, 1, 0),
        ),
    ],
)
def test_the_agreement_of_tifas_metrics_is_reproduced(
    evaluate, metric, correlations, accuracies, epsilon, counts
):
    """With 319,600 pairs, counted one by one."""
    found = evaluate(
        "agreement", "--scores", TIFA, "--metric", metric, "--human", "human_avg", "--bootstrap", 0
    )

    assert (800, 319600) == (found["n"], found["pairs"])
    assert correlations == pytest.approx((found["pearson"], found["spearman"], found["kendall"]), abs=6e-7)
    assert accuracies == pytest.approx((found["accuracy_at_0"], found["accuracy"]), abs=6e-7)
    assert epsilon == pytest.approx(found["epsilon"], rel=1e-5)
    assert list(counts) == [
        found[name] for name in ("concordant", "discordant", "ties_human", "ties_metric", "ties_both")
    ]


@pytest.mark.parametrize(
    ("table", "group", "human", "metric", "pairs", "at_0", "accuracy", "epsilon"),
    [
        (TIFA, "text_id", "human_avg", "tifa_vilt", 1600, 0.4725, 0.47375, 0.0555556),
        (TIFA, "text_id", "human_avg", "tifa_git-large", 1600, 0.52125, 0.52375, 0.0625),
        (TIFA, "text_id", "human_avg", "tifa_blip2-flant5xl", 1600, 0.508125, 0.514375, 0.1),
        (TIFA, "text_id", "human_avg", "clipscore_vitb32", 1600, 0.45, 0.48375, 1.16042),
        (TEASER, "item", "human", "clip_flant5", 330, 0.845455, 0.848485, 0.002),
        (TEASER, "item", "human", "clip", 330, 0.518182, 0.518182, 0),
    ],
)
def test_pairs_of_the_same_prompt_have_one_epsilon(
    evaluate, table, group, human, metric, pairs, at_0, accuracy, epsilon
):
    """That is the variant with --group."""
    columns = ("--metric", metric, "--human", human, "--group", group, "--bootstrap", 0)

    for average in ("groups", "pairs"):  # groups are of one size
        found = evaluate("agreement", "--scores", table, *columns, "--average", average)
        assert (average, pairs) == (found["average"], found["pairs"])
        assert (at_0, accuracy) == pytest.approx((found["accuracy_at_0"], found["accuracy"]), abs=6e-7)
        assert epsilon == pytest.approx(found["epsilon"], rel=1e-5)


HUMAN = [
    (49, 6, 966.5, 258.5, 3.52702, 0.000420268, ">>", 0.000316523, ">>"),
    (41, 14, 500, 361, 0.901904, 0.367108, "==", 0.215236, "=="),
    (48, 7, 950, 226, 3.72012, 0.000199131, ">>", 0.000141741, ">>"),
    (49, 6, 289, 936, -3.22134, 0.00127593, "=<", 0.000687869, "<<"),
    (44, 11, 540.5, 449.5, 0.532574, 0.594329, "==", 0.701335, "=="),
    (46, 9, 884.5, 196.5, 3.76753, 0.00016487, ">>", 7.70138e-05, ">>"),
]
VQASCORE = [
    (54, 1, 1120.5, 364.5, 3.25469, 0.00113515, "=>", 0.00115027, "=>"),
    (54, 1, 794, 691, 0.443449, 0.657441, "==", 0.672193, "=="),
    (55, 0, 1088.5, 451.5, 2.66863, 0.00761622, "=>", 0.00761622, "=>"),
    (55, 0, 366, 1174, -3.38499, 0.000711801, "<<", 0.000711801, "<<"),
    (54, 1, 622, 863, -1.03755, 0.299482, "==", 0.293015, "=="),
    (54, 1, 1124, 361, 3.28484, 0.00102039, "=>", 0.00103706, "=>"),
]
CLIP = [
    (54, 1, 1085.5, 399.5, 2.95388, 0.00313806, "=>", 0.00317961, "=>"),
    (51, 4, 615, 711, -0.450015, 0.652699, "==", 0.67514, "=="),
    (54, 1, 760, 725, 0.150698, 0.880214, "==", 0.896658, "=="),
    (51, 4, 311.5, 1014.5, -3.29543, 0.000982729, "<<", 0.000972554, "<<"),
    (54, 1, 412.5, 1072.5, -2.84203, 0.00448272, "=<", 0.0041554, "=<"),
    (54, 1, 850.5, 634.5, 0.93002, 0.352361, "==", 0.361044, "=="),
]


@pytest.mark.parametrize(("value", "table"), [("human", HUMAN), ("clip_flant5", VQASCORE), ("clip", CLIP)])
@pytest.mark.parametrize("alpha", [0.001, 0.05])
def test_generators_have_the_relations_of_the_signed_rank_test(evaluate, value, table, alpha):
    """Four generators on 55 prompts, with exact ties of differences, under both rules for zeros."""
    arguments = *ordering(value), "--alpha", alpha
    found = evaluate(*arguments)["pairs"]
    pratt = evaluate(*arguments, "--zero-method", "pratt")["pairs"]
    places = [(a, b) for at, a in enumerate(NAMES) for b in NAMES[at + 1 :]]
    which = 0 if alpha == 0.001 else 1

    assert places == [(pair["a"], pair["b"]) for pair in found]
    for pair, of_pratt, expected in zip(found, pratt, table, strict=True):
        n, zeros, plus, minus, z, p, relations, p_pratt, relations_pratt = expected
        assert (n, zeros, plus, minus) == (pair["n"], pair["zeros"], pair["w_plus"], pair["w_minus"])
        assert (z, p, p_pratt) == pytest.approx((pair["z"], pair["p"], of_pratt["p"]), rel=1e-5)
        assert relations[which] == pair["relation"]
        assert relations_pratt[which] == of_pratt["relation"]


def test_vqascore_orders_generators_as_people_do_at_one_level_and_not_at_another(evaluate):
    """Two of six pairs at 0.001, all six at 0.05, where generators fall into two tiers."""
    strict = evaluate(*ordering("clip_flant5"), "--human", "human")
    loose = evaluate(*ordering("clip_flant5"), "--human", "human", "--alpha", 0.05)

    assert (2 / 6, 1.0) == (strict["agreement"], loose["agreement"])
    assert strict["tiers"] is None
    assert [["DALLE_3", "Midjourney_6"], ["SDXL_Base", "DeepFloyd_I_XL_v1"]] == loose["tiers"]
    assert ["DALLE_3", "Midjourney_6", "DeepFloyd_I_XL_v1", "SDXL_Base"] == loose["human_order"]


def test_the_alpha_of_dsgs_ratings_is_reproduced(evaluate):
    """3,995 ratings of 800 pictures."""
    found = evaluate(
        "alpha", "--ratings", LIKERT, "--unit", "image", "--rater", "rater", "--rating", "rating"
    )

    assert (0.396883, 0.68543, 0.684408) == pytest.approx(
        (found["nominal"], found["ordinal"], found["interval"]), abs=6e-7
    )
    assert (800, 3995, 5) == (found["units"], found["ratings"], found["raters"])
    assert found["intervals"] is None


def test_the_alpha_of_tifas_ratings_is_reproduced(evaluate, written):
    """Two ratings of 800 pictures."""
    from scoregate.evaluation.tables import read_table

    rows = [
        {"unit": place, "rater": rater, "rating": record.values[rater]}
        for place, record in enumerate(read_table(TIFA).records)
        for rater in ("first", "second")
    ]
    found = evaluate(
        "alpha", "--ratings", written(rows), "--unit", "unit", "--rater", "rater", "--rating", "rating"
    )

    assert (0.375033, 0.718576, 0.679541) == pytest.approx(
        (found["nominal"], found["ordinal"], found["interval"]), abs=6e-7
    )


def ts2(metric, version):
    return "ts2", "--scores", TS2, "--metric", metric, "--graph", "id", "--node", "rank", "--version", version


def ordering(value):
    return "ordering", "--scores", TEASER, "--value", value, "--model", "model", "--item", "item"
