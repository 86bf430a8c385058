"""README.md: the request to paste."""

import re
import shlex

import pytest

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
