"""
Items of benchmarks of generators, their pictures, and the answers about these.

Answers are in results of scoring, in which a metric has them in its details, or in a table of the user's.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import count
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

from scoregate.data.folders import image_files
from scoregate.data.rows import Row, prompt_fault
from scoregate.data.tiles import Grid
from scoregate.data.tiles import tiles as tiles_of
from scoregate.errors import InputError
from scoregate.evaluation.tables import rows_of, text
from scoregate.records import json_of, kind
from scoregate.records import number as number_in
from scoregate.runs.results import lines_of

GENERATOR = "{generator}"  # the name of a picture may have it
MAX_QUESTIONS = 64  # questions of a set; the service has this limit
MAX_CHARACTERS = 1000  # characters of a question; the service has this limit
WRITER = "questions"  # the name of the model that writes sets, and wrote none of those that are sent
TRUTHS = {"true": True, "false": False}
SUM_ROUNDING = 1e-6  # float32 rounds a sum of probabilities by less
FOLDER_KIND = ""  # the kind of a folder, as `kind` is that of a file
WHOLE_NUMBER = re.compile(
    r"0*(\d+)(?:\.0+)?", re.ASCII
)  # a number of a picture or question, in a table also as a float

Answer = bool | float | str
Answers = Mapping[int, Answer]  # those about one picture, by question


class Question(NamedTuple):
    """
    A question about a picture.

    Attributes:
        text: empty if the picture's text is read.
        expected: the right answer, or the text that the picture should show.
        parents: the numbers of the questions that it depends on.
        tag: what it tests.
    """

    text: str
    expected: str = "yes"
    parents: tuple[int, ...] = ()
    tag: str = ""


@dataclass(frozen=True)
class BenchmarkItem:
    """
    A prompt of a benchmark.

    Attributes:
        file: of its picture in the folder, without a suffix; `{generator}` stands for the generator's name.
        questions: by number.
        group: a part of the benchmark that it belongs to.
        source: the picture before the edit; one with a relative path is in the folder of the pictures.
        references: pictures for the judge; without a *source* also for the generator.
        options: of the metrics, by metric.
        number: in the name of the first of several pictures, after `_`.
    """

    id: str
    prompt: str
    file: str
    questions: Mapping[int, Question] = field(default_factory=dict)
    group: str = ""
    source: Path | None = None
    references: Sequence[Path] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    number: str = "0"

    def names(self, images: int) -> list[str]:
        """Return the names of several pictures, numbered with as many digits as the first one."""
        first, digits = int(self.number), len(self.number)
        return [f"{self.file}_{first + each:0{digits}}" for each in range(images)]


@dataclass(frozen=True)
class Reading:
    """
    How the answers about a picture are got from metrics.

    Attributes:
        options: of the metrics, for an item.
        answers: those in a line of results that has all scores.
        parse: an answer in a cell of a table, None if it is missing.  Raises `ValueError`.
        empty_is_wrong: whether an empty text is a wrong answer, which a caution counts.
    """

    metrics: Sequence[str]
    options: Callable[[BenchmarkItem], Mapping[str, Any]]
    answers: Callable[[BenchmarkItem, Mapping[str, Any]], Answers]
    parse: Callable[[Any], Answer | None]
    empty_is_wrong: bool = False


def question_set(item: BenchmarkItem) -> list[dict[str, Any]]:
    """
    Return the questions of an item as a set of a request, each text once, without dependencies.

    Raises:
        InputError: they cannot be a set.
    """
    found: dict[str, str] = {}
    for question in item.questions.values():
        if found.setdefault(question.text.strip(), question.expected) != question.expected:
            raise InputError(f"item {item.id}: {question.text!r} has two expected answers")
    wrong = [name for name in found if not 0 < len(name) <= MAX_CHARACTERS]
    if wrong or not 0 < len(found) <= MAX_QUESTIONS:
        why = f"a question of {len(wrong[0])} characters" if wrong else f"{len(found)} questions"
        raise InputError(
            f"item {item.id}: {why}; a set has 1 to {MAX_QUESTIONS}, each of 1 to {MAX_CHARACTERS}"
        )
    return [{"id": id, "text": name, "expected": right} for id, (name, right) in enumerate(found.items(), 1)]


def in_details(metric: str, item: BenchmarkItem, line: Mapping[str, Any], name: str) -> dict[int, Any]:
    """Return a field of each question in the details of a metric, by number of the item."""
    of_text = {each["text"]: each[name] for each in line["details"][metric]["questions"]}
    return {id: of_text[question.text.strip()] for id, question in item.questions.items()}


def yes_no_set(item: BenchmarkItem) -> list[dict[str, Any]]:
    """Return the set of `question_set` with yes-no questions alone, whatever answer the item expects."""
    plain = {id: question._replace(expected="yes") for id, question in item.questions.items()}
    return question_set(replace(item, questions=plain))


def read_text(cell: Any) -> str | None:
    """Return the text that was read in a picture, which may be empty; None for null and NaN."""
    return None if cell is None or cell != cell else str(cell)


def yes_no(cell: Any) -> bool | str | None:
    """
    Return the answer to a yes-no question: a truth value, or the text as it is written.

    Null and numbers are no answers, also as texts: in CSV each cell is one.
    """
    if isinstance(cell, bool):
        return cell
    if not isinstance(cell, str):
        return None
    if (word := cell.strip().lower()) in TRUTHS:
        return TRUTHS[word]
    try:
        number_in(cell)
    except ValueError:
        return cell
    return None


def share(cell: Any) -> float:
    """
    Return a number from 0 to 1.

    A sum of probabilities in float32 may exceed 1 by rounding, and is 1 then.

    Raises:
        ValueError: the cell is something else.
    """
    value = number_in(cell)
    if not 0 <= value <= 1 + SUM_ROUNDING:
        raise ValueError(f"{cell!r} is not from 0 to 1")
    return min(value, 1.0)


YES_NO = Reading(
    ("dsg",),
    lambda item: {"dsg": {"question_set": yes_no_set(item)}},
    lambda item, line: {id: found == "yes" for id, found in in_details("dsg", item, line, "answer").items()},
    yes_no,
    empty_is_wrong=True,
)
PROBABILITY = Reading(
    ("soft_tifa",),
    lambda item: {"soft_tifa": {"question_set": question_set(item)}},
    lambda item, line: in_details("soft_tifa", item, line, "score"),
    share,
)
TEXT = Reading(
    ("ocr",),
    lambda item: {"ocr": {"text": item.questions[1].expected}},
    lambda item, line: {1: line["details"]["ocr"]["read"]},
    read_text,
)


def is_yes(answer: Answer, word: str, *, any_form: bool = False) -> bool:
    """
    Return whether an answer is a yes: a metric's own verdict, or exactly *word*.

    Args:
        any_form: a text that begins with it in any case is one, too, such as `Yes.`
    """
    if isinstance(answer, bool):
        return answer
    if any_form:
        return re.match(rf"{word}\b", str(answer).strip(), re.IGNORECASE) is not None
    return answer == word


@dataclass
class Found:
    """
    The answers about the pictures of a generator.

    Attributes:
        images: by item, those of each picture or tile; None for one without all answers.
        models: that gave them, as far as it is known.
        notes: cautions about the answers.
        items: in place of those of the benchmark, if the authors' files have questions of their own.
    """

    images: dict[str, list[Answers | None]] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    items: list[BenchmarkItem] = field(default_factory=list)


def in_lines(lines: Iterable[Mapping[str, Any]], items: Sequence[BenchmarkItem], reading: Reading) -> Found:
    """
    Return the answers in results of scoring, whose columns `item` and `tile` name the picture.

    Raises:
        InputError: a line is about no item or tile, or one with a line before, or lacks the metrics' details.
    """
    of_id, found = {item.id: item for item in items}, Found()
    tiles: dict[str, dict[int, Answers | None]] = defaultdict(dict)
    for line in lines:
        item, tile = (line.get("columns", {}).get(name) for name in ("item", "tile"))
        if item not in of_id or not isinstance(tile, int):
            raise InputError(
                f"results, row {line['row']}: no item {item} of the benchmark, or no column tile"
            )
        if tile in tiles[item]:
            raise InputError(
                f"results, row {line['row']}: item {item} has a second result of its picture {tile}"
            )
        try:
            tiles[item][tile] = None if line["errors"] else reading.answers(of_id[item], line)
        except (KeyError, TypeError) as exc:
            metrics = " and ".join(reading.metrics)
            raise InputError(
                f"results, row {line['row']}: no details of {metrics} about item {item}"
            ) from exc
        models = line.get("models", {})
        found.models |= {label for name, label in models.items() if name != WRITER}
    found.images = {id: [each[tile] for tile in sorted(each)] for id, each in tiles.items()}
    return found


def in_file(path: Path, items: Sequence[BenchmarkItem], reading: Reading) -> Found:
    """
    Return the answers in a file: results of scoring, or a table with a row for each answer.

    The columns of a table are `item`, `answer`, and where there are several `tile` and `question`, which is a
    number or a text.

    Raises:
        InputError: a row names no item or question, or an answer has no row or two.
    """
    table = rows_of(path)
    if "sha256" in table.records[0].values:
        return in_lines(lines_of(path), items, reading)
    of_id = {item.id: item for item in items}
    rows = list[QuestionEntry]()
    cells = zip(table.names("item"), table.records, table.each("answer", reading.parse), strict=True)
    for name, record, answer in cells:
        place = f"{path}, row {record.number}"
        if name not in of_id:
            raise InputError(f"{place}, column item: the benchmark has no item {name}")
        tile, question = (text(record.values.get(column)) for column in ("tile", "question"))
        rows.append(QuestionEntry(place, of_id[name], tile or "", question, answer))
    return in_rows(rows, path)


class QuestionEntry(NamedTuple):
    """
    An answer in a file, None if it is missing there.

    Attributes:
        place: for messages.
        tile: the number of the picture, or another name.
        question: a number, a text, or None for the only one.
    """

    place: str
    item: BenchmarkItem
    tile: str
    question: str | None
    answer: Answer | None


def in_rows(rows: Iterable[QuestionEntry], table: Path | None = None) -> Found:
    """
    Return the answers by item and picture; None for a picture without all answers.

    Args:
        table: that has to have a row for each question about a picture.

    Raises:
        InputError: the item has no such question, or its answer has two rows, or none in the *table*.
    """
    tiles: dict[str, dict[str, dict[int, Answer | None]]] = defaultdict(lambda: defaultdict(dict))
    questions: dict[str, Mapping[int, Question]] = {}
    for row in rows:
        questions[row.item.id] = row.item.questions
        answers = tiles[row.item.id][plain_number(row.tile)]
        known = numbers_of(row)
        free = [id for id in known if id not in answers]
        if not free:
            why = f"a second answer to question {known[0]}" if known else f"no question {row.question}"
            raise InputError(f"{row.place}: item {row.item.id} has {why}")
        answers[free[0]] = row.answer
    found = Found()
    for id, of_item in tiles.items():
        order = sorted(of_item, key=lambda tile: (int(tile) if tile.isdecimal() else -1, tile))
        images = [of_all(questions[id], of_item[tile]) for tile in order]
        short = [number for number, each in enumerate(images) if len(each) < len(questions[id])]
        if table and short:
            raise InputError(f"{table}: item {id}: an answer about its picture {short[0]} is missing")
        found.images[id] = [given(questions[id], each) for each in images]
    return found


def plain_number(name: str) -> str:
    """Return a whole number without leading zeros and decimals; another name unchanged."""
    return number[1] if (number := WHOLE_NUMBER.fullmatch(name)) else name


def numbers_of(row: QuestionEntry) -> list[int]:
    """Return the numbers of the questions that an answer may be to; several have one text."""
    questions, name = row.item.questions, row.question
    if name is None:
        return [*questions] if len(questions) == 1 else []
    if (number := plain_number(name)).isdecimal() and int(number) in questions:
        return [int(number)]
    return [id for id, question in questions.items() if question.text == name]


def of_all(
    questions: Mapping[int, Question], answers: Mapping[int, Answer | None]
) -> dict[int, Answer | None]:
    """Return the answers in the order of the questions; the first answer to a text is to all with it."""
    of_text = {questions[id].text: answer for id, answer in reversed([*answers.items()])}
    known = {id: each.text for id, each in questions.items() if each.text in of_text}
    return {id: answers.get(id, of_text[name]) for id, name in known.items()}


def given(questions: Mapping[int, Question], answers: Mapping[int, Answer | None]) -> Answers | None:
    """Return the answers if there is one to each question."""
    found = {id: answer for id, answer in answers.items() if answer is not None}
    return found if len(found) == len(questions) else None


# --- pictures of a generator: in the folder that has them, and as rows to score ---


NUMBERED_NAME = re.compile(r"(.+)_([0-9]+)", re.DOTALL)  # the name of one of several pictures


@dataclass(frozen=True)
class Placed:
    """
    Pictures below a folder.

    Attributes:
        of_item: in order, by the item's id.
        others: the number of pictures of no item.
    """

    folder: Path
    of_item: Mapping[str, Sequence[Path]]
    others: int

    def rows(
        self,
        items: Sequence[BenchmarkItem],
        options: Callable[[BenchmarkItem], Mapping[str, Any]],
        sheet: Grid | None,
        *,
        skip_black: bool,
    ) -> tuple[list[Row], list[str]]:
        """
        Return a row for each picture or tile, in the order of the items, and notes about the folder.

        Args:
            options: of the metrics, for an item.
            skip_black: leave out black tiles.
        """
        black, rows = 0, list[Row]()
        for item in items:
            number, own = count(), options(item)
            beside = {"source": [item.source] if item.source else [], "references": item.references}
            any_path = any(path.is_absolute() for each in beside.values() for path in each)
            related = {name: [str(path) for path in each] for name, each in beside.items() if each}
            fault = prompt_fault(item.prompt)
            for path in self.of_item.get(item.id, ()):
                row = Row(
                    0,
                    relpath(path, self.folder),
                    item.prompt,
                    path,
                    fault=fault and f"item {item.id}: its prompt {fault}",
                    folder=self.folder,
                    any_path=any_path,
                    related=related,
                    options=own,
                )
                for each in tiles_of(row, sheet) if sheet else [row]:
                    if sheet and skip_black and is_black(each):
                        black += 1
                        continue
                    columns = {"item": item.id, "tile": next(number)}
                    rows.append(replace(each, number=len(rows) + 1, columns=columns))
        notes = [f"pictures of no prompt: {self.others}"] if self.others else []
        return rows, notes + ([f"black tiles skipped: {black}"] if black else [])


def images_of(path: Path, items: Sequence[BenchmarkItem], name: str) -> Placed | None:
    """
    Return the pictures in a folder, or in a JSON object of paths by prompt; None for another file.

    Raises:
        InputError: as `images_in`, or no prompt of the object is that of an item.
    """
    if path.is_dir():
        return images_in(path, items, name)
    content = json_of(path) if kind(path) == ".json" else None
    if not (isinstance(content, Mapping) and all(isinstance(each, str) for each in content.values())):
        return None
    known = {item.prompt: item.id for item in items}
    found = {known[prompt]: [path.parent / file] for prompt, file in content.items() if prompt in known}
    if not found:
        raise InputError(f"{path}: no prompt is one of the benchmark")
    return Placed(path.parent, found, len(content.keys() - known.keys()))


def images_in(folder: Path, items: Sequence[BenchmarkItem], name: str) -> Placed:
    """
    Return the pictures in *folder* by their names, and the number of others in the folders of items.

    Raises:
        InputError: two files are the same picture, or none is of an item.
    """
    files = {item.id: Path(item.file.replace(GENERATOR, name)) for item in items}
    known = {without_zeros(file): id for id, file in files.items()}
    shared = any(GENERATOR in item.file for item in items)  # with the pictures of other generators
    own = {folder / file.parent for file in files.values()}
    sources = {folder / item.source for item in items if item.source}
    found: dict[str, dict[int, Path]] = defaultdict(dict)
    others = 0
    for path in sorted(image_files(folder)):
        stem, number = place_of(path.relative_to(folder), known)
        if stem not in known:
            others += path not in sources and (not shared or path.parent in own)
            continue
        id = known[stem]
        if number in found[id]:
            raise InputError(f"{path} and {found[id][number]} are the same picture of item {id}")
        found[id][number] = path
    if not found:
        raise InputError(f"{folder}: no picture has the name of an item, such as {next(iter(known))}.png")
    of_item = {id: [each[key] for key in sorted(each)] for id, each in found.items()}
    return Placed(folder, of_item, others)


def place_of(path: Path, known: Collection[str]) -> tuple[str, int]:
    """
    Return the name of a picture's item, and the number of the picture.

    One of several has `_` and its number at the end of its name.  A name that is not known ends at its first
    full stop.  Leading zeros do not count.
    """
    first = ""
    for name in (path.stem, path.name.partition(".")[0]):
        first, parts = without_zeros(path.parent / name), NUMBERED_NAME.fullmatch(name)
        if first in known:
            return first, 0
        if parts and (of_several := without_zeros(path.parent / parts[1])) in known:
            return of_several, int(parts[2])
    return first, 0


def without_zeros(path: Path) -> str:
    """Return a path in one form of accents (NFC), whose last part has no leading zeros if it is a number."""
    number = path.name.isascii() and path.name.isdecimal()
    plain = path.with_name(str(int(path.name))) if number else path
    return normalize("NFC", plain.as_posix())


def is_black(row: Row) -> bool:
    """Return whether all pixels of a tile are black; False if it cannot be read, which scoring reports."""
    from PIL import Image

    try:
        with Image.open(BytesIO(row.read())) as tile:
            return tile.convert("RGB").getbbox() is None
    except (OSError, ValueError):
        return False
