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
