"""`scoregate.ray.Scorer`, called as an actor of Ray Data calls it; tests/external/ray has a pipeline."""

import importlib
import json
import os
import sys

import numpy as np
import pandas
import pyarrow as pa
import pytest

import scoregate.ray
from scoregate.errors import InputError
from scoregate.images import encoded
from scoregate.runs.results import lines_of
from tests.support.paths import ROOT
from tests.support.pictures import png
from tests.support.shards import tar_of
from tests.unit.client.cli.conftest import run

pytestmark = pytest.mark.slow

__all__ = ["run"]

PROFILE = str(ROOT / "loadtest" / "fake.toml")
METRICS = ["vqascore", "dsg"]
ROWS = [("red", "a red square"), ("blue", "a blue dot"), ("lime", "a red square")]


@pytest.fixture(scope="module")
def scorer(tmp_path_factory):
    """An actor's instance, with its own store of question sets."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("store")
        patch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{folder}/questions.sqlite3")
        yield scoregate.ray.Scorer(PROFILE, METRICS)


def table(**more):
    """A batch with Hugging Face's pictures."""
    images = [{"bytes": png(colour), "path": f"{colour}.png"} for colour, _ in ROWS]
    return pa.table({"image": images, "prompt": [prompt for _, prompt in ROWS], "good": [1, 2, 3], **more})


def scores(found):
    """The scores of each row, without those that a metric lacks."""
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in found["scores"].to_pylist()
    ]


def test_rows_keep_their_columns_and_gain_those_of_batch(scorer, run, tmp_path):
    """The same scores, hashes, models and question sets, cell by cell."""
    members = {}
    for number, (colour, prompt) in enumerate(ROWS):
        members |= {f"{number}.png": png(colour), f"{number}.txt": prompt.encode()}
    tar_of(tmp_path / "0.tar", members)
    assert (
        0 == run("batch", "0.tar", "-o", "out", "-m", "vqascore", "-m", "dsg", "--local", PROFILE).returncode
    )
    found = scorer(table())
    texts = ("models", "question_sets", "warnings")

    assert ["image", "prompt", "good"] == found.column_names[:3]
    assert table() == found.select([0, 1, 2])
    for line, row in zip(lines_of(tmp_path / "out" / "0.parquet"), found.to_pylist(), strict=True):
        assert (line["scores"], line["sha256"]) == (row["scores"], row["sha256"])
        assert [line.get(name) for name in texts] == [json.loads(row[name]) for name in texts]
        assert {name: None for name in METRICS} == row["errors"]


@pytest.mark.filterwarnings("ignore:::ray.data.context")  # it sets what it deprecates
def test_a_batch_may_have_each_format_of_ray_data(scorer):
    """Arrow, NumPy and pandas; pictures as bytes or as pixels."""
    plain = {"image": [png(colour) for colour, _ in ROWS], "prompt": [prompt for _, prompt in ROWS]}
    expected = scores(scorer(table()))
    pixels = np.stack([np.full((8, 8, 3), value, np.uint8) for value in (0, 128, 255)])

    assert expected == scores(scorer(pa.table(plain)))
    assert expected == scores(scorer({name: np.array(cells, object) for name, cells in plain.items()}))
    assert expected == scores(scorer(pandas.DataFrame(plain)))
    files = pa.table({"image": list(map(encoded, pixels)), "prompt": plain["prompt"]})
    found = scorer({"image": pixels, "prompt": np.array(plain["prompt"])})
    assert scores(scorer(files)) == scores(found)
    assert pixels.tolist() == [row["image"].tolist() for row in found.to_pylist()]


def test_a_row_that_cannot_be_scored_has_the_error(scorer):
    """Of the command or of the service; its neighbours have their scores."""
    prompts = ["a red square", "", "a red square", "a red square"]
    images = [png("red"), png("red"), b"no picture", png("red")[:50]]
    found = scorer(pa.table({"image": images, "prompt": prompts})).to_pylist()
    codes = [row["errors"]["vqascore"] and row["errors"]["vqascore"]["code"] for row in found]

    assert [None, "unreadable_row", "unreadable_row", "image_undecodable"] == codes
    assert "batch, row 2, column prompt is empty" == found[1]["errors"]["vqascore"]["detail"]
    assert [True, False, False, False] == [row["scores"]["vqascore"] is not None for row in found]


