"""The service as people run it: a process of its own, with the shipped demo models."""

import base64
import io
import json
import math
import socket
import threading
from pathlib import Path
from random import Random
from statistics import median

import httpx
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
import pytest

from demo.samples import FOLDER, listed
from demo.show import main as demo
from loadtest import corpus
from tests.support.pictures import b64
from tests.support.service import until

LISTED = listed()
METRICS = ["vqascore", "clipscore", "dsg"]


def items(which="right"):
    pictures = [base64.b64encode((FOLDER / sample["file"]).read_bytes()).decode() for sample in LISTED]
    return [{"prompt": s[which], "image": p} for s, p in zip(LISTED, pictures, strict=True)]


@pytest.fixture(scope="module")
def client(demo_service):
    """A client of the shared service around the demo models."""
    with httpx.Client(base_url=demo_service.url, timeout=120, trust_env=False) as client:
        yield client


def scored(client, items, metrics=METRICS):
    answer = client.post("/score", json={"items": items, "metrics": metrics, "timeout_ms": 120_000})
    assert answer.status_code == 200, answer.text
    assert not answer.json()["partial"]
    return [result["scores"] for result in answer.json()["results"]]


def test_every_sample_scores_higher_with_its_right_prompt(client):
    """The demo's promise, for VQAScore; the other metrics give numbers in their range."""
    right, wrong = scored(client, items("right")), scored(client, items("wrong"))

    assert [] == [
        sample["file"]
        for sample, r, w in zip(LISTED, right, wrong, strict=True)
        if r["vqascore"] <= w["vqascore"]
    ]
    assert all(0 <= score["dsg"] <= 1 and -1 <= score["clipscore"] <= 1 for score in right + wrong)


def test_all_its_models_are_demo_models_but_the_one_that_reads_text(client):
    """By this the first page warns that its scores mean nothing for real pictures."""
    models = client.get("/models").json()["models"]

    assert {"ocr"} == {model["role"] for model in models if not model["demo"]}
    assert {"vqa", "clip"} < {model["role"] for model in models if model["demo"]}


def test_the_demo_models_write_nothing_but_question_sets_into_the_home_folder(client, demo_service):
    """By default, and when they score; no library keeps a store of its own there, as a telemetry would."""
    scored(client, items())

    files = [path for path in demo_service.home.rglob("*") if not path.is_dir()]
    assert {".cache/scoregate"} == {str(path.parent.relative_to(demo_service.home)) for path in files}


def test_a_pair_scores_the_same_alone_and_in_company(client):
    """Within 1e-5 in float32, whoever its neighbours are."""
    together = scored(client, items(), ["vqascore", "clipscore"])
    for item, among in zip(items(), together, strict=True):
        [alone] = scored(client, [item], ["vqascore", "clipscore"])

        assert alone == pytest.approx(among, abs=1e-5)


