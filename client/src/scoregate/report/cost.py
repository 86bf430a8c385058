"""The cost of scoring: time, and money if a price is given."""

from scoregate.report.html import Missing, note
from scoregate.report.rows import Scored

HOUR_S = 3600


def cost(scored: Scored) -> str:
    """Return a table of time and price over all logged runs.  Raises `Missing`."""
    of = scored.cost
    if not of.asked or not of.seconds:
        raise Missing("No run that scored a picture is recorded, so there are no times.")
    pace, of_1000 = of.asked / of.seconds, 1000 * of.seconds / of.asked
    figures = {
        "pictures requested": f"{of.asked}, in {of.runs} run{'s' * (of.runs > 1)}",
        "wall time": seconds(of.seconds),
        "pictures a second": f"{pace:.3g}",
        "time for 1,000 pictures": seconds(of_1000),
    }
    if of.price_per_hour is not None:
        figures["price of 1,000 pictures"] = f"{of.price_per_hour * of_1000 / HOUR_S:.3g}"
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in figures.items())
    said = [
        "The time is that of the command, for all metrics together. What the service did for others is in it."
    ]
    if of.price_per_hour is not None:
        said.append(f"At {of.price_per_hour:g} an hour.")
    if of.cached:
        said.append(f"For {of.cached} of them the service had the answers: new pictures cost more.")
    return f"<dl>{listed}</dl>\n{note(' '.join(said))}"


def seconds(value: float) -> str:
    """Return a time with its unit, to three digits."""
    if value < 60:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < HOUR_S else f"{value / HOUR_S:.3g} h"
