"""Question styles from an operator's files: chosen by an option, and part of a set's identity."""

import pytest

from models.core.outcomes import Text
from service.core.settings import SettingsError
from service.wiring.load import settings_of
from tests.support.pictures import item
from tests.support.questions import scored, written

pytestmark = pytest.mark.anyio

ANSWER = "About dog (animal):\nQ: is there a dog?\nChoices: yes, no\nA: yes"


@pytest.fixture
def tables(tmp_path, fakes):
    """The table of a style in the form of TIFA's code, and an LLM that answers it."""
    for name in ("instructions", "examples"):
        (tmp_path / f"{name}.txt").write_text(f"{name} of mine\n")
    own = fakes["questions"].answer
    fakes["questions"].answer = lambda call: Text(ANSWER) if call.schema is None else own(call)
    files = {name: str(tmp_path / f"{name}.txt") for name in ("instructions", "examples")}
    return {"questions": {"styles": {"paper": {"parser": "tifa_lines", **files}}}}


async def test_a_metric_uses_the_style_that_its_option_names(serve, fakes, tables):
    """Both texts are in the message, and the set is another one than in the metric's own style."""
    async with serve(**tables) as client:
        mine = await scored(client, "tifa", item("a red dog"), style="paper")
        own = await scored(client, "tifa", item("a red dog"))
        again = (await written(client, "paper", "a red dog")).json()["sets"][0]

    calls = fakes["questions"].calls
    assert ["instructions of mine\n\nexamples of mine\n\nDescription: a red dog\nEntities"] == [
        call.user for call in calls if call.schema is None
    ]
    assert 2 == len(calls)
    ids = [result["details"]["tifa"]["question_set"] for result in (mine, own)]
    assert ids[0] != ids[1]
    assert (ids[0], "paper", True) == (again["id"], again["style"], again["cached"])
    assert ["is there a dog?"] == [q["text"] for q in again["questions"]]


async def test_other_examples_make_a_new_set(serve, fakes, tables, tmp_path):
    """The same name in a profile with another file is looked up under another key."""
    for examples in ("one", "another"):
        (tmp_path / "examples.txt").write_text(examples)
        async with serve(**tables) as client:
            await written(client, "paper", "a red dog")

    assert 2 == len(fakes["questions"].calls)


async def test_a_set_of_a_style_is_pinned_together_with_it(serve, tables):
    """Without the option, the set is of another style than the metric's."""
    async with serve(**tables) as client:
        id = (await written(client, "paper", "a red dog")).json()["sets"][0]["id"]
        pinned = await scored(client, "tifa", item("a red dog"), style="paper", question_set=id)
        other = await scored(client, "tifa", item("a red dog"), question_set=id)

    assert id == pinned["details"]["tifa"]["question_set"]
    assert "that set is of the style paper, and not tifa" in other["errors"]["tifa"]["detail"]


@pytest.mark.parametrize(
    ("metric", "options", "detail"),
    [
        ("tifa", {"style": "other"}, "paper"),
        ("tifa", {"style": "paper", "verify": True}, "cannot be combined"),
        ("dsg", {"style": "paper"}, "style"),
    ],
)
async def test_a_style_that_cannot_be_used_is_refused(serve, tables, metric, options, detail):
    """One of another metric, one that is in no profile, and one with an option about the metric's own."""
    body = {"items": [item("a red dog")], "metrics": [metric], "options": {metric: options}}
    async with serve(**tables) as client:
        answer = await client.post("/score", json=body)

    assert 422 == answer.status_code
    assert detail in answer.text


async def test_a_composites_part_may_name_a_style(serve, fakes, tables):
    """As any option."""
    async with serve(composites={"reward": {"tifa": {"weight": 1, "style": "paper"}}}, **tables) as client:
        await scored(client, "reward", item("a red dog"))

    assert [None] == [call.schema for call in fakes["questions"].calls]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"parser": "xml"}, r"questions\.styles\.paper\.parser: there is no parser 'xml'; there are dsg,"),
        ({"instructions": "/missing.txt"}, r"questions\.styles\.paper\.instructions: .*missing\.txt"),
        ({"examples": "/dev/null"}, r"questions\.styles\.paper\.examples: /dev/null is empty"),
        ({"parser": "dsg_lines"}, r"instructions: this parser needs a table with tuples, questions, dep"),
        ({"examples": {"tuples": "a"}}, r"examples: this parser needs one file"),
        ({"parsers": "tifa"}, r"questions\.styles\.paper\.parsers"),
    ],
)
def test_a_wrong_table_is_an_error_that_names_the_key(tables, change, error):
    """When the profile is read, so before a model is loaded."""
    tables["questions"]["styles"]["paper"] |= change
    with pytest.raises(SettingsError, match=error):
        settings_of({"models": {}, **tables}, "test", {})


@pytest.mark.parametrize("name", ["dsg", "vqascore", "Mine"])
def test_a_styles_name_is_new_and_in_lower_case(tables, name):
    """No metric and no style has it."""
    tables["questions"]["styles"] = {name: tables["questions"]["styles"]["paper"]}
    with pytest.raises(SettingsError, match=rf"questions\.styles\.{name}"):
        settings_of({"models": {}, **tables}, "test", {})
