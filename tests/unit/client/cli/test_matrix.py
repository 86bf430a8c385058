"""`scoregate batch --matrix`, then `bench winoground` or `eqben`: items are joined, or refused."""

import json

import pytest

from tests.support.pictures import png
from tests.unit.client.cli.served import Service, metric

SOURCES = ("ag", "kubric", "ag")
EXAMPLES = [
    {
        "id": number,
        "collapsed_tag": source,
        **{f"caption_{n}": f"caption {n} of {number}" for n in (0, 1)},
        **{f"image_{n}": f"ex_{number}_img_{n}" for n in (0, 1)},
    }
    for number, source in enumerate(SOURCES)
]
SELECTED = [
    {"image0": f"eqben{source}/{n}_a.png", "image1": f"eqben{source}/{n}_b.png"}
    | {f"caption{place}": f"caption {place} of {n}" for place in (0, 1)}
    for n, source in enumerate(SOURCES)
]


@pytest.fixture
def tags(command, written, tmp_path):
    """The status, stderr, and the number of items by tag, of a benchmark over a matrix."""
    for row in (*EXAMPLES, *SELECTED):
        for name in (row[key] for key in row if key.startswith("image")):
            file = tmp_path / (name if name.endswith(".png") else f"{name}.png")
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(png())

    def tags(benchmark, data, rows, joint, name):
        service = Service("clip@1", metrics={"vqascore": metric()})
        columns = [",".join(f"{kind}{joint}{n}" for n in (0, 1)) for kind in ("image", "caption")]
        given = ("--matrix", "--image-column", columns[0], "--prompt-column", columns[1])
        out = name.replace("rows", "out").replace(".csv", ".jsonl")
        assert 0 == command(service, "batch", written(rows, name), "-o", out, *given)[0]
        (tmp_path / "data.json").write_text(json.dumps(data), "utf-8")
        status, out, err = command(service, "bench", benchmark, "data.json", "--scores", out, "--json")
        found = json.loads(out)["metrics"][1:] if status == 0 else []
        return status, err, {row["tag"]: row["items"] for row in found}

    return tags


def winoground(rows):
    """Rows whose columns name files."""
    return [row | {f"image_{n}": f"{row[f'image_{n}']}.png" for n in (0, 1)} for row in rows]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
@pytest.mark.parametrize("chosen", [(0, 1, 2), (1, 2), (2, 0)])
def test_a_matrix_is_joined_by_the_ids_of_its_data_set(tags, chosen, name):
    """Of all items of Winoground, of some, and in another order."""
    rows = winoground([EXAMPLES[number] for number in chosen])
    status, err, found = tags("winoground", EXAMPLES, rows, "_", name)

    assert (0, "") == (status, err)
    assert {tag: [SOURCES[n] for n in chosen].count(tag) for tag in found if tag != "all"} | {
        "all": len(chosen)
    } == found


def test_the_items_of_eqben_are_joined_by_a_column_id(tags):
    """Two of three."""
    rows = [SELECTED[number] | {"id": number} for number in (1, 2)]
    status, _, found = tags("eqben", SELECTED, rows, "", "rows.jsonl")

    assert (0, {"all": 2, "eqbenkubric": 1, "eqbenag": 1}) == (status, found)


@pytest.mark.parametrize("shown", [("image0",), ("image0", "caption0")])
def test_rows_that_are_no_items_of_eqben_are_refused(tags, shown):
    """Rows are numbered from 1 and items from 0: a part of the data would have the tags of others."""
    data = [{name: row[name] for name in shown} for row in SELECTED]
    status, err, _ = tags("eqben", data, SELECTED[:2], "", "rows.jsonl")

    assert 2 == status
    assert "row 1, item 1: the benchmark has another" in err
    assert "number the items in `id`" in err


@pytest.mark.parametrize(
    ("shown", "changed", "said"),
    [
        (("id",), {"id": None}, "row 1, item 1: nothing says which item this is"),
        (("id", "caption_0"), {"id": 2}, "row 1, item 2: the benchmark has another caption 0"),
        (("id",), {"item": 2}, "row 1: item 2 has the id 1"),
    ],
)
def test_a_row_that_may_be_another_item_of_winoground_is_refused(tags, shown, changed, said):
    """Without a number, with that of another item, and with two numbers."""
    data = [{name: row[name] for name in shown} for row in EXAMPLES]
    status, err, _ = tags("winoground", data, winoground([EXAMPLES[1] | changed]), "_", "rows.jsonl")

    assert 2 == status
    assert said in err
