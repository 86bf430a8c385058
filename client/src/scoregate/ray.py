"""`scoregate.ray.Scorer`: scores in a pipeline of Ray Data, with the models in each of its actors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

from scoregate.data.datasets import Dataset
from scoregate.data.rows import RELATED_COLUMNS, Row
from scoregate.errors import BadImageError
from scoregate.images import encoded
from scoregate.items import names_of
from scoregate.local import load
from scoregate.records import Record, arrow
from scoregate.runs.batch import Part, scored_rows
from scoregate.runs.batch_settings import Scoring
from scoregate.runs.plan import plan_of, with_options
from scoregate.runs.pool import own_store
from scoregate.runs.results import Results, fields, flat
from scoregate.settings import metric_names

BATCH_FIELDS = ("row", "image", "prompt")  # fields of a line that the batch has itself


class Scorer:
    """
    A callable class for `ray.data.Dataset.map_batches`, whose actors each load the models.

        scored = ray.data.read_parquet("pictures").map_batches(
            scoregate.ray.Scorer,
            fn_constructor_args=("zhiqiulin/clip-flant5-xl", ["vqascore"]),
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=64),
            num_gpus=1,
            batch_size=1024,
        )

    A batch keeps its columns, and gains those of a file of `scoregate batch`: `scores` and `errors` by
    metric, `sha256`, and as JSON `models`, `options`, `own_options`, `question_sets`, `details`, `warnings`,
    `lower_is_better` and `orient`.  A row that cannot be scored has the error, and no row is left out.

    Args:
        model: one name or several, as `scoregate.load` takes them.
        image_column: bytes, Hugging Face's struct of bytes and path, an array of pixels, or a path.  The
            columns `references` and `source` may have these, too.  Ray makes one type of a batch's arrays:
            have all pixels as uint8, or all as floating point.
        folder: the base of relative paths, and the only folder that paths are read from.
        options: of metrics, by metric; columns such as `ocr.text` are options of the row.
        questions: a file of question sets, JSON Lines, which every actor uses.
        concurrency: requests of 16 rows at the same time.
        load: further arguments of `scoregate.load`.

    Raises:
        InputError: the models serve no such metric, or a question set is not valid.
        ScoregateError: the models cannot be loaded.
    """

    def __init__(
        self,
        model: str | Sequence[str],
        metrics: Sequence[str] | str = "vqascore",
        *,
        image_column: str = "image",
        prompt_column: str = "prompt",
        folder: str | PathLike[str] = ".",
        options: Mapping[str, Any] | None = None,
        explain: bool = False,
        orient: str | None = None,
        questions: str | PathLike[str] | None = None,
        concurrency: int = 8,
        **load_arguments: Any,
    ) -> None:
        names = names_of(model)
        with nullcontext() if questions is None else own_store(names, [Path(questions)]):
            self._gate = load(*names, **{"timeout_s": 600.0, **load_arguments})
        given = metric_names(names_of(metrics))
        served = self._gate.models(given)
        scoring = Scoring(metrics=given, options=options or {}, explain=explain, orient=orient)
        self._plan = plan_of(served, scoring)
        dataset = Dataset(Path(folder), image_column, prompt_column, metrics=self._plan.metrics, part=True)
        self._dataset = with_options(dataset, served, self._gate)
        self._concurrency = concurrency

    def __call__(self, batch: Any) -> Any:
        """
        Return a batch as a `pyarrow.Table`, with the columns that are added.

        Args:
            batch: in any format of Ray Data.

        Raises:
            ValueError: the batch has a column of a name that is added.
            ScoregateError: a request failed as a whole.
        """
        from ray.data.block import BlockAccessor, BlockType

        pyarrow, _ = arrow()
        table = BlockAccessor.batch_to_block(batch, BlockType.ARROW)
        schema = pyarrow.schema(
            [field for field in fields(pyarrow, self._plan.metrics, {}) if field[0] not in BATCH_FIELDS]
        )
        if taken := set(schema.names) & set(table.column_names):
            raise ValueError(f"the data set has a column {min(taken)!r}, which Scorer adds: rename it")
        rows = [self._row(number, values) for number, values in enumerate(table.to_pylist(), 1)]
        part = Part(rows, results := Results(self._plan))
        scored_rows(self._gate, self._plan, [nullcontext(part)], self._concurrency)
        added = pyarrow.Table.from_pylist([flat(line, {}) for line in results.lines()], schema)
        for name, column in zip(added.column_names, added.columns, strict=True):
            table = table.append_column(name, column)
        return table

    def _row(self, number: int, values: Mapping[str, Any]) -> Row:
        """Return a row of a batch; pixels become files."""
        columns = {self._dataset.image, *RELATED_COLUMNS} & values.keys()
        try:
            record = Record(number, {**values, **{name: files_in(name, values[name]) for name in columns}})
        except BadImageError as exc:
            record = Record(number, fault=exc.detail)
        return self._dataset.row(record, self._dataset.path, "batch", in_csv=False)


def files_in(column: str, cell: Any) -> Any:
    """Return a cell with the files of arrays of pixels in their place.  Raises `BadImageError`."""
    if isinstance(cell, list):
        return [files_in(column, each) for each in cell]
    try:
        return encoded(cell) if hasattr(cell, "ndim") else cell
    except BadImageError as exc:
        raise BadImageError(f"column {column}: {exc.detail}") from None
