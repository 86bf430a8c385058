"""Files of checklists: what they may hold, and what the doctor says of them."""

import hashlib
import json
from math import exp, log
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from models.core.outcomes import Likelihood
from models.families.fake.model import GREY
from service.core.errors import Unanswered
from service.core.settings.tree import Settings
from service.metrics.checklist import ChecklistOptions, checklist, demand_of, questions_of, shipped, unsure
from service.metrics.common.contract import Item
from service.metrics.rubrics.checklists import Checklist, checklists_in, read_checklist
from service.observability.notes import Code
from service.process.doctor import check_checklists
from service.serving.admission import Demand
from tests.support.checklists import MASKED_BY, write_checklists
from tests.support.pages import fences

GOOD = 'questions = ["Is it red?", "Is it round?", "Is it big?"]\nweights = [1, 2]\ngates = [[1, 3]]\n'


def test_a_checklist_reads_the_copies_of_a_releases_files_beside_it(tmp_path):
    """Questions one a line, weights as a list or with an intercept, in the order of the release."""
    write_checklists(tmp_path)

    image, files = read_checklist(tmp_path / "image.toml")
    video, _ = read_checklist(tmp_path / "video.toml")

    assert (30, 28, -0.7) == (len(image.questions), len(image.weights), image.intercept)
    assert [*range(4, 31)] == [*image.factors]
    assert (1, 2) == tuple(image.all_questions[number].depends_on[0] for number in (29, 26))
    assert ["image.txt", "image.json"] == [file.path.name for file in files]
    assert "Does it show a cat? Please answer yes or no." == video.texts("a cat")[-1]
    assert np.divide(video.weights, 29) == pytest.approx([*video.factors.values()])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("[1, 2]", "[1]"),
            "weights: there are 1, and 2 are needed: one for each question that gates no other$",
        ),
        (
            ("gates", "alignment = true\ngates"),
            "weights: there are 2, and 3 are needed: .*, and for the alignment",
        ),
        (("[1, 2]", "[1, nan]"), r"weights\.1: Input should be a finite number|weights\.1: .*less than"),
        (("[1, 2]", "[1, 1e7]"), r"weights\.1: Input should be less than or equal to 1000000"),
        (("[1, 2]", "[1, true]"), r"weights\.1: Input should be a valid number"),
        (("[1, 2]", "[0, 0]"), "weights: all are 0"),
        (("[1, 2]", "[1e-12, 0]\nintercept = 1e6"), "weights: .*, or too small for this intercept"),
        (("[[1, 3]]", "[[1, 4]]"), "gates: there is no question 4"),
        (("[[1, 3]]", "[[4, 1]]"), "gates: there is no question 4"),
        (("[[1, 3]]", "[[0, 3]]"), r"gates\.0\.0: Input should be greater than or equal to 1"),
        (("[[1, 3]]", "[[1]]"), r"gates\.0: List should have at least 2 items"),
        (("[[1, 3]]", "[[1, 2], [2, 3]]"), "gates: question 2 gates others, and is gated by 1"),
        (("[[1, 3]]", "[[1, 1]]"), "gates: question 1 gates others, and is gated by 1"),
        (("[[1, 3]]", "[[1, 3], [1, 2]]"), "gates: two lists begin with question 1"),
        (("[[1, 3]]", "[[1, 3, 3]]"), "gates: the list of question 1 names a question twice"),
        (("big", "red"), 'questions: "Is it red[?]" stands there 2 times'),
        (("Is it big?", " "), r"questions\.2: is empty"),
        (("Is it big?", "{prompt} or {prompt}?"), "questions: question 3 has {prompt} more than once"),
        (("Is it big?", "x" * 1001), r"questions\.2: String should have at most 1000 characters"),
        (("gates", 'template = "x"\ngates'), "template: must contain {} exactly once"),
        (
            ("gates", 'score = "mean"\nintercept = 1\ngates'),
            "score: a mean has neither alignment nor intercept",
        ),
        (("gates", 'prompt_slot = "[[prompt]]"\ngates'), r"prompt_slot: no question has \[\[prompt\]\]"),
        (("gates", "colour = 1\ngates"), "colour: Extra inputs are not permitted"),
        (("weights", "weights ="), "line 2"),
        (("[1, 2]", '"gone.json"'), r"weights: .*/gone\.json is not there"),
        (("[1, 2]", '"../gone.json"'), "weights: the name of a file must match"),
        (
            ("[1, 2]", '"bad.json"'),
            r"weights: .*/bad\.json must have a list of numbers, or an object of coef",
        ),
        (("[1, 2]", '"nan.json"'), r"weights\.1: Input should be (a finite number|less)"),
        (("[1, 2]", '"cut.json"'), r"weights: .*/cut\.json Expecting"),
        (('["Is it red?", "Is it round?", "Is it big?"]', '"gap.txt"'), r"questions\.1: is empty"),
        (
            ("[1, 2]", '"both.json"\nintercept = 1'),
            r"weights: .*/both\.json has an intercept, and so has the TOML file",
        ),
        (
            ('["Is it red?", "Is it round?", "Is it big?"]', '"bytes.txt"'),
            r"questions: .*/bytes\.txt is not UTF-8",
        ),
        (("gates", f"# {'x' * 65_536}\ngates"), "has more than 65536 bytes"),
    ],
)
def test_a_file_that_is_no_checklist_is_refused_with_its_name_and_field(tmp_path, change, said):
    """Wrong counts, no number, gates of nothing or of gates, duplicates, empty, too long, missing files."""
    (tmp_path / "bad.json").write_text('{"coef": [1, 2]}', "utf-8")
    (tmp_path / "nan.json").write_text("[1, NaN]", "utf-8")
    (tmp_path / "cut.json").write_text("[1, 2", "utf-8")
    (tmp_path / "bytes.txt").write_bytes(b"\xff")
    (tmp_path / "both.json").write_text('{"coef": [1, 2], "intercept": [0]}', "utf-8")
    (tmp_path / "gap.txt").write_text("Is it red?\n\nIs it big?", "utf-8")
    (tmp_path / "mine.toml").write_text(GOOD.replace(*change), "utf-8")

    with pytest.raises(ValueError, match=rf"^mine\.toml: .*(?:{said})"):
        read_checklist(tmp_path / "mine.toml")


