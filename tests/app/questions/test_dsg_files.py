"""The question sets of DSG's authors: joined by item, and repaired where no set may be so."""

from service.questions.exchange import dsg
from service.questions.sets import Question, check
from tests.support.paths import GOLDEN

ANNOTATIONS = GOLDEN / "tifa160" / "dsg_anns.csv"


def published(*rows):
    """A file in DSG's format, of (item, id, parents)."""
    lines = (f'{item},a dog,dog,{id},"{parents}",entity (dog),Is {item} {id}?' for item, id, parents in rows)
    return "\n".join([",".join(dsg.COLUMNS), *lines])


def parents_in(path):
    """The parents of each question by item."""
    found = {entry.item: dsg.parse(entry) for entry in dsg.entries(path)}
    assert not any(each.repairs for each in found.values())
    return {item: {q.id: q.depends_on for q in each.questions.questions} for item, each in found.items()}


def test_an_empty_cell_of_parents_means_none_and_costs_no_other(tmp_path):
    """Also if pandas has written the other cells as decimal numbers for its sake."""
    file = tmp_path / "sets.csv"
    file.write_text(
        published(("a", 1, 0), ("a", 2, 1), ("a", 3, ""), ("b", "1.0", "0.0"), ("b", "2.0", "1.0"))
    )

    assert {"a": {1: (), 2: (1,), 3: ()}, "b": {1: (), 2: (1,)}} == parents_in(file)


def test_the_scattered_rows_of_an_item_are_one_set(tmp_path):
    """In the order of the file; an item is where its first row is."""
    file = tmp_path / "sets.csv"
    file.write_text(published(("a", 1, 0), ("b", 1, 0), ("a", 2, 1)))

    assert {"a": {1: (), 2: (1,)}, "b": {1: ()}} == parents_in(file)
    assert [(2, "a"), (3, "b")] == [(entry.line, entry.item) for entry in dsg.entries(file)]


def test_a_table_that_breaks_off_gives_the_items_before(questions, tmp_path):
    """The fault is reported."""
    file = tmp_path / "sets.csv"
    file.write_text(published(("a", 1, 0), ("b", 1, 0)) + "\nc," + "x" * 2**20)
    done, said, status = questions("import", file, "--format", "dsg")

    assert ({"imported": 2, "repaired": 0, "refused": 1}, 1) == (done, status)
    assert "more than" in said


REPAIRED = {
    "tifa160_110": "asked twice",
    "tifa160_134": "parent is missing",
    "tifa160_5": "asked twice",
    "tifa160_67": "not a number",
    "tifa160_89": "cycle",
    "tifa160_69": "cycle",
    "tifa160_13": "cycle",
    "tifa160_144": "cycle",
}


def test_the_faults_of_tifa160_are_repaired_and_reported(questions):
    """The eight items of 160 that no set may be like, and one that is sound; none other is in the file."""
    done, said, status = questions("import", ANNOTATIONS, "--format", "dsg", "--only", "tifa160")
    told = dict(line.split(", ", 1)[1].split(": repaired: ") for line in said.splitlines())

    assert ({"imported": 9, "repaired": 8, "refused": 0}, 0) == (done, status)
    assert REPAIRED.keys() == told.keys()
    assert [True] * 8 == [reason in told[item] for item, reason in REPAIRED.items()]


def test_other_items_than_the_wanted_ones_are_left_out(questions):
    """A name that only begins alike is another."""
    done, _, _ = questions("import", ANNOTATIONS, "--format", "dsg", "--only", "tifa16")

    assert {"imported": 0, "repaired": 0, "refused": 0} == done


def test_a_repair_changes_nothing_else():
    """The word among the parents costs all of them, a parent that is the question itself only that one."""
    found = {entry.item: dsg.parse(entry) for entry in dsg.entries(ANNOTATIONS)}
    own = found["tifa160_69"].questions.questions

    assert {()} == {q.depends_on for q in found["tifa160_67"].questions.questions}
    assert (1,) == next(q.depends_on for q in own if q.id == 3)
    assert () == found["tifa160_0"].repairs
    assert "repaired" not in found["tifa160_0"].questions.provenance
    for each in found.values():
        check(each.questions.questions)


def test_a_longer_cycle_loses_the_parent_that_comes_later():
    """A child usually follows its parents."""
    questions = [Question(1, "a", depends_on=(2,)), Question(2, "b", depends_on=(1,)), Question(3, "c")]
    kept, _ = dsg.without_cycles(questions)

    assert [(), (1,), ()] == [q.depends_on for q in kept]


def test_equal_questions_become_one_with_the_children_of_both():
    """And no child has a parent twice."""
    kept, _ = dsg.asked_once([Question(1, "A?"), Question(2, "a? "), Question(3, "c", depends_on=(1, 2))])

    assert [(1, ()), (3, (1,))] == [(q.id, q.depends_on) for q in kept]


def test_of_questions_with_one_number_the_second_gets_a_new_one():
    """The first keeps it, and its children."""
    kept, _ = dsg.numbered_once([Question(5, "a"), Question(5, "b"), Question(6, "c", depends_on=(5,))])

    assert [(5, "a", ()), (7, "b", ()), (6, "c", (5,))] == [(q.id, q.text, q.depends_on) for q in kept]
