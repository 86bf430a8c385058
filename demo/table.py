"""The table of `make demo`: every picture, its two prompts and their scores, as text."""

from collections.abc import Sequence

from demo.pairs import METRICS, Judged, Pair


def table(pairs: Sequence[Pair], colour: bool = False) -> str:
    """
    Two lines a picture: the right prompt, then the wrong one, each with its scores.

    ✓ beside a score says that the right prompt scored above the wrong one, ✗ that it did not.  Neither stands
    where the metric was not asked.
    """
    wide = max(len(pair.file) for pair in pairs)
    words = max(len(judged.prompt) for pair in pairs for judged in (pair.right, pair.wrong))
    heads = "".join(f"  {label:>9}  " for label in METRICS.values())
    lines = [f"{'PICTURE':{wide}}  {'':5}  {'PROMPT':{words}}{heads}".rstrip()]
    for pair in pairs:
        marks = {metric: mark(pair, metric) for metric in METRICS}
        right = "".join(f"{number(pair.right, m)} {painted(said, colour)}" for m, said in marks.items())
        wrong = "".join(f"{number(pair.wrong, m)}  " for m in METRICS)
        lines += [
            f"{pair.file:{wide}}  right  {pair.right.prompt:{words}}{right}".rstrip(),
            f"{'':{wide}}  wrong  {pair.wrong.prompt:{words}}{wrong}".rstrip(),
        ]
    return "\n".join(lines)


def mark(pair: Pair, metric: str) -> str:
    """Whether a metric tells the right prompt from the wrong one."""
    if not pair.asked(metric):
        return " "
    return "✓" if pair.told_apart(metric) else "✗"


def number(judged: Judged, metric: str) -> str:
    """A score in its column, a dash where there is none."""
    score = judged.scores.get(metric)
    return f"  {'–' if score is None else f'{score:.3f}':>9}"


def painted(said: str, colour: bool) -> str:
    return f"\033[{32 if said == '✓' else 31}m{said}\033[0m" if colour and said.strip() else said


def verdicts(pairs: Sequence[Pair]) -> str:
    """How many pairs each metric tells apart."""
    asked = {metric: [pair for pair in pairs if pair.asked(metric)] for metric in METRICS}
    told = (
        f"{sum(pair.told_apart(metric) for pair in some)} of {len(some)}" for metric, some in asked.items()
    )
    return "VQAScore tells {} apart, CLIPScore {}, DSG {}, GenEval {}.".format(*told)