def test_the_checklists_of_the_guide_are_read(tmp_path):
    """One with its own questions, and one with the files of a release, whose gates are those of its code."""
    own, copied = (text for _, text in fences("guides/your-own-judge.md", "toml") if "gates" in text)
    write_checklists(tmp_path)
    (tmp_path / "own.toml").write_text(own, "utf-8")
    (tmp_path / "copied.toml").write_text(copied, "utf-8")
    (tmp_path / "image.txt").rename(tmp_path / "questions.txt")
    (tmp_path / "image.json").rename(tmp_path / "weights.json")

    assert {2: 0.5, 3: 0.8, 4: 0.3} == read_checklist(tmp_path / "own.toml")[0].factors
    gates = read_checklist(tmp_path / "copied.toml")[0].gates
    assert {gate - 1: [number - 1 for number in others] for gate, *others in gates} == MASKED_BY


def test_64_questions_are_the_most():
    texts = [f"Is it {number}?" for number in range(65)]

    Checklist(questions=texts[:64], weights=[1.0] * 64)
    with pytest.raises(ValueError, match="at most 64 items"):
        Checklist(questions=texts, weights=[1.0] * 65)


@pytest.mark.parametrize("field", ["questions", "weights"])
def test_only_a_file_of_the_service_names_files(field):
    """Whoever sends a table has its content."""
    table = {"questions": ["Is it red?"], "weights": [1.0], field: "image.txt"}

    with pytest.raises(ValueError, match="Value error, only checklists in the service's folders name files"):
        Checklist(**table)


