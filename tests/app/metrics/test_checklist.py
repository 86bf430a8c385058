"""Checklists in the app: files of the operator and tables of a request, around a fake model."""

from math import fsum
from statistics import fmean

import pytest

from models.core.outcomes import Likelihood
from models.families.fake.model import answer
from service.core.settings import SettingsError
from tests.support.checklists import FILM, QUESTIONS, by_masks, by_mean, write_checklists
from tests.support.pictures import b64, item, png
from tests.support.questions import noted, scored

pytestmark = pytest.mark.anyio
COLOURS = ["red", "lime", "blue", "black", "white", "teal"]
TABLE = {"questions": ["Is it red?", "Is it round?"], "weights": [2, -1], "intercept": 0.5}


@pytest.fixture
def released(tmp_path):
    """The settings of checklists in the forms of releases."""
    return write_checklists(tmp_path / "checklists")


def answers(fakes, texts, colour):
    """Whether the model says yes to each text about the picture of a colour, from its own calls."""
    said = {call.question: answer(call).logit > 0 for call in fakes["vqa"].calls if shows(call, colour)}
    return [said[f"{text} Please answer yes or no."] for text in texts]


def shows(call, colour):
    return call.image.file.encoded == png(colour)


async def test_the_score_of_a_release_is_its_dot_product_with_masks(serve, fakes, released, tmp_path):
    """With the vqascore of the item as the first answer; each picture equals itself alone."""
    items = [item("a red square", b64(png(colour))) for colour in COLOURS]
    body = {"items": items, "metrics": ["checklist", "vqascore"], "explain": True}
    body["options"] = {"checklist": {"checklist": "image"}}
    async with serve(checklists=released) as client:
        together = (await client.post("/score", json=body)).json()["results"]
        alone = [
            (await client.post("/score", json={**body, "items": [one]})).json()["results"][0] for one in items
        ]

    masked = 0
    for colour, result in zip(COLOURS, together, strict=True):
        yes = answers(fakes, QUESTIONS, colour)
        found, details = result["scores"], result["details"]["checklist"]
        expected = by_masks(yes, tmp_path / "checklists", found["vqascore"])
        assert expected == pytest.approx(found["checklist"], abs=1e-12)
        assert found["vqascore"] == details["alignment"]["score"]
        parts = [details["intercept"], details["alignment"]["contribution"]]
        parts += [question["contribution"] for question in details["questions"]]
        assert fsum(parts) == found["checklist"]
        assert yes == [question["answer"] == "yes" for question in details["questions"]]
        masked += sum(question["score"] == 0 for question in details["questions"])
    assert masked > 0
    assert [one["scores"] for one in together] == [one["scores"] for one in alone]


async def test_the_score_of_a_video_is_the_mean_of_weight_and_answer_over_its_frames(
    serve, fakes, released, tmp_path
):
    """The prompt takes the place of the release's placeholder; no mask, no intercept."""
    options = {"checklist": "video"}
    asked = [text.replace("[[prompt]]", "a [[prompt]] square") for text in FILM]
    frames = [b64(png(colour)) for colour in COLOURS]
    async with serve(checklists=released) as client:
        result = await scored(client, "checklist", item("a [[prompt]] square", frames), **options)

    each = [by_mean(answers(fakes, asked, colour), tmp_path / "checklists") for colour in COLOURS]
    assert fmean(each) == pytest.approx(result["scores"]["checklist"], abs=1e-12)
    assert len(set(each)) == len(each)


