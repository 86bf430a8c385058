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
from service.metrics.common.contract import MetricOptions, Score
from service.observability.instruments import Instruments
from service.observability.notes import Code, Note
from service.scoring.plan import Input, UnopenedItem
from service.scoring.report import ItemReport, Report, most_telling, of_frames, unknown_words

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


FRAMES = (0.9, 0.1, 0.5, 0.7, 0.3)


def folded_frames(scores, lower=False, **options):
    """The score of an item from those of its frames."""
    item = UnopenedItem("", [])
    inputs = [Input(item, 0, (Frame(0),), len(scores), (), None) for _ in scores]
    return of_frames(scores, inputs, MetricOptions(**options), lower)


def test_the_mean_of_frames_has_the_standard_error_of_a_mean():
    """Of independent samples: the root of the sum of squares over the number of frames."""
    scores = [Score(0.5, {}, error=0.3), Score(0.7, {}, error=0.4)]

    assert 0.25 == pytest.approx(folded_frames(scores).error)


@pytest.mark.parametrize(
    ("options", "value", "of_lower"),
    [
        ({}, 0.5, 0.5),
        ({"share": 0.2}, 0.5, 0.5),
        ({"frames": "min"}, 0.1, 0.1),
        ({"frames": "top"}, 0.7, 0.3),
        ({"frames": "top", "share": 0.4}, 0.8, 0.2),
        ({"frames": "top", "share": 0.41}, 0.7, 0.3),
        ({"frames": "top", "share": 1.0}, 0.5, 0.5),
        ({"frames": "top", "share": 1e-12}, 0.9, 0.1),
        ({"frames": "quantile"}, 0.5, 0.5),
        ({"frames": "quantile", "share": 0.1}, 0.18, 0.18),
        ({"frames": "quantile", "share": 1.0}, 0.9, 0.9),
    ],
)
def test_frames_count_by_their_mean_the_best_the_least_or_a_quantile(options, value, of_lower):
    """The best are the lowest where lower is better; details have all frames in their order."""
    scores = [Score(score, {}) for score in FRAMES]
    result = folded_frames(scores, **options)

    assert value == pytest.approx(result.value)
    assert [*FRAMES] == [frame["score"] for frame in result.details["frames"]]
    assert of_lower == pytest.approx(folded_frames(scores, lower=True, **options).value)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"frames": "min"}, 0.3),
        ({"frames": "top", "share": 0.5}, 0.4),
        ({"frames": "quantile", "share": 0.5}, 0.25),
        ({"frames": "quantile", "share": 1.0}, 0.4),
    ],
)
def test_the_standard_error_is_that_of_the_frames_that_count(options, error):
    scores = [Score(0.7, {}, error=0.4), Score(0.5, {}, error=0.3)]

    assert error == pytest.approx(folded_frames(scores, **options).error)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.1, 0.9, 1.0])
def test_a_share_of_ten_frames_is_not_rounded_up_by_the_arithmetic(share):
    """0.7 of ten are seven."""
    scores = [Score(number, {}) for number in range(10)]
    count = round(10 * share)

    assert sum(range(10 - count, 10)) / count == folded_frames(scores, frames="top", share=share).value


def test_a_share_without_a_part_in_the_score_has_a_warning():
    [note] = MetricOptions(share=0.2).unused()

    assert "the option share has no effect with this frames" == note.text
    assert () == MetricOptions(share=0.2, frames="top").unused()
