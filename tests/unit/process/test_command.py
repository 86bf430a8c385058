"""The parser of `scoregate-server`: a mistyped command, option or value is answered with the nearest."""

import pytest

from service.process.command import parser


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--confg", "demo"], "unrecognized argument: --confg; did you mean --config?"),
        (["serve", "--modle", "a"], "unrecognized argument: --modle; did you mean --model?"),
        (["serve", "--prot=80"], "unrecognized argument: --prot=80; did you mean --port?"),
        (["docter"], "; did you mean doctor?"),
        (["serve", "--dtype", "bfloat"], "; did you mean bfloat16?"),
        (["questions", "exprt", "a.jsonl"], "; did you mean export?"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest(capsys, words, said):
    """In the last line, which names the fault."""
    with pytest.raises(SystemExit):
        parser().parse_args(words)

    assert capsys.readouterr().err.rstrip().endswith(said)
