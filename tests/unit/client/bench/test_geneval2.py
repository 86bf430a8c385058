"""`scoregate bench geneval2`: means by skill, of prompts and by number of atoms."""

import json
from random import Random

import pytest

SKILLS = ("object", "attribute", "count", "position", "verb")


def made(random, prompts=40):
    """Prompts with three to ten atoms, and a probability for each of their questions."""
    data, scores = [], []
    for number in range(prompts):
        count = random.randint(3, 12)
        skills = [random.choice(SKILLS) for _ in range(count)]
        data.append(
            {
                "prompt": f"prompt {number}",
                "atom_count": min(count, 10),
                "vqa_list": [[f"Is {place} there?", "Yes"] for place in range(count)],
                "skills": skills,
            }
        )
        scores.append([random.random() for _ in range(count)])
    return data, scores


@pytest.fixture
def files(written, tmp_path):
    """The data, and the authors' list of lists of the scores."""

    def files(data, scores):
        (tmp_path / "scores.json").write_text(json.dumps(scores), "utf-8")
        return written(data, "data.jsonl"), f"a={tmp_path / 'scores.json'}"

    return files


def product(values):
    """The product of numbers, one after the other."""
    found = 1.0
    for value in values:
        found *= value
    return found


def test_skills_have_arithmetic_means_and_atoms_geometric_ones(bench, files):
    """Of questions, and of prompts."""
    data, scores = made(Random(3))
    [row] = (found := bench("geneval2", *files(data, scores), "--bootstrap", 0))["generators"]
    roots = [product(each) ** (1 / len(each)) for each in scores]
    expected = {
        "arithmetic": sum(sum(each) / len(each) for each in scores) / len(scores),
        "geometric": sum(roots) / len(roots),
    }
    pairs = [
        pair for each, own in zip(data, scores, strict=True) for pair in zip(each["skills"], own, strict=True)
    ]
    for skill in SKILLS:
        of_skill = [score for name, score in pairs if name == skill]
        expected[skill] = sum(of_skill) / len(of_skill)
    by_atoms = {}
    for each, root in zip(data, roots, strict=True):
        by_atoms.setdefault(each["atom_count"], []).append(root)

    assert expected == pytest.approx(row["mean"], abs=1e-6)
    assert {n: sum(of) / len(of) for n, of in by_atoms.items()} == pytest.approx(
        {int(each["figure"]): each["mean"]["a"] for each in found["atoms"]}, abs=1e-6
    )
    assert sorted(by_atoms) == [int(each["figure"]) for each in found["atoms"]]
    assert "40 of 800 prompts" in row["caution"]


def test_a_prompt_with_a_probability_of_0_has_the_geometric_mean_0(bench, files):
    """And one with 1 in all has 1; so its interval is of two prompts."""
    data, _ = made(Random(3), prompts=2)
    scores = [[1.0] * len(data[0]["skills"]), [0.0] + [1.0] * (len(data[1]["skills"]) - 1)]

    assert 0.5 == bench("geneval2", *files(data, scores))["generators"][0]["mean"]["geometric"]


def test_sums_of_probabilities_may_exceed_1_by_rounding(bench, files, written):
    """Of float32, as in the authors' file of scores: they count as 1."""
    data, _ = made(Random(3), prompts=2)
    sums = [[1.0000002] * len(each["skills"]) for each in data]
    rows = [
        {"item": place, "question": id, "answer": value}
        for place, each in enumerate(sums)
        for id, value in enumerate(each, 1)
    ]
    found = bench("geneval2", *files(data, sums), f"b={written(rows, 'b.csv')}", "--bootstrap", 0)

    assert [1, 1] == [row["mean"]["arithmetic"] for row in found["generators"]]
    assert [1, 1] == [row["mean"]["geometric"] for row in found["generators"]]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda scores: [[1.000002, *scores[0][1:]], scores[1]], "item 0: 1.000002 is not from 0 to 1"),
        (lambda scores: scores[:-1], "not a list for each of the 2 prompts"),
        (lambda scores: [scores[0][:-1], scores[1]], "item 0: "),
        (lambda scores: [[1.5, *scores[0][1:]], scores[1]], "item 0: 1.5 is not from 0 to 1"),
        (lambda scores: [["x", *scores[0][1:]], scores[1]], "item 0: 'x' is not a number"),
    ],
)
def test_probabilities_that_do_not_fit_the_data_are_refused(refused, files, change, line):
    """With the item."""
    data, scores = made(Random(3), prompts=2)

    assert line in refused("bench", "geneval2", *files(data, change(scores)))


def test_skills_that_are_not_those_of_the_questions_are_refused(refused, files):
    """With the line of the data."""
    data, scores = made(Random(3), prompts=2)
    data[1]["skills"].pop()

    assert "data.jsonl, line 2: prompt, vqa_list, skills" in refused(
        "bench", "geneval2", *files(data, scores)
    )
