"""What becomes of a request whose scores or sets failed."""

import pytest

from models.core.contract import ModelInfo
from service.core.errors import (
    CallRefused,
    DeadlineExceeded,
    Draining,
    LaneFull,
    ModelFault,
    NoQuestions,
    Overloaded,
    QuestionLLMFailed,
    UpstreamFailed,
)
from service.images.frames import Frame
from service.metrics.common.contract import Score
from service.observability.instruments import Instruments
from service.observability.notes import Code, Note
from service.scoring.plan import Input, UnopenedItem
from service.scoring.report import ItemReport, Report, mean, most_telling, unknown_words

SCORE = Score(0.5, {})


def report(*outcomes):
    """One item for each; its outcomes by metric."""
    items = [ItemReport(UnopenedItem("", [], place=f"/items/{n}"), each) for n, each in enumerate(outcomes)]
    return Report(items)


@pytest.mark.parametrize(
    ("telling", "others"),
    [
        (LaneFull(retry_after_s=9.0), [NoQuestions(), LaneFull(retry_after_s=2.0), DeadlineExceeded()]),
        (Draining(), [QuestionLLMFailed(), Draining()]),
        (DeadlineExceeded(), [QuestionLLMFailed(), CallRefused(), DeadlineExceeded()]),
        (QuestionLLMFailed(), [NoQuestions(), QuestionLLMFailed(), CallRefused()]),
        (UpstreamFailed(), [CallRefused(), ModelFault()]),
        (NoQuestions(), [CallRefused()]),
    ],
)
def test_what_passes_by_itself_is_told_first_and_the_callers_own_faults_last(telling, others):
    """Refusals with the longest wait, a deadline, faults of ours, and then what the caller must change."""
    mixed = [telling, *others] if isinstance(telling, (UpstreamFailed, NoQuestions)) else [*others, telling]
    told = most_telling(mixed)

    assert (telling.code, telling.retry_after_s) == (told.code, told.retry_after_s)


def test_of_errors_that_tell_as_much_the_first_is_told():
    """So that the same request gets the same answer."""
    first, second = ModelFault("one"), QuestionLLMFailed("other")

    assert most_telling([NoQuestions(), first, second]) is first


def test_a_request_fails_as_a_whole_only_where_nothing_was_scored():
    """Else a refusal is its metric's error."""
    full, bad = LaneFull(retry_after_s=3.0), ModelFault()

    assert report({"a": full}, {"a": SCORE}).failure() is None
    assert report({"a": full, "b": bad}).failure() is None
    assert report({"a": Overloaded()}, {"a": full}).failure() is full
    assert isinstance(report({"a": full}, {"a": DeadlineExceeded()}).failure(), DeadlineExceeded)
    assert report().failure() is None


def test_warnings_have_one_order_that_of_the_request():
    """About the request, then about each item: its prompt and its scores."""
    about = [Note(Code.OF_THE_METRIC, text) for text in ("the request", "the prompt")]
    scored = Score(0.5, {}, warnings=("the score",))
    items = [ItemReport(UnopenedItem("", []), {"a": scored}, notes) for notes in ((), about[1:])]

    assert ["the request", "item 0, a: the score", "item 1: the prompt", "item 1, a: the score"] == [
        each.sentence for each in Report(items, notes=about[:1]).warnings
    ]


def test_a_prompt_is_warned_of_the_words_that_a_model_never_learnt():
    """In any case of letters, once for models with the same vocabulary, and at most twenty of them."""
    vocabulary = {"a": {"red", "cup"}, "b": {"red", "cup"}, "c": {"unicorn"}, "of any word": ()}
    models = [
        ModelInfo("vqa", "fake", name, "1", "float32", "cpu", vocabulary=frozenset(words))
        for name, words in vocabulary.items()
    ]

    assert ["words that a, b never learnt: blue, unicorn", "words that c never learnt: blue, cup"] == [
        each.text for each in unknown_words("Blue unicorn, CUP", models)
    ]
    assert [] == unknown_words("red", models[:2])
    [many] = unknown_words(" ".join(map(str, range(21))), models[:1])
    assert many.text.endswith(", …")


def test_a_ranked_picture_has_the_warnings_of_both_stages_once():
    """Both metrics' models may lack the same word."""
    notes = [Note(Code.UNKNOWN_WORDS, text) for text in ("one", "two")]
    cheap, dear = (
        ItemReport(UnopenedItem("", []), {name: SCORE}, given)
        for name, given in zip("ab", (notes[:1], notes), strict=True)
    )
    joined = cheap.joined(dear)

    assert ({"a": SCORE, "b": SCORE}, tuple(notes)) == (joined.results, joined.notes)


def test_a_refused_metric_is_counted_once_and_a_refused_request_by_whoever_answers_it():
    """Two items with a refused metric are one rejection."""
    instruments = Instruments([], {"a": (0, 1), "b": (0, 1)})

    def rejections():
        return [
            instruments.registry.get_sample_value("scoregate_rejections_total", {"reason": reason})
            for reason in ("lane_full", "overloaded")
        ]

    report({"a": LaneFull()}, {"a": LaneFull()}).count(instruments)
    assert [0, 0] == rejections()
    report({"a": LaneFull(), "b": SCORE}, {"a": LaneFull(), "b": SCORE}).count(instruments)
    assert [1, 0] == rejections()
    report({"a": LaneFull(), "b": Overloaded()}, {"a": SCORE, "b": Overloaded()}).count(instruments)
    assert [2, 1] == rejections()


def test_the_mean_of_frames_has_the_standard_error_of_a_mean():
    """Of independent samples: the root of the sum of squares over the number of frames."""
    item = UnopenedItem("", [])
    scores = [Score(0.5, {}, error=0.3), Score(0.7, {}, error=0.4)]
    inputs = [Input(item, 0, (Frame(0),), 2, (), None) for _ in scores]

    assert 0.25 == pytest.approx(mean(scores, inputs).error)
