"""GenEval's folder of generated pictures, whose prompts may lack samples."""

import json

import pytest

from tests.support.pictures import png
from tests.unit.client.cli.served import Service, lines, metric

METADATA = {"tag": "single_object", "include": [{"class": "bench", "count": 1}]}


@pytest.fixture
def service():
    """A service of the metric `geneval`."""
    return Service("clip@1", metrics={"geneval": metric()})


def folder_of_geneval(folder, *samples):
    """A prompt's folder for each number of pictures."""
    for number, count in enumerate(samples):
        (folder / f"{number:05d}" / "samples").mkdir(parents=True, exist_ok=True)
        file = folder / f"{number:05d}" / "metadata.jsonl"
        file.write_text(json.dumps(METADATA | {"prompt": f"bench {number}"}), "utf-8")
        for place in range(count):
            (file.parent / "samples" / f"{place:05d}.png").write_bytes(png())


def test_prompts_of_geneval_without_samples_are_named_and_counted(command, service, tmp_path):
    """By the run, which ends with status 1, and by the table, until they have samples."""
    folder, service.score = tmp_path / "a", 1.0
    folder_of_geneval(folder, 1, 0, 2)
    (folder / "00001" / "samples" / "grid.png").write_bytes(png())
    batch = ("batch", "a", "-o", "a/results.jsonl", "-m", "geneval")
    status, _, said = command(service, *batch)
    held = lines(folder / "results.jsonl")
    table = json.loads(command(service, "bench", "geneval", "A=a", "--json")[1])["generators"][0]

    assert 1 == status
    assert "cannot read row 2, 00001/samples: there is no sample, such as samples/0000.png\n" in said
    assert "3 of 4 rows have all scores" in said
    assert ("bench 1", {}) == (held[1]["prompt"], held[1]["scores"])
    assert (3, 1) == (table["images"], table["dropped"])

    folder_of_geneval(folder, 1, 1, 2)
    assert 0 == command(service, *batch)[0]
    table = json.loads(command(service, "bench", "geneval", "A=a", "--json")[1])["generators"][0]
    assert (4, 0) == (table["images"], table["dropped"])


@pytest.mark.parametrize("with_folders", [True, False])
def test_a_folder_of_geneval_without_any_sample_is_refused(command, service, tmp_path, with_folders):
    """Status 2, and no empty results."""
    folder_of_geneval(tmp_path / "a", 0, 0)
    if not with_folders:
        for each in (tmp_path / "a").iterdir():
            (each / "samples").rmdir()
    status, _, said = command(service, "batch", "a", "-o", "out.jsonl", "-m", "geneval")

    assert (2, "scoregate: a: no prompt has a sample, such as samples/0000.png\n") == (status, said)
    assert not (tmp_path / "out.jsonl").exists()
