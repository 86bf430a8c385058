"""The table of `make demo`: every picture, its two prompts and their scores, as text."""

from collections.abc import Sequence

from demo.pairs import METRICS, Judged, Pair


def table(pairs: Sequence[Pair], colour: bool = False) -> str:
    """
    Two lines a picture: the right prompt, then the wrong one, each with its scores.

    ✓ beside a score says that the right prompt scored above the wrong one, ✗ that it did not.
    """
    wide = max(len(pair.file) for pair in pairs)
    words = max(len(judged.prompt) for pair in pairs for judged in (pair.right, pair.wrong))
    heads = "".join(f"  {label:>9}  " for label in METRICS.values())
    lines = [f"{'PICTURE':{wide}}  {'':5}  {'PROMPT':{words}}{heads}".rstrip()]
    for pair in pairs:
        marks = {metric: "✓" if pair.told_apart(metric) else "✗" for metric in METRICS}
        right = "".join(f"{number(pair.right, m)} {painted(mark, colour)}" for m, mark in marks.items())
        wrong = "".join(f"{number(pair.wrong, m)}  " for m in METRICS)
        lines += [
            f"{pair.file:{wide}}  right  {pair.right.prompt:{words}}{right}",
            f"{'':{wide}}  wrong  {pair.wrong.prompt:{words}}{wrong}".rstrip(),
        ]
    return "\n".join(lines)


def number(judged: Judged, metric: str) -> str:
    """A score in its column, a dash where there is none."""
    score = judged.scores.get(metric)
    return f"  {'–' if score is None else f'{score:.3f}':>9}"


def painted(mark: str, colour: bool) -> str:
    return f"\033[{32 if mark == '✓' else 31}m{mark}\033[0m" if colour else mark


def verdicts(pairs: Sequence[Pair]) -> str:
    """How many pairs each metric tells apart."""
    told = (f"{sum(pair.told_apart(metric) for pair in pairs)} of {len(pairs)}" for metric in METRICS)
    return "VQAScore tells {} apart, CLIPScore {}, DSG {}.".format(*told)
