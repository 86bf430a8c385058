"""The text table of `make demo`: every picture, its two prompts and their scores."""

from collections.abc import Sequence

from demo.pairs import METRICS, Judged, Pair


def table(pairs: Sequence[Pair], colour: bool = False) -> str:
    """
    Return two lines a picture: the right prompt, then the wrong one, each with its scores.

    ✓ next to a score means that the right prompt scored above the wrong one, ✗ that it did not.  There is no
    mark if the metric was not requested.
    """
    wide = max(len(pair.file) for pair in pairs)
    words = max(len(judged.prompt) for pair in pairs for judged in (pair.right, pair.wrong))
    heads = "".join(f"  {label:>9}  " for label in METRICS.values())
    lines = [f"{'PICTURE':{wide}}  {'':5}  {'PROMPT':{words}}{heads}".rstrip()]
    for pair in pairs:
        marks = {metric: mark(pair, metric) for metric in METRICS}
        right = "".join(f"{number(pair.right, m)} {painted(mark, colour)}" for m, mark in marks.items())
        wrong = "".join(f"{number(pair.wrong, m)}  " for m in METRICS)
        lines += [
            f"{pair.file:{wide}}  right  {pair.right.prompt:{words}}{right}".rstrip(),
            f"{'':{wide}}  wrong  {pair.wrong.prompt:{words}}{wrong}".rstrip(),
        ]
    return "\n".join(lines)


def mark(pair: Pair, metric: str) -> str:
    """Return the mark of a metric for a pair."""
    if not pair.requested(metric):
        return " "
    return "✓" if pair.distinguishes(metric) else "✗"


def number(judged: Judged, metric: str) -> str:
    """Return a score in its column, a dash if there is none."""
    score = judged.scores.get(metric)
    return f"  {'–' if score is None else f'{score:.3f}':>9}"


def painted(mark: str, colour: bool) -> str:
    return f"\033[{32 if mark == '✓' else 31}m{mark}\033[0m" if colour and mark.strip() else mark


def verdicts(pairs: Sequence[Pair]) -> str:
    """Return how many pairs each metric distinguishes."""
    scored = {metric: [pair for pair in pairs if pair.requested(metric)] for metric in METRICS}
    shares = (
        f"{sum(pair.distinguishes(metric) for pair in some)} of {len(some)}"
        for metric, some in scored.items()
    )
    return "VQAScore tells {} apart, CLIPScore {}, DSG {}, GenEval {}.".format(*shares)
