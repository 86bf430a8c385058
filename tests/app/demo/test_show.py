"""`make demo`: what is printed, and when it fails."""

import sys

from demo.draw_samples import SAMPLES
from demo.scoring import scored
from demo.show import show, table
from tests.support.reader import Reader


def test_the_table_holds_every_picture_and_both_prompts(client, judge, capsys, tmp_path):
    """Two lines a picture, all columns aligned; a right prompt that wins gets a tick; exit code 0."""
    pairs = scored(client)
    code = show(pairs, tmp_path / "demo.html")
    printed = capsys.readouterr().out

    assert 0 == code
    lines = table(pairs).splitlines()
    assert 1 + 2 * len(SAMPLES) == len(lines)
    for sample, right, wrong in zip(SAMPLES, lines[1::2], lines[2::2], strict=True):
        assert right.startswith(sample.file)
        assert f"right  {sample.right.text} " in right
        assert f"wrong  {sample.wrong.text} " in wrong
        assert "0.900 ✓" in right
        assert right in printed
        assert wrong in printed
    assert 1 == len({line.index("  right  ") for line in lines[1::2]})
    assert len(lines[0]) == lines[1].rindex(" ")
    assert "\033" not in printed
    assert f"VQAScore tells {len(SAMPLES)} of {len(SAMPLES)} apart, CLIPScore " in printed
    assert "mean nothing beyond this world" in printed
    assert str(tmp_path / "demo.html") in printed


def test_colours_are_for_a_terminal(client, judge):
    """The same table with its marks painted."""
    pairs = scored(client)

    painted = table(pairs, colour=True)
    assert "\033[32m✓\033[0m" in painted
    for code in ("\033[32m", "\033[31m", "\033[0m"):
        painted = painted.replace(code, "")
    assert table(pairs) == painted


def test_geneval_is_asked_where_it_has_words_for_the_prompt(client, judge, capsys, tmp_path):
    """Of the other samples it says nothing: neither a mark nor a verdict nor a reason."""
    show(scored(client), tmp_path / "demo.html")

    printed = capsys.readouterr().out
    beyond = [line for line in printed.splitlines() if line.startswith(("negation", "size"))]
    assert 3 == len(beyond)
    assert all(line.endswith(" –") for line in beyond)
    assert "GenEval 0 of 7." in printed
    assert "A prompt without a list must be one of GenEval's own." in printed
    assert "No GenEval" not in printed


def test_a_right_prompt_that_does_not_win_is_named_and_fails_the_demo(client, judge, capsys, tmp_path):
    """A tie under VQAScore is no win, whatever the other metrics say."""
    judge.blind = {SAMPLES[3].right.text}

    code = show(scored(client), tmp_path / "demo.html")

    printed = capsys.readouterr().out
    assert 1 == code
    assert f'✗ {SAMPLES[3].file}: under VQAScore "{SAMPLES[3].right.text}" does not beat' in printed
    assert f"VQAScore tells {len(SAMPLES) - 1} of {len(SAMPLES)} apart" in printed


def test_a_missing_score_is_a_dash_with_its_reason(client, judge, fakes, capsys, tmp_path):
    """No score tells nothing apart; the page and the text say why there is none."""
    fakes["questions"].texts[SAMPLES[0].right.text] = "no JSON"

    show(scored(client), tmp_path / "demo.html")

    printed = capsys.readouterr().out
    first = next(line for line in printed.splitlines() if line.startswith(SAMPLES[0].file))
    assert "  – ✗" in first
    [reason] = [line for line in printed.splitlines() if line.startswith(f"No DSG for {SAMPLES[0].file}")]
    assert reason.partition('": ')[2] in Reader((tmp_path / "demo.html").read_text()).text


def test_the_table_alone_needs_no_client(client, judge, capsys, monkeypatch):
    """The service's image lacks it, and so does the page there."""
    monkeypatch.setitem(sys.modules, "demo.page", None)

    assert 0 == show(scored(client), None)
    assert "Pictures, scores and questions" not in capsys.readouterr().out
