"""How many file parts a multipart body may hold."""

import json

import pytest

from service.images.frames import MAX_FILES
from service.metrics.common.contract import MAX_IMAGES
from tests.support.pictures import png

pytestmark = pytest.mark.anyio


async def test_a_form_holds_a_file_for_every_frame_of_every_item(serve):
    """And for its references and its source, with the JSON in a file part too; one more is refused."""
    file = ("p.png", png())
    names = [[f"{n}-{frame}" for frame in range(MAX_FILES)] for n in range(2)]
    items = [
        {"prompt": f"a {n}", "image": [{"part": name} for name in frames]} for n, frames in enumerate(names)
    ]
    whole = ("request.json", json.dumps({"items": items}))
    files = {"request": whole} | {name: file for frames in names for name in frames}
    beside = {f"beside {n}": file for n in range(2 * (MAX_IMAGES - MAX_FILES))}
    async with serve(server={"max_items": 2}) as client:
        taken = await client.post("/score", files=files | beside)
        refused = await client.post("/score", files=files | beside | {"more": file})

    assert 200 == taken.status_code, taken.text
    assert not taken.json()["partial"]
    assert (400, "malformed") == (refused.status_code, refused.json()["code"])