@pytest.mark.parametrize("column", ["image", "source", "references"])
@pytest.mark.filterwarnings("ignore:::ray.data.context")  # it sets what it deprecates
def test_pixels_that_are_no_picture_are_an_error_of_their_row(scorer, column):
    """Out of range, NaN or of a wrong shape: it names the column, and the other rows have scores."""
    good = np.full((8, 8, 3), 0.5, np.float32)
    cells = np.empty(5, object)
    cells[:] = [good, 510 * good, np.nan * good, good[..., :2], good]
    pictures = np.array([png()] * 5, object)
    found = scorer({"image": pictures, column: cells, "prompt": np.array(["a"] * 5)}).to_pylist()
    errors = [row["errors"]["vqascore"] for row in found]

    assert [None, *["unreadable_row"] * 3, None] == [error and error["code"] for error in errors]
    whys = ["255; floating point must be", "nan; floating point must be", "the shape (8, 8, 2)"]
    for number, (error, why) in enumerate(zip(errors[1:4], whys, strict=True), 2):
        assert f"batch, row {number}: column {column}: " in error["detail"]
        assert why in error["detail"]


@pytest.mark.filterwarnings("ignore:::ray.data.context")  # it sets what it deprecates
def test_an_array_in_a_column_of_options_is_an_error_of_its_row(scorer):
    """It is no option; the batch has a line for each row."""
    cells = np.empty(2, object)
    cells[:] = [np.zeros((2, 2)), np.zeros((2, 2))]
    pictures = np.array([png()] * 2, object)
    batch = {"image": pictures, "prompt": np.array(["a"] * 2), "vqascore.output": cells}
    [first, second] = scorer(batch).to_pylist()

    assert "batch, row 1, its options are no JSON" in first["errors"]["vqascore"]["detail"]
    assert "batch, row 2, its options are no JSON" in second["errors"]["vqascore"]["detail"]


def test_paths_are_read_in_the_folder_alone(tmp_path, monkeypatch):
    """Relative to it; a path that leads out of it is an error of its row."""
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")
    (tmp_path / "in").mkdir()
    for folder in ("in", "."):
        (tmp_path / folder / "p.png").write_bytes(png())
    scorer = scoregate.ray.Scorer(PROFILE, folder=tmp_path / "in", image_column="file", prompt_column="text")
    found = scorer(pa.table({"file": ["p.png", "../p.png"], "text": ["a"] * 2})).to_pylist()

    assert [None, "unreadable_row"] == [(row["errors"]["vqascore"] or {}).get("code") for row in found]


def test_columns_of_options_are_options_of_the_row(scorer):
    """As in `scoregate batch`; they are noted in `own_options`."""
    [first, *_] = scorer(table(**{"vqascore.output": ["logit", None, None]})).to_pylist()

    assert {"vqascore": {"output": "logit"}} == json.loads(first["own_options"])
    assert scores(scorer(table()))[0]["vqascore"] != first["scores"]["vqascore"]


def test_a_column_that_would_be_added_is_an_error(scorer):
    """With its name: the data set's own cells would be lost."""
    with pytest.raises(ValueError, match="the data set has a column 'scores', which Scorer adds: rename it"):
        scorer(table(scores=[1, 2, 3]))


def test_a_metric_that_the_models_do_not_serve_is_an_error():
    """Before the first batch."""
    with pytest.raises(InputError, match="no metric nonsense; the service has"):
        scoregate.ray.Scorer(PROFILE, "nonsense")


def test_a_file_of_question_sets_is_used_by_the_actor_alone(tmp_path):
    """Its store is a new file, and the environment is as before."""
    content = {"prompt": "a red square", "style": "dsg", "questions": [{"id": 1, "text": "Is it red?"}]}
    (tmp_path / "sets.jsonl").write_text(json.dumps(content) + "\n", "utf-8")
    before = dict(os.environ)
    scorer = scoregate.ray.Scorer(PROFILE, "dsg", questions=tmp_path / "sets.jsonl", explain=True)
    [first, *_] = scorer(table()).to_pylist()

    assert ["Is it red?"] == [each["text"] for each in json.loads(first["details"])["dsg"]["questions"]]
    assert before == dict(os.environ)


def test_the_module_needs_no_ray_until_a_batch_arrives(monkeypatch):
    """Nor is it Ray: imports within the package are absolute."""
    monkeypatch.setitem(sys.modules, "ray", None)
    module = importlib.reload(scoregate.ray)

    assert "scoregate.ray" == module.__name__
    with pytest.raises(ImportError):
        import ray  # noqa: F401