def test_names_are_those_of_the_files_and_each_is_there_once(tmp_path):
    """The folder's come before those of the service, which they cannot replace."""
    (tmp_path / "mine.toml").write_text(GOOD, "utf-8")
    known = ChecklistOptions.tables

    assert ["mine", "demo"] == [*checklists_in([tmp_path], known)]
    with pytest.raises(ValueError, match=r"mine\.toml: there is another one of that name"):
        checklists_in([tmp_path, tmp_path], known)
    with pytest.raises(ValueError, match="gone: there is no such folder"):
        checklists_in([tmp_path / "gone"], known)
    (tmp_path / "demo.toml").write_text(GOOD, "utf-8")
    with pytest.raises(ValueError, match=r"demo\.toml: there is another one of that name"):
        checklists_in([tmp_path], known)


def test_the_digest_covers_the_files_that_a_checklist_names(tmp_path):
    """One weight or one word more is another digest; a comment is none."""
    write_checklists(tmp_path)

    def digest():
        return read_checklist(tmp_path / "image.toml")[0].digest

    digests = [digest()]
    for name, old, new in [
        ("image.json", "2.354", "2.355"),
        ("image.txt", "thing", "object"),
        ("image.toml", "30]", "4]"),
    ]:
        path = tmp_path / name
        path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
        digests.append(digest())
    (tmp_path / "image.toml").write_text(
        "# of 2026\n" + (tmp_path / "image.toml").read_text("utf-8"), "utf-8"
    )

    assert len(set(digests)) == 4
    assert digests[-1] == digest()


def test_the_range_holds_the_scores_of_all_answers():
    """Over all answers of a small table, of which the extremes are reached."""
    table = {"questions": ["a?", "b?", "c?"], "weights": [0.7, 0.1, -0.2], "intercept": 0.3}
    least, largest = Checklist(**table).bounds
    signs = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1)
    scores = np.array(table["weights"]) @ signs + 0.3

    assert (scores.min(), scores.max()) == (pytest.approx(least), pytest.approx(largest))
    aligned = Checklist(**{**table, "questions": ["a?", "b?"]}, alignment=True)
    assert (0.0, 1.3) == tuple(map(pytest.approx, aligned.bounds))


def likely(yes, no=0.0):
    """The answer of a model that says yes and no with these probabilities."""
    return Likelihood((log(yes),), log(yes), log(no) if no else -1e4)


GATED = Checklist(
    questions=["Is it red?", "Is it round?", "Is {prompt} big?"],
    weights=[2, -1],
    gates=[[1, 3]],
    intercept=0.5,
)


def test_each_question_is_shown_with_its_answer_and_its_part_of_the_score():
    """As many are needed to check the score by hand; one that gates others has no weight."""
    no, yes = questions_of(GATED, [likely(0.2, 0.6), likely(0.6, 0.2), likely(0.9, 0.1)])[:2]
    [*_, gated] = questions_of(GATED, [likely(0.2, 0.6), likely(0.6, 0.2), likely(0.9, 0.1)])
    [*_, counted] = questions_of(GATED, [likely(0.6, 0.2), likely(0.6, 0.2), likely(0.1, 0.9)])

    shown = {"depends_on": (), "label_mass": pytest.approx(0.8), "zeroed_by": []}
    assert no == shown | {
        **{"id": 1, "text": "Is it red?", "answer": "no", "probability": pytest.approx(0.25)},
        **{"score": -1.0, "weight": None, "contribution": 0.0},
    }
    assert yes == shown | {
        **{"id": 2, "text": "Is it round?", "answer": "yes", "probability": pytest.approx(0.75)},
        **{"score": 1.0, "weight": 2.0, "contribution": 2.0},
    }
    assert ((1,), [1], "yes", 0.0, -1.0, 0.0) == tuple(
        gated[name] for name in ("depends_on", "zeroed_by", "answer", "score", "weight", "contribution")
    )
    assert ((1,), [], "no", -1.0, -1.0, 1.0) == tuple(
        counted[name] for name in ("depends_on", "zeroed_by", "answer", "score", "weight", "contribution")
    )
    assert "0.0" == str(gated["contribution"]) == str(no["contribution"])  # without a sign


