"""`scoregate verify` on a service that is a function."""

import json
import re

import httpx2 as httpx
import pytest

from scoregate.local import Service
from scoregate.runs.verification import (
    IMAGES,
    PROMPTS,
    PUBLISHED_SCORES,
    SCORES,
    VerificationSettings,
    disordered,
    shipped,
)
from scoregate.runs.verification import verify as verification
from tests.support.answers import request_of, scored

IDS = {"vqa": "zhiqiulin/clip-flant5-xxl", "clip": "ViT-L-14-336-quickgelu/openai"}
MODELS = {"vqascore": "vqa", "clipscore": "clip"}
RIGHT = {
    metric: [value for part in values.values() for value in part]
    for metric, (_, _, values) in PUBLISHED_SCORES.items()
}


def service(ids=IDS, revision="", dtype="bfloat16", **scores):
    """A service with these scores, by metric, for each item in turn."""
    scores = RIGHT | scores

    def answer(request):
        if request.url.path == "/models":
            models = [
                {"name": name, "id": id, "revision": revision, "dtype": dtype} for name, id in ids.items()
            ]
            metrics = {metric: {"models": [name]} for metric, name in MODELS.items() if name in ids}
            return httpx.Response(200, json={"models": models, "metrics": metrics, "limits": {}})
        asked = request_of(request)
        given = [
            {metric: scores[metric][n] for metric in asked["metrics"]} for n in range(len(asked["items"]))
        ]
        results = [
            {
                "index": n,
                "scores": {metric: value for metric, value in each.items() if value is not None},
                "errors": {
                    metric: {"code": "model_fault", "detail": "it failed"}
                    for metric, value in each.items()
                    if value is None
                },
            }
            for n, each in enumerate(given)
        ]
        return scored(request, results=results)

    return answer


@pytest.fixture
def verify(command, tmp_path):
    """The command on eight files: its status, stdout and stderr."""
    for folder in PROMPTS:
        (tmp_path / folder).mkdir(parents=True)
        for name in IMAGES:
            (tmp_path / folder / name).write_bytes((tmp_path / "p.png").read_bytes())
    return lambda served: command(served, "verify", "--t2v-metrics", str(tmp_path))


def test_published_scores_hold(verify):
    """Eight values and two orders of each metric."""
    status, out, _ = verify(service())

    assert (0, 20, 0) == (status, out.count("✓"), out.count("✗"))


def test_an_order_that_differs_fails_though_each_value_is_near(verify):
    """CLIP's SDXL before its Midjourney, each within 0.02."""
    status, out, _ = verify(service(clipscore=[0.273, 0.254, 0.297, 0.299, *RIGHT["clipscore"][4:]]))

    assert (1, 1) == (status, out.count("✗"))
    assert "✗" == next(line for line in out.splitlines() if "images/0: order" in line and "✗" in line)[-1]


def test_a_value_that_is_off_fails_though_the_order_holds(verify):
    """DALL-E's picture stays first."""
    status, out, _ = verify(service(vqascore=[0.98, *RIGHT["vqascore"][1:]]))

    assert (1, 1) == (status, out.count("✗"))


def test_a_missing_score_fails(verify):
    """Its value and its order do not hold, and the reason is on stderr."""
    status, out, err = verify(service(vqascore=[None, *RIGHT["vqascore"][1:]]))

    assert (1, 2) == (status, out.count("✗"))
    assert "images/0/DALLE3.png: no vqascore: model_fault: it failed" in err


def test_a_model_without_published_scores_is_not_checked(verify):
    """The other one is."""
    status, out, _ = verify(service(IDS | {"vqa": "zhiqiulin/clip-flant5-xl"}))

    assert (0, 10) == (status, out.count("✓"))
    assert "vqascore: not checked; no scores are known of zhiqiulin/clip-flant5-xl" in out


def test_nothing_checked_is_an_error(verify):
    """And not a success without a table."""
    status, _, err = verify(service({}))

    assert 1 == status
    assert "nothing was checked" in err


def test_a_folder_without_the_pictures_is_a_wrong_call(command):
    """The line names the file."""
    status, _, err = command(service(), "verify", "--t2v-metrics", "/no/such")

    assert 2 == status
    assert "/no/such/images/0/DALLE3.png" in err


@pytest.fixture
def demo():
    """The identity of the demo's CLIP, as the arguments of `service`, and its shipped scores."""
    [known] = [known for known in shipped() if known.metric == "clipscore"]
    recorded = json.loads(SCORES.read_text("utf-8"))["clipscore"]["model"]
    id, revision, dtype = re.fullmatch("(.*)@(.*) in (.*)", recorded).groups()
    return {"ids": {"clip": id}, "revision": revision, "dtype": dtype}, [case.score for case in known.cases]


def test_the_shipped_scores_need_no_argument(command, demo):
    """Six values and three orders; the last value is beyond the tolerance in the second run."""
    identity, scores = demo
    status, out, _ = command(service(**identity, clipscore=scores), "verify")
    wrong, other, _ = command(service(**identity, clipscore=[*scores[:5], scores[5] + 0.002]), "verify")

    assert (0, 9, 0) == (status, out.count("✓"), out.count("✗"))
    assert (1, 8, 1) == (wrong, other.count("✓"), other.count("✗"))


@pytest.mark.parametrize("change", [{"revision": "0123456789ab"}, {"dtype": "bfloat16"}])
def test_another_demo_model_is_not_checked(command, demo, change):
    """A retrained one, or one in another arithmetic: it has other scores, which are not wrong."""
    identity, scores = demo
    status, out, err = command(service(**identity | change, clipscore=scores), "verify")

    assert (1, 0) == (status, out.count("✗"))
    assert f"no scores are known of {identity['ids']['clip']}@" in out
    assert "nothing was checked" in err


def test_published_scores_without_a_checkout_are_not_checked(command):
    """The line names the argument."""
    status, out, _ = command(service(), "verify")

    assert 1 == status
    assert "vqascore: not checked; the published scores need --t2v-metrics DIR" in out


def test_in_python_the_hints_name_arguments(command, answered, demo, tmp_path):
    """The command prints flags for these."""
    of_demo, full = (Service.of(answered(service(**identity))) for identity in (demo[0], {}))
    without = verification(VerificationSettings(), full)
    beside = verification(VerificationSettings(t2v_metrics=tmp_path), of_demo)

    assert "vqascore: not checked; the published scores need t2v_metrics='DIR'" == str(without.unchecked[1])
    assert "clipscore: not checked; the shipped scores are checked without `t2v_metrics`" in map(
        str, beside.unchecked
    )
    _, out, _ = command(service(**demo[0]), "verify", "--t2v-metrics", str(tmp_path))
    assert "clipscore: not checked; the shipped scores are checked without --t2v-metrics" in out


def test_values_that_are_published_as_equal_have_no_order():
    """0.363 and 0.364 may come in any order."""
    assert [] == disordered((0.363, 0.364), (0.37, 0.36))
    assert [(1, 0)] == disordered((0.3, 0.4), (0.37, 0.36))
