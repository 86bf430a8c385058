"""README.md: the request to paste."""

import re
import shlex

import pytest

from tests.support.fake_objects import Detector
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text("utf-8")


def form(command: str) -> tuple[dict[str, str], dict[str, bytes]]:
    """The fields and the files of a curl command."""
    words = shlex.split(command)
    pairs = [words[n + 1].split("=", 1) for n, word in enumerate(words) if word == "-F"]
    files = {name: (ROOT / value[1:]).read_bytes() for name, value in pairs if value.startswith("@")}
    return {name: value for name, value in pairs if name not in files}, files


@pytest.mark.anyio
async def test_the_request_to_paste_has_the_shown_scores(serve):
    """Its picture is in the repository, and the response has a score for each metric that it names."""
    [command] = re.findall(r"^curl .*$", README, re.MULTILINE)
    data, files = form(command)
    async with serve() as client:
        response = await client.post(f"/{command.rpartition('/')[2]}", data=data, files=files)

    assert 200 == response.status_code
    [result] = response.json()["results"]
    assert result["scores"].keys() == set(data["metrics"].split(","))
    assert re.findall(r'"(\w+)": [\d.]+[,}]', README.split('"scores": {')[1].split("\n")[0]) == list(
        result["scores"]
    )


@pytest.mark.anyio
async def test_a_prompt_of_the_table_alone_gives_the_error_that_the_page_names(serve, fakes):
    """For GenEval: the demo sends lists of objects, which a reader who pastes a prompt has not."""
    fakes["detector"] = Detector()
    block = README.split("```\nPICTURE")[1].split("```")[0]
    prompts = re.findall(r"(?:right|wrong)  (.+?)  ", block)
    picture = (ROOT / "demo" / "samples" / "binding.png").read_bytes()
    async with serve() as client:
        answers = [
            await client.post("/score", data={"prompt": each, "metrics": "geneval"}, files={"image": picture})
            for each in prompts
        ]

    errors = [answer.json()["results"][0]["errors"]["geneval"] for answer in answers]
    assert 4 == len(errors)
    assert {"no_task"} == {error["code"] for error in errors}
    assert all("send the options tag and include" in error["detail"] for error in errors)
    assert "the error `no_task`" in README