def test_an_answer_that_is_as_likely_as_the_other_is_no():
    """Only a larger probability of yes is +1."""
    assert [-1.0, 1.0] == [
        each["score"] for each in questions_of(GATED, [likely(0.4, 0.4), likely(0.41, 0.4), likely(0.1)])[:2]
    ]


def test_a_question_without_the_probability_of_any_answer_is_named_by_its_number():
    with pytest.raises(Unanswered, match=r"^question 2: neither yes nor no has any probability$"):
        questions_of(GATED, [likely(0.9), Likelihood((-1e4,), -1e4, -1e4), likely(0.9)])


@pytest.mark.parametrize(
    ("masses", "said"),
    [
        ((0.5, 0.6, 0.7), None),
        ((0.6, 0.49, 0.7), "yes and no have 0.49 of the probability of the answer to question 2: "),
        (
            (0.3, 0.1, 0.5),
            "yes and no have 0.1 of the probability of the answer to question 2, "
            "and below 0.5 of 2 answers: ",
        ),
    ],
)
def test_the_least_sure_answer_is_the_warning_with_the_number_of_others(masses, said):
    """None where yes and no have half of the probability of each answer."""
    asked = [{"id": number, "label_mass": mass} for number, mass in enumerate(masses, 1)]
    notes = [(Code.LOW_LABEL_MASS, f"{said}the model would answer something else")] if said else []

    assert notes == [(note.code, note.text) for note in unsure(asked)]


@pytest.mark.anyio
async def test_the_score_of_the_prompt_is_the_last_call_and_the_first_weight():
    """By the mean of the log-probabilities of its tokens, as `vqascore` has it by default."""
    chosen = Checklist(questions=["Is {prompt} red?"], weights=[3, 2], alignment=True, intercept=0.5)
    calls = []

    async def ask(*call):
        calls.append(call)
        return [likely(0.9, 0.1), Likelihood((-0.5, -0.1), -0.5, -3.0)]

    class Options(ChecklistOptions):
        tables: ClassVar = {"demo": chosen}

    vqa = SimpleNamespace(ask=ask, question="Does it show {}?")
    found = await checklist(Item(GREY, "a dog"), SimpleNamespace(vqa=vqa), Options())

    asked = ["Is a dog red? Please answer yes or no.", "Does it show a dog?"]
    assert [(GREY, asked, "Yes")] == calls
    aligned = {"score": exp(-0.3), "weight": 3.0, "contribution": 3 * exp(-0.3)}
    assert 2.0 + 0.5 + 3 * exp(-0.3) == pytest.approx(found.value)
    assert ("demo", chosen.digest, 0.5, aligned) == tuple(
        found.details[name] for name in ("checklist", "digest", "intercept", "alignment")
    )
    assert ["Is {prompt} red?"] == [each["text"] for each in found.details["questions"]]


def test_the_digest_is_the_hash_of_all_fields_as_json():
    """Whoever has the table can compute it."""
    fields = {
        **{"questions": ["Is it rosé?"], "weights": [2.0], "intercept": 0.0, "score": "sum"},
        **{"alignment": False, "gates": [], "template": "{} Please answer yes or no."},
        **{"prompt_slot": "{prompt}"},
    }
    content = json.dumps(fields, ensure_ascii=False).encode()

    assert f"sha256:{hashlib.sha256(content).hexdigest()}" == Checklist(**fields).digest


def test_a_file_of_as_many_bytes_as_are_allowed_is_read(tmp_path):
    (tmp_path / "mine.toml").write_text(GOOD + "#" * (65_536 - len(GOOD)), "utf-8")

    assert [1.0, 2.0] == read_checklist(tmp_path / "mine.toml")[0].weights


