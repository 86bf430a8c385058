"""`--grid`: each picture is a sheet, whose tiles are scored one by one."""

import io
import json

import PIL.Image
import pytest

from scoregate.bench.answers import is_black
from scoregate.data.rows import Row
from scoregate.data.tiles import Grid, cut, grid_of, tiles
from scoregate.errors import InputError
from tests.support.pictures import png, saved
from tests.unit.client.cli.served import Service, lines, metric

COLOURS = ("red", "lime", "blue", "white", "black", "yellow")


def sheet(columns=2, rows=2, side=8, margin=0):
    """A sheet whose tiles have the colours in order, with a white margin to the right and below."""
    image = PIL.Image.new("RGB", (columns * side + margin, rows * side + margin), "white")
    for number in range(columns * rows):
        row, column = divmod(number, columns)
        image.paste(PIL.Image.new("RGB", (side, side), COLOURS[number]), (column * side, row * side))
    return saved(image, "PNG")


def colours(tile):
    """The colours of a tile, with its size."""
    image = PIL.Image.open(io.BytesIO(tile))
    return image.size, {colour for _, colour in image.getcolors()}


def of(colour):
    return {PIL.ImageColor.getrgb(colour)}


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (2, 2), (3, 2), (1, 4)])
def test_tiles_are_counted_row_by_row(columns, rows):
    """A grid is columns by rows; every tile has the pixels of its place alone."""
    grid = grid_of(f"{rows}x{columns}")
    found = [colours(cut(sheet(columns, rows), grid, number)) for number in range(columns * rows)]

    assert [((8, 8), of(colour)) for colour in COLOURS[: columns * rows]] == found


def test_tiles_of_a_given_side_begin_at_the_top_left():
    """What lies right of them and below is in no tile; without a side the sheet is divided."""
    data = sheet(margin=4)

    assert ((8, 8), of("white")) == colours(cut(data, Grid(2, 2, 8), 3))
    assert ((8, 8), of("lime")) == colours(cut(data, Grid(2, 2, 8), 1))
    assert (10, 10) == colours(cut(data, Grid(2, 2), 3))[0]


@pytest.mark.parametrize(
    ("data", "grid", "why"),
    [
        (sheet(), Grid(2, 2, 9), "a sheet of 16 x 16 pixels has no tile 3"),
        (png(size=(1, 1)), Grid(2, 2), "a sheet of 1 x 1 pixels has no tile 3"),
        (sheet()[:40], Grid(2, 2), "the sheet cannot be read"),
    ],
)
def test_a_sheet_that_is_too_small_or_broken_has_no_tiles(data, grid, why):
    """The error has the size."""
    with pytest.raises(ValueError, match=why):
        cut(data, grid, 3)


@pytest.mark.parametrize("text", ["2", "0x2", "2x", "2×2", "2x2x2", "100x1", "-1x2"])
def test_a_grid_is_columns_and_rows(text):
    """From 1 to 99 each."""
    with pytest.raises(InputError, match="ROWSxCOLUMNS"):
        grid_of(text)


@pytest.fixture
def service():
    return Service("vqa@1", metrics={"vqascore": metric()})


def test_every_tile_has_a_line(command, service, tmp_path):
    """With the sheet's prompt, and the sheet and the tile's number in columns; the next run sends none."""
    (tmp_path / "sheets").mkdir()
    for name in ("a", "b"):
        (tmp_path / "sheets" / f"{name}.png").write_bytes(sheet())
        (tmp_path / "sheets" / f"{name}.txt").write_text(f"prompt {name}", "utf-8")
    given = ("batch", "sheets", "-o", "out.jsonl", "--grid", "2x2")
    assert 0 == command(service, *given)[0]
    found = lines(tmp_path / "out.jsonl")

    assert [(row, f"{name}.png#{tile}") for row, (name, tile) in enumerate(PLACES, 1)] == [
        (line["row"], line["image"]) for line in found
    ]
    assert [{"sheet": f"{name}.png", "tile": tile} for name, tile in PLACES] == [
        line["columns"] for line in found
    ]
    assert 4 == len({line["sha256"] for line in found})
    assert "0 were requested" in command(service, *given)[2]


PLACES = [(name, tile) for name in "ab" for tile in range(4)]


def test_a_sheet_that_cannot_be_cut_is_an_unreadable_row(command, service, tmp_path):
    """For each of its tiles; the others are scored."""
    (tmp_path / "small.png").write_bytes(png(size=(1, 1)))
    rows = [{"image": "p.png", "prompt": "a"}, {"image": "small.png", "prompt": "a"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    status, _, err = command(service, "batch", "rows.jsonl", "-o", "out.jsonl", "--grid", "1x2")

    assert (1, 2) == (status, err.count("a sheet of 1 x 1 pixels"))
    assert [["p.png#0", "p.png#1"], ["small.png#0", "small.png#1"]] == [
        [line["image"] for line in lines(tmp_path / "out.jsonl") if bool(line["errors"]) is failed]
        for failed in (False, True)
    ]


def test_tiles_of_a_picture_are_scored_alone(command, service, tmp_path):
    """By `scoregate score`, each with its own row; a sheet without such tiles ends the command."""
    (tmp_path / "sheet.png").write_bytes(sheet())
    status, out, _ = command(service, "score", "sheet.png", "-p", "a", "--grid", "2x2")
    small, _, err = command(service, "score", "sheet.png", "-p", "a", "--grid", "1x17")

    assert (0, [f"sheet.png#{n}" for n in range(4)]) == (
        status,
        [row.split()[0] for row in out.splitlines()[1:]],
    )
    assert (2, True) == (small, "sheet.png: a sheet of 16 x 16 pixels has no tile 0" in err)


def test_a_run_over_tiles_is_reproduced(command, service, tmp_path):
    """The manifest has the grid."""
    assert 0 == command(service, "batch", "rows.jsonl", "-o", "out.jsonl", "--grid", "2x2")[0]
    manifest = json.loads((tmp_path / "out.jsonl.manifest.json").read_text("utf-8"))

    assert "2x2" == manifest["dataset"]["grid"]
    assert 0 == command(service, "reproduce", "out.jsonl.manifest.json")[0]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["--grid", "2"], "--grid 2: it has the form ROWSxCOLUMNS"),
        (["--grid", "2x2", "--frames-column", "image"], "--grid and --frames-column"),
    ],
)
def test_a_grid_that_means_nothing_is_refused(refused, command, service, given, line):
    """With one line."""
    status, _, err = command(service, "batch", "rows.jsonl", "-o", "out.jsonl", *given)

    assert (2, True) == (status, line in err)


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_a_tile_is_black_whatever_its_file_has_besides(mode):
    """A profile and transparency make its file another one than a BMP."""
    two = PIL.Image.new(mode, (8, 4))
    two.paste((9, 9, 9, 9)[: len(mode)], (4, 0, 8, 4))
    row = Row(1, "a", "a cat", saved(two, "PNG", icc_profile=b"profile"))

    assert [True, False] == [is_black(tile) for tile in tiles(row, grid_of("1x2"))]
