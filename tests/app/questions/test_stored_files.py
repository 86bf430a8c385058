"""Files of question sets that older versions wrote."""

import shutil

import pytest

from tests.support.paths import GOLDEN
from tests.support.pictures import item

pytestmark = pytest.mark.anyio

OF_0_1_0 = GOLDEN / "questions_0.1.0.sqlite3"

# By the version that wrote the file.
IDS = {
    "a red dog on a mat": "sha256:5cf8579b55bab86609c354f597fc349096446e8f8085112f4cca22872afce089",
    "a blue cat": "sha256:338a0a1ca52abce4eb421beffb137bef2b824131f010e52d7281eeebe8d18130",
}
CHAIN = [
    {"id": 1, "kind": "entity - whole", "text": "Is there a dog?", "depends_on": [], "expected": "yes"},
    {"id": 2, "kind": "attribute - color", "text": "Is the dog red?", "depends_on": [1], "expected": "yes"},
    {
        "id": 3,
        "kind": "relation - spatial",
        "text": "Is the red dog – été 🐕 – on a mat?",
        "depends_on": [1, 2],
        "expected": "yes",
    },
]


async def test_the_sets_of_a_file_of_0_1_0_are_found_by_prompt_and_by_id(serve, fakes, tmp_path):
    """No LLM is asked again, no id changes, and what a caller pinned scores."""
    shutil.copy(OF_0_1_0, tmp_path / "questions.sqlite3")
    async with serve() as client:
        found = (await client.post("/questions", json={"prompts": list(IDS)})).json()["sets"]
        shown = [(await client.get(f"/questions/{id}")).json() for id in IDS.values()]
        pinned = [item(prompt, options={"dsg": {"question_set": id}}) for prompt, id in IDS.items()]
        scored = (await client.post("/score", json={"items": pinned, "metrics": ["dsg"]})).json()

    assert [(id, True) for id in IDS.values()] == [(one["id"], one["cached"]) for one in found]
    assert list(IDS.values()) == [one["id"] for one in shown]
    assert CHAIN == shown[0]["questions"]
    assert {"llm", "template", "decoding"} == shown[0]["provenance"].keys()
    assert [["dsg"]] * 2 == [list(result["scores"]) for result in scored["results"]]
    assert [] == fakes["questions"].calls
