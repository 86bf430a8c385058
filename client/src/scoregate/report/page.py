"""The whole page: one file without scripts and links, in light or dark mode."""

from scoregate.cli.sheet import POLICY
from scoregate.report.agreement import agreement
from scoregate.report.cost import cost
from scoregate.report.head import head
from scoregate.report.html import safe, section
from scoregate.report.matrix import matrices
from scoregate.report.means import means
from scoregate.report.rows import Scored
from scoregate.report.skills import skills
from scoregate.report.style import STYLE
from scoregate.report.worst import title as title_of_worst
from scoregate.report.worst import worst


def page(scored: Scored, *, alpha: float, pictures: int) -> str:
    """
    Return the page's HTML.

    Args:
        alpha: two generators differ if p is below it.
        pictures: that are shown of each metric.
    """
    sections = {
        "means": ("Scores", lambda: means(scored)),
        "skills": ("Skills", lambda: skills(scored)),
        "ordering": ("Which generator is better", lambda: matrices(scored, alpha)),
        "agreement": ("Against people's ratings", lambda: agreement(scored)),
        "worst": (title_of_worst(scored), lambda: worst(scored, pictures)),
        "cost": ("Cost", lambda: cost(scored)),
    }
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, (title, _) in sections.items())
    drawn = "".join(section(name, title, body) for name, (title, body) in sections.items())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Scores of {safe(scored.name)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>Scores of {safe(scored.name)}</h1>\n{head(scored)}</header>\n"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>\n{drawn}</main>\n</body>\n</html>\n'
    )