def test_the_checklist_of_the_demo_has_a_warning_and_no_other_one():
    """By the table itself: one with its questions is somebody's own."""
    demo = ChecklistOptions().chosen
    own = demo.model_copy(update={"intercept": 0.5})

    assert [Code.DEMO_CHECKLIST] == [note.code for note in shipped(demo)]
    assert [] == shipped(own)


def test_a_name_is_one_that_an_option_may_have(tmp_path):
    (tmp_path / "My.toml").write_text(GOOD, "utf-8")

    with pytest.raises(ValueError, match=r"^My\.toml: a name must match "):
        read_checklist(tmp_path / "My.toml")


def test_the_demand_is_a_call_for_each_question_and_one_for_the_alignment(tmp_path):
    """With the lengths of the texts, so that a long prompt in each question is counted."""

    aligned = Checklist(questions=["{prompt}?", "b?"], weights=[1, 1, 1], alignment=True)

    class Options(ChecklistOptions):
        tables: ClassVar = {"demo": aligned}

    assert 5 == demand_of("a dog", ChecklistOptions())["vqa"].calls
    suffix = len(" Please answer yes or no.")
    assert {"vqa": Demand(3, 2 * 100 + len("?b?") + 2 * suffix)} == demand_of("p" * 100, Options())


def test_the_doctor_names_path_and_hashes_of_each_checklist(tmp_path):
    write_checklists(tmp_path)
    (tmp_path / "video.json").write_text("[1]", "utf-8")
    settings = Settings.model_validate({"models": {}, "checklists": {"folders": [str(tmp_path)]}})

    read, broken = map(str, check_checklists(settings.checklist_files))

    checklist, _ = read_checklist(tmp_path / "image.toml")
    assert f"✓ checklists: {tmp_path}/image.toml was read, {checklist.digest}; " in read
    for name in ("image.txt", "image.json"):
        content = (tmp_path / name).read_bytes()
        assert f"{tmp_path}/{name} was read, sha256:{hashlib.sha256(content).hexdigest()}" in read
    assert "✗ checklists: video.toml: weights: there are 1, and 29 are needed" in broken
    assert f"correct {tmp_path}/video.toml" in broken


def test_options_show_the_name_with_the_digest():
    """In provenance and in the ids of policies, so that a changed file is another policy."""
    options = ChecklistOptions()

    assert f"demo@{options.chosen.digest}" == json.loads(options.model_dump_json())["checklist"]
    assert "demo" == ChecklistOptions(checklist=f"demo@{options.chosen.digest}").name
    with pytest.raises(ValueError, match="must be one of demo"):
        ChecklistOptions(checklist="gone")


def test_a_file_of_weights_with_a_key_twice_is_refused(tmp_path):
    """The first list of weights would be ignored."""
    write_files(tmp_path, '{"coef": [1, 2], "coef": [3, 4], "intercept": [0]}')

    with pytest.raises(ValueError, match=r"a\.toml: weights: .*a\.json has a key twice"):
        read_checklist(tmp_path / "a.toml")


def test_only_the_end_of_a_line_ends_a_question(tmp_path):
    """Not a separator of lines within it; a byte order mark of any of the files is ignored."""
    write_files(tmp_path, "[1, 2]")

    assert ["Is it\u2028red?", "Is it round?"] == read_checklist(tmp_path / "a.toml")[0].questions


def write_files(folder, weights):
    """Write a checklist of two questions with such weights, all files with a byte order mark."""
    files = {
        "a.toml": 'questions = "a.txt"\r\nweights = "a.json"\r\n',
        "a.txt": "Is it\u2028red?\r\nIs it round?\r\n",
        "a.json": weights,
    }
    for name, text in files.items():
        (folder / name).write_bytes(text.encode("utf-8-sig"))
