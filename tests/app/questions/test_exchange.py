"""Question sets as files: what goes out comes back; what others published is taken, repaired or refused."""

import gzip
import json

import pytest

from service.questions.exchange import dsg
from service.questions.exchange.files import checked_set, line_of
from service.questions.sets import Question, QuestionSet
from tests.support.dsg import CHAIN

SETS = [
    QuestionSet("a dog – été 🐕", "dsg", CHAIN, {"llm": "x"}),
    QuestionSet("a red fox", "dsg", (Question(1, "Is there a fox?", "entity", phrase="fox"),)),
    QuestionSet("a red dog", "tifa", (Question(7, "Color?", "", (), "red", ("red", "blue")),), {}, ("dog",)),
]


def lines(*sets):
    return b"".join(map(line_of, sets))


@pytest.mark.parametrize("name", ["sets.jsonl", "sets.jsonl.gz"])
def test_what_is_exported_is_imported_with_the_same_ids(questions, tmp_path, name):
    """Into a store in a file; once more into the same one changes nothing."""
    given, file, again = tmp_path / "given.jsonl", tmp_path / name, tmp_path / "again.jsonl"
    given.write_bytes(lines(*SETS))
    first = questions("import", given)
    out = questions("export", file)
    twice = [questions("import", file, store="other") for _ in range(2)]
    questions("export", again, store="other")

    everything = {"imported": 3, "repaired": 0, "refused": 0}
    assert [(everything, 0)] * 3 == [(done, status) for done, _, status in (first, *twice)]
    assert {"exported": 3} == out[0]
    content = gzip.decompress(file.read_bytes()) if name.endswith(".gz") else file.read_bytes()
    assert content == again.read_bytes()
    assert sorted(lines(*SETS).splitlines()) == sorted(content.splitlines())


def changed(**fields):
    return json.dumps({**SETS[1].content(), **fields}).encode()


BAD = {
    b"no JSON": "Invalid JSON",
    b"\xff\xfe": "Invalid JSON",
    b"[]": "Input should be",
    changed(id="sha256:0"): f"the id is sha256:0, but that of its content is {SETS[1].id}",
    changed(id=SETS[1].id, prompt="another"): f"the id is {SETS[1].id}, but",
    changed(prompt=" "): "prompt: is empty",
    changed(prompt=7): "prompt: Input should be a valid string",
    changed(style="poetry"): "no metric has the style poetry; there are dsg",
    changed(questions=[]): "it has no questions",
    changed(questions=[{"id": 1, "text": "a", "depends_on": [1]}]): "cycle",
    changed(questions=[{"id": "1", "text": "a"}]): "questions.0.id: Input should be a valid integer",
    changed(questions=[{"id": 1, "text": "a" * 1001}]): "question 1 is longer than 1000 characters",
    changed(questions=[{"id": 10**30, "text": "a"}]): "the id of a question is above 9007199254740991",
    changed(questions=[{"id": 1, "text": "a", "depends_on": [10**30]}]): "which does not exist",
    changed(other=1): "other: Extra inputs are not permitted",
    b'{"prompt": "' + b"a" * 2**20 + b'"}': "the line is longer than",
}


@pytest.mark.parametrize("id", [{}, {"id": ""}])
def test_an_id_may_be_left_out(questions, tmp_path, id):
    """For sets that people write by hand."""
    file = tmp_path / "sets.jsonl"
    file.write_bytes(json.dumps({**SETS[1].content(), **id}).encode())

    assert {"imported": 1, "repaired": 0, "refused": 0} == questions("import", file)[0]


def test_bad_lines_are_named_and_harm_no_other(questions, tmp_path):
    """Each with its number; the status says that not everything was taken."""
    file = tmp_path / "sets.jsonl"
    file.write_bytes(b"\n".join([*BAD, b"", lines(SETS[0])]))
    done, said, status = questions("import", file)
    told = said.splitlines()

    assert ({"imported": 1, "repaired": 0, "refused": len(BAD)}, 1) == (done, status)
    assert len(BAD) == len(told)
    for number, (line, reason) in enumerate(zip(told, BAD.values(), strict=True), 1):
        assert line.startswith(f"refused: line {number}: ")
        assert reason in line


def test_an_item_that_no_store_can_hold_is_refused_and_harms_no_other(questions, tmp_path):
    """A number that JSON has no room for, in a CSV file."""
    rows = ["dsg_1,a dog,dog,1" + 30 * "0" + ",0,entity (dog),Is there a dog?"]
    rows += ["dsg_2,a fox,fox,1,0,entity (fox),Is there a fox?"]
    file = tmp_path / "sets.csv"
    file.write_text("\n".join([",".join(dsg.COLUMNS), *rows]))
    done, said, status = questions("import", file, "--format", "dsg")

    assert ({"imported": 1, "repaired": 0, "refused": 1}, 1) == (done, status)
    assert said.startswith("refused: line 2, dsg_1: the id of a question is above")