async def test_a_changed_file_is_another_checklist_and_no_score_of_the_old_one_is_used_again(
    serve, fakes, released, tmp_path
):
    """The provenance has its digest, and a request that names another digest is refused."""
    body = {"items": [item()], "metrics": ["checklist"], "explain": True}
    found, named, pinned = [], [], []
    for seed in (7, 8):
        write_checklists(tmp_path / "checklists", seed)
        async with serve(checklists=released) as client:
            told = (await client.post("/score", json=body)).json()
            named.append(told["provenance"]["options"]["checklist"]["checklist"])
            options = {"checklist": {"checklist": named[0]}}
            pinned.append(await client.post("/score", json={**body, "options": options}))
        [result] = told["results"]
        found.append(result["scores"]["checklist"])
        aligned = result["details"]["checklist"]["alignment"]["score"]
        expected = by_masks(answers(fakes, QUESTIONS, "red"), tmp_path / "checklists", aligned)
        assert expected == pytest.approx(found[-1], abs=1e-12)

    assert all(name.startswith("image@sha256:") for name in named)
    assert 2 == len(set(named)) == len(set(found))
    assert [200, 422] == [answer.status_code for answer in pinned]
    assert "has another digest here" in pinned[1].text


async def test_the_first_checklist_of_the_settings_is_the_default(serve, released):
    """That of the demo, which is about its shapes, has a warning."""
    async with serve(checklists=released) as client:
        own, none = await noted(client, "checklist", item())
    async with serve() as client:
        shipped, warnings = await noted(client, "checklist", item())

    assert "image" == own["details"]["checklist"]["checklist"]
    assert "demo" == shipped["details"]["checklist"]["checklist"]
    assert [] == none
    assert ["the checklist is that of the demo, about circles and squares"] == warnings


async def test_a_request_brings_its_own_where_the_settings_allow_it(serve, fakes):
    """Its name is the digest; it cannot name files of the service."""
    async with serve(checklists={"allow_inline": True}) as client:
        result = await scored(client, "checklist", item(), checklist=TABLE)
        body = {"items": [item()], "metrics": ["checklist"]}
        wrong = {"options": {"checklist": {"checklist": {**TABLE, "weights": "image.json"}}}}
        refused = await client.post("/score", json={**body, **wrong})
    async with serve() as client:
        off = await client.post("/score", json={**body, "options": {"checklist": {"checklist": TABLE}}})

    red, round = answers(fakes, TABLE["questions"], "red")
    assert 0.5 + (2 if red else -2) - (1 if round else -1) == result["scores"]["checklist"]
    assert result["details"]["checklist"]["checklist"].startswith("sha256:")
    assert [422, 422] == [refused.status_code, off.status_code]
    assert "/options/checklist/checklist/weights" == refused.json()["errors"][0]["pointer"]
    assert "checklists of a request are off" in off.text


@pytest.mark.parametrize(
    ("log_p", "said"),
    [
        ((-0.1, -3.0), []),
        ((-3.0, -2.0), ["yes and no have 0.19 of the probability of the answer to question 1"]),
    ],
)
async def test_answers_that_the_model_would_not_give_are_one_warning(serve, fakes, log_p, said):
    """With the question that has the least, and how many others there are."""
    fakes["vqa"].answer = lambda call: Likelihood((log_p[0],), *log_p)
    async with serve(checklists={"allow_inline": True}) as client:
        result, warnings = await noted(client, "checklist", item(), checklist=TABLE)

    assert (1.5 if log_p[0] > log_p[1] else -0.5) == result["scores"]["checklist"]
    assert len(said) == len(warnings)
    assert all(warning.startswith(text) for warning, text in zip(warnings, said, strict=True))


async def test_a_question_without_any_answer_is_an_error_and_no_score(serve, fakes):
    """Both words have a probability that is 0 in floating point."""
    fakes["vqa"].answer = lambda call: Likelihood((-1e4,), -1e4, -1e4)
    async with serve(checklists={"allow_inline": True}) as client:
        result = await scored(client, "checklist", item(), checklist=TABLE)

    error = result["errors"]["checklist"]
    assert ("unanswered", True) == (error["code"], error["detail"].startswith("question 1: "))


async def test_a_file_that_is_no_checklist_ends_the_start_with_its_name_and_field(serve, released, tmp_path):
    (tmp_path / "checklists" / "image.json").write_text("[1, 2]", "utf-8")

    with pytest.raises(SettingsError, match=r"checklists\.folders: image\.toml: weights: there are 2,"):
        async with serve(checklists=released):
            pass
