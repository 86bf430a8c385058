"""Details of a score as text: those within others are shown under their name."""

from scoregate.cli.questions import explained

QUESTION = {"id": 1, "text": "Is it red?", "answer": "yes", "probability": 0.9, "score": 0.9}


def test_the_parts_of_a_composite_are_shown_with_their_details():
    """Each with its score, and the questions of one that has some."""
    part = {"score": 0.9, "weight": 0.5, "details": {"questions": [QUESTION]}}
    lines = explained({"parts": {"dsg": part, "clipscore": {"score": 0.25, "details": {}}}}).splitlines()

    assert ["  dsg:", "    score: 0.9000", "    weight: 0.5000", "    details:"] == lines[:4]
    assert "Is it red?" in lines[5]
    assert ["  clipscore:", "    score: 0.2500"] == lines[6:]


def test_the_frames_of_a_video_are_shown_one_after_another():
    """From 1, with the number of each in the file."""
    lines = explained({"frames": [{"score": 0.5, "frame": 0}, {"score": 1.0, "frame": 12}], "frames_used": 2})

    assert [
        *("  frames_used: 2", "  frame 1:", "    score: 0.5000", "    frame: 0"),
        *("  frame 2:", "    score: 1.0000", "    frame: 12"),
    ] == lines.splitlines()


def test_names_that_other_metrics_use_otherwise_are_no_details():
    """A metric of a plug-in may count its frames, or list its parts."""
    assert "  frames: 8" == explained({"frames": 8, "parts": ["head", "tail"], "grid": None})


def test_a_grid_of_frames_has_the_details_of_its_picture():
    """Beside its size."""
    assert ["  side: 2", "  grid:", "    p_yes: 0.5000"] == explained(
        {"grid": {"p_yes": 0.5}, "side": 2}
    ).splitlines()


JUDGED = {
    "rubric": "poster",
    "calls": [{"question": "Grade it.\nFrom 1 to 5.", "written": ["4: \x1b[2Jgood", "5"]}],
    "outputs": {
        "grade": {"value": 4.5, "answers": [4, 5], "spread": 0.7071, "probabilities": None},
        "fits": {"value": 0.75, "answers": None, "spread": None, "probabilities": {"yes": 0.75, "no": 0.25}},
    },
    "samples": [4, 5],
}


def test_a_judges_questions_words_and_grades_are_shown():
    """What it wrote, the answers that were read, and the probabilities; nothing steers the terminal."""
    lines = explained(JUDGED).splitlines()

    assert ["    Grade it.", "    From 1 to 5.", r"  wrote: 4: \x1b[2Jgood", "  wrote: 5"] == lines[:4]
    assert ["OUTPUT", "VALUE", "ANSWERS", "SPREAD", "PROBABILITIES"] == lines[4].split()
    assert ["grade", "4.5000", "4", "/", "5", "0.7071"] == lines[5].split()
    assert ["fits", "0.7500", "yes", "0.7500,", "no", "0.2500"] == lines[6].split()
    assert ["  rubric: poster"] == lines[7:]


def test_calls_and_outputs_of_another_kind_are_no_grades():
    """A metric of a plug-in may have such names."""
    assert "  calls: 3" == explained({"calls": 3, "outputs": ["a"]})
    assert "  calls: [1]" not in explained({"calls": [1], "outputs": {"a": 1}})


def test_one_output_of_a_judge_has_its_answers_and_probabilities():
    """As the metric `judge.fits` returns them."""
    output = {**JUDGED["outputs"]["fits"], "label_mass": 0.9}
    lines = explained({"rubric": "poster", **output}).splitlines()

    assert ["VALUE", "PROBABILITIES"] == lines[0].split()
    assert ["0.7500", "yes", "0.7500,", "no", "0.2500"] == lines[1].split()
    assert {"  rubric: poster", "  value: 0.7500", "  label_mass: 0.9000"} == {*lines[2:]}


def test_the_questions_of_a_checklist_have_weights_and_what_they_add():
    """A question that only gates others has no weight; the alignment stands below."""
    asked = {"id": 1, "text": "Is it red?", "answer": "yes", "probability": 0.9, "score": 1.0}
    gate = {**asked, "weight": None, "contribution": 0.0}
    gated = {**asked, "id": 2, "depends_on": [1], "weight": -0.5, "contribution": -0.5}
    alignment = {"score": 0.25, "weight": 2.0, "contribution": 0.5}

    head, *rows = explained({"questions": [gate, gated], "alignment": alignment}).splitlines()

    assert ["WEIGHT", "CONTRIBUTION"] == head.split()[-2:]
    assert [["–", "0.0000"], ["-0.5000", "-0.5000"]] == [row.split()[-2:] for row in rows[:2]]
    assert ["alignment:", "score: 0.2500", "weight: 2.0000", "contribution: 0.5000"] == [
        row.strip() for row in rows[2:]
    ]