def test_the_parent_0_means_none_in_a_line_of_our_own_format(questions, tmp_path):
    """As in DSG's files, unless a question has that number."""
    zero = {"id": 1, "text": "Is there a fox?", "depends_on": [0]}
    own = [{"id": 0, "text": "Is there a dog?"}, {**zero, "text": "Is it red?"}]
    file, out = tmp_path / "sets.jsonl", tmp_path / "out.jsonl"
    lines = [
        {"prompt": "a fox", "style": "dsg", "questions": [zero]},
        {"prompt": "a dog", "style": "dsg", "questions": own},
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    done = questions("import", file)[0]
    questions("export", out)
    found = {line["prompt"]: line["questions"] for line in map(json.loads, out.read_text().splitlines())}

    assert {"imported": 2, "repaired": 0, "refused": 0} == done
    assert [[]] == [q["depends_on"] for q in found["a fox"]]
    assert [[], [0]] == [q["depends_on"] for q in found["a dog"]]


def test_what_has_no_bytes_in_utf_8_makes_no_set():
    """Also where it only says where the set comes from."""
    with pytest.raises(ValueError, match="cannot be stored"):
        checked_set("a dog", "dsg", CHAIN, {"item": "\udcff"})


def test_a_file_that_breaks_off_is_taken_as_far_as_it_goes(questions, tmp_path):
    """A gzip file without its end: the sets before it are there, and the fault is told."""
    file = tmp_path / "sets.jsonl.gz"
    file.write_bytes(gzip.compress(lines(*SETS))[:-8])
    done, said, status = questions("import", file)

    assert (3, 1, 1) == (done["imported"], done["refused"], status)
    assert "is no whole gzip file" in said


def test_a_file_that_is_not_there_ends_the_command_in_one_line(questions, tmp_path):
    """With the status of a wrong setting; nor can a file be made where there is no folder."""
    place = tmp_path / "nowhere" / "sets.jsonl"

    for direction in ("import", "export"):
        done, said, status = questions(direction, place)
        assert (None, 2) == (done, status)
        assert said.startswith("scoregate-server: ")
        assert str(place) in said


def test_pairs_of_question_and_answer_become_sets_that_soft_tifa_scores(questions, tmp_path):
    """GenEval 2's shape; the skill is the question's kind."""
    file, out = tmp_path / "pairs.jsonl", tmp_path / "out.jsonl"
    pairs = [["How many dogs are there?", "four"], ["Is the dog red?", "yes"]]
    good = {"prompt": "four red dogs", "atom_count": 2, "vqa_list": pairs, "skills": ["count", "color"]}
    bad = [{**good, "vqa_list": [["Is it?", 4]]}, {**good, "vqa_list": [["Is it?", " "]]}, {"prompt": "a"}]
    file.write_text("\n".join(map(json.dumps, [good, *bad])), "utf-8")
    done, said, _ = questions("import", file, "--format", "geneval2")
    questions("export", out)
    [line] = out.read_text("utf-8").splitlines()

    assert {"imported": 1, "repaired": 0, "refused": 3} == done
    assert "line 2: vqa_list.0.1: Input should be a valid string" in said
    assert ["four", "yes"] == [q["expected"] for q in json.loads(line)["questions"]]
    assert ["count", "color"] == [q["kind"] for q in json.loads(line)["questions"]]
    assert "tifa" == json.loads(line)["style"]


DOG = {
    "id": "coco_1",
    "caption": "a dog on grass",
    "question": "what animal is it?",
    "choices": ["dog", "cat"],
    "answer": "dog",
    "element_type": "animal/human",
    "element": "dog",
    "coco_val_id": "7",
}
GRASS = {**DOG, "question": "is there grass?", "choices": ["yes", "no"], "answer": "yes", "element": "grass"}
CAT = {**DOG, "id": 52, "caption": "a cat", "answer": "cat", "element": "cat"}


def test_questions_of_tifas_file_become_a_set_for_each_caption(questions, tmp_path):
    """Wherever they are in the list; `--only` takes the captions of one source."""
    file, out = tmp_path / "questions.json", tmp_path / "out.jsonl"
    file.write_text(json.dumps([DOG, CAT, GRASS]), "utf-8")
    some = questions("import", file, "--format", "tifa", "--only", "coco", store="other")
    done, said, status = questions("import", file, "--format", "tifa")
    questions("export", out)
    found = {line["prompt"]: line for line in map(json.loads, out.read_text("utf-8").splitlines())}

    assert {"imported": 1, "repaired": 0, "refused": 0} == some[0]
    assert ({"imported": 2, "repaired": 0, "refused": 0}, 0) == (done, status), said
    assert {"a dog on grass", "a cat"} == found.keys()
    dog = found["a dog on grass"]
    assert ("tifa", "coco_1") == (dog["style"], dog["provenance"]["item"])
    assert ["dog", "yes"] == [question["expected"] for question in dog["questions"]]
    assert ["dog", "grass"] == [question["phrase"] for question in dog["questions"]]
    assert [["dog", "cat"], ["yes", "no"]] == [question["choices"] for question in dog["questions"]]
    assert {"animal/human"} == {question["kind"] for question in dog["questions"]}


def test_repeated_questions_and_choices_of_tifas_file_are_dropped_with_a_message(questions, tmp_path):
    """The answer itself is kept, however it is written."""
    file, out = tmp_path / "questions.json", tmp_path / "out.jsonl"
    twice = {**DOG, "question": "What animal is it? ", "answer": "cat"}
    alike = {**GRASS, "choices": ["Yes", "yes", "no"]}
    file.write_text(json.dumps([DOG, twice, alike]), "utf-8")
    done, said, _ = questions("import", file, "--format", "tifa")
    questions("export", out)
    [line] = map(json.loads, out.read_text("utf-8").splitlines())

    assert {"imported": 1, "repaired": 1, "refused": 0} == done
    assert said.startswith("coco_1: repaired: a question is asked twice: the second is dropped")
    assert "coco_1: repaired: a question has a choice twice" in said
    assert [("dog", ["dog", "cat"]), ("yes", ["yes", "no"])] == [
        (question["expected"], question["choices"]) for question in line["questions"]
    ]


BAD_QUESTIONS = {
    "its questions have different captions": [DOG, {**GRASS, "caption": "a fox"}],
    "is not among its choices": [{**DOG, "answer": "fox"}],
    "1.answer: Input should be a valid string": [DOG, {**GRASS, "answer": 4}],
    "needs 2 to 26 different choices": [{**DOG, "choices": ["dog"]}],
    "65 questions; at most 64": [{**DOG, "question": f"is it {n}?"} for n in range(70)],
}


@pytest.mark.parametrize("reason", BAD_QUESTIONS)
def test_a_bad_caption_of_tifas_file_is_named_and_harms_no_other(questions, tmp_path, reason):
    file = tmp_path / "questions.json"
    file.write_text(json.dumps([*BAD_QUESTIONS[reason], CAT]), "utf-8")
    done, said, status = questions("import", file, "--format", "tifa")

    assert ({"imported": 1, "repaired": 0, "refused": 1}, 1) == (done, status)
    assert said.startswith("refused: coco_1: ")
    assert reason in said


@pytest.mark.parametrize(
    ("content", "said_of_it"),
    [
        ("{", "is not JSON"),
        ("{}", "is no list of questions"),
        (json.dumps([{**DOG, "id": None}]), "question 1 of the file: 0.id.str: Input should be"),
        ("[5]", "question 1 of the file: 0: Input should be"),
    ],
)
def test_a_file_that_is_not_tifas_is_refused(questions, tmp_path, content, said_of_it):
    """With the reason."""
    file = tmp_path / "questions.json"
    file.write_text(content, "utf-8")
    done, said, status = questions("import", file, "--format", "tifa")

    assert ({"imported": 0, "repaired": 0, "refused": 1}, 1) == (done, status)
    assert said_of_it in said


def test_what_is_stored_and_is_not_a_set_is_left_out_and_told(questions, tmp_path):
    """The others are exported."""
    import sqlite3

    given, file = tmp_path / "given.jsonl", tmp_path / "sets.jsonl"
    given.write_bytes(lines(*SETS))
    questions("import", given)
    with sqlite3.connect(tmp_path / "store.sqlite3") as connection:
        connection.execute("UPDATE sets SET content = x'00' WHERE id = ?", (SETS[0].id,))
    connection.close()
    done, said, _ = questions("export", file)

    assert {"exported": 2} == done
    assert f"left out: what is stored as {SETS[0].id} is not a question set" in said


def test_a_second_set_of_a_prompt_is_stored_by_its_id(questions, tmp_path):
    """The first one imported stays the prompt's own."""
    other = QuestionSet("a red fox", "dsg", (Question(1, "Is a dog there?"),))
    file, out = tmp_path / "sets.jsonl", tmp_path / "out.jsonl"
    file.write_bytes(lines(SETS[1], other))
    _, said, status = questions("import", file)
    questions("export", out)

    assert 0 == status
    assert f"its prompt keeps the imported set {SETS[1].id}" in said
    assert 2 == len(out.read_bytes().splitlines())
