"""How many characters stand between two texts."""

from collections import defaultdict


def edit_distance(first: str, second: str) -> int:
    """
    The fewest characters to insert, delete or replace to make *second* of *first* (Levenshtein).

    The table of distances, one column after the other: two integers say with a bit for each row whether
    the column rises or falls there (Myers 1999, as Hyyrö 2003 writes it).  So long texts take no time.
    """
    rows = (1 << len(first)) - 1
    last = 1 << len(first) >> 1
    places: defaultdict[str, int] = defaultdict(int)
    for row, character in enumerate(first):
        places[character] |= 1 << row
    rises, falls, distance = rows, 0, len(first)
    for character in second:
        same = places[character] | falls
        level = (((same & rises) + rises) ^ rises) | same
        up = falls | (rows & ~(level | rises))
        down = level & rises
        distance += bool(up & last) - bool(down & last)
        up, down = up << 1 | 1, down << 1
        rises = rows & (down | ~(level | up))
        falls = rows & up & level
    return distance if first else len(second)