def test_requests_that_arrive_together_share_batches(client):
    """Twenty single-pair requests at once take fewer than twenty batches."""

    def batches():
        return count(client, 'scoregate_batch_size_count{model="vqa"}')

    before, one = batches(), items()[0]
    threads = [threading.Thread(target=scored, args=(client, [one], ["vqascore"])) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 1 <= batches() - before < 20


def count(client, series):
    text = client.get("/metrics").text
    return float(next(line for line in text.splitlines() if line.startswith(series)).rpartition(" ")[2])


def test_the_stages_of_a_single_pair_add_up_to_its_total(client):
    """Within 10 % in the median of several requests, each with a picture that no cache has."""
    pictures, shares = corpus.distinct("rl", Random(28)), []
    for _ in range(15):
        body = {"items": [{"prompt": "a red circle", "image": b64(next(pictures))}], "metrics": ["vqascore"]}
        timings = client.post("/score", json=body).raise_for_status().json()["timings_ms"]
        total = timings.pop("total")
        assert min(timings[stage] for stage in ("receive", "decode", "prepare", "model")) > 0
        shares.append(sum(timings.values()) / total)

    assert 0.93 <= median(shares) <= 1.1, shares


def test_words_the_demo_models_never_learnt_are_named(client):
    """A score for such a prompt comes with a warning."""
    odd = {**items()[0], "prompt": "a red unicorn"}
    answer = client.post("/score", json={"items": [items()[0], odd]}).json()

    assert [{"code": "demo_model"}, {"code": "unknown_words", "item": 1}] == answer["warning_codes"]
    warning = answer["warnings"][1]
    assert "unicorn" in warning
    assert "red" not in warning
    assert warning.startswith("item 1: words that ")
    assert math.isfinite(answer["results"][1]["scores"]["vqascore"])


def test_a_prompt_outside_the_language_has_no_dsg_score(client):
    """The question LLM finds nothing to ask: an error, not a mean over nothing."""
    odd = {**items()[0], "prompt": "a photo of a city at night"}
    answer = client.post("/score", json={"items": [odd], "metrics": ["dsg"]}).json()

    assert {} == answer["results"][0]["scores"]
    assert "no_questions" == answer["results"][0]["errors"]["dsg"]["code"]


def test_text_in_a_picture_is_read_by_the_demo_profile(client):
    """With real weights, and without a warning that they are the demo's."""
    sign = PIL.Image.new("RGB", (512, 512), "white")
    font = PIL.ImageFont.load_default(48)
    PIL.ImageDraw.Draw(sign).text((90, 220), "OPEN ALL NIGHT", fill="darkred", font=font)
    encoded = io.BytesIO()
    sign.save(encoded, "PNG")
    image = base64.b64encode(encoded.getvalue()).decode()
    prompts = ['a sign "Open all night"', "a sign “OPEN ALL DAY”", "a sign"]
    body = {"items": [{"prompt": text, "image": image} for text in prompts], "metrics": ["ocr"]}
    answer = client.post("/score", json=body).json()
    right, wrong, nothing = answer["results"]

    assert 1.0 == right["scores"]["ocr"]
    assert 0.5 == wrong["scores"]["ocr"]
    assert "no_text" == nothing["errors"]["ocr"]["code"]
    assert "warnings" not in answer


def test_geneval_judges_the_samples_that_it_has_words_for(client):
    """With the demo's detector and its CLIP; a count by colour is beyond it."""
    judged = {
        (sample["file"], which): described(sample, which)
        for sample in LISTED
        for which in sample["geneval"]
        if sample["file"] != "count-by-colour.jpg"
    }
    scores = scored(client, [*judged.values()], ["geneval"])

    assert 12 == len(judged)
    assert [float(which == "right") for _, which in judged] == [score["geneval"] for score in scores]


def test_geneval_says_what_it_misses_and_where_it_saw_something(client):
    """The reason, and a box around each thing in pixels of the picture."""
    [sample] = [sample for sample in LISTED if sample["file"] == "count.png"]
    body = {"items": [described(sample, "wrong")], "metrics": ["geneval"], "explain": True}
    [result] = client.post("/score", json=body).json()["results"]

    details = result["details"]["geneval"]
    assert "expected star>=4, found 3" == details["reason"]
    assert ["star"] * 3 == [box["class"] for box in details["boxes"]]
    assert min(box["score"] for box in details["boxes"]) > 0.9
    with PIL.Image.open(FOLDER / "count.png") as picture:
        assert picture.size == (details["width"], details["height"])
        middles = {
            tuple(round((box["box"][i] + box["box"][i + 2]) / 2) for i in (0, 1)) for box in details["boxes"]
        }
        assert all(picture.getpixel(middle)[:2] > (200, 200) for middle in middles)  # yellow


def described(sample, which):
    """One of a sample's items with GenEval's metadata."""
    picture = base64.b64encode((FOLDER / sample["file"]).read_bytes()).decode()
    return {"prompt": sample[which], "image": picture, "options": {"geneval": sample["geneval"][which]}}


def test_a_long_prompt_is_scored_and_said_to_be_cut(client):
    """CLIP's context is short; nobody should have to guess."""
    long = {**items()[0], "prompt": "a red circle and " * 40 + "a blue square"}
    answer = client.post("/score", json={"items": [long], "metrics": ["clipscore"]}).json()

    assert any("cut" in warning for warning in answer["warnings"])


def test_make_demo_ends_well(tmp_path, capsys):
    """The table, the page, exit status 0."""
    page = tmp_path / "demo.html"

    assert 0 == demo(["--page", str(page)])
    assert f"VQAScore tells {len(LISTED)} of {len(LISTED)} apart" in capsys.readouterr().out
    assert Path(page).stat().st_size > 10_000


def test_a_caller_who_hangs_up_is_noticed(client):
    """The connection is closed before the answer: 499 in the instruments, and the work is dropped."""
    series = 'scoregate_requests_total{code="499",route="/score"}'
    body = json.dumps({"items": items() * 12, "metrics": METRICS}).encode()
    head = "POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    before = count(client, series)
    with socket.create_connection((client.base_url.host, client.base_url.port)) as caller:
        caller.sendall(head.encode() + body)

    until(lambda: count(client, series) > before)
    assert before + 1 == count(client, series)
