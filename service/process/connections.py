"""How many connections the process takes: fewer than the files that it may open."""

import resource

MOST_FILES = 65_536


def most_connections() -> int:
    """
    Three quarters of the files that the process may open, once it may open as many as the system lets it.

    The rest is for everything else: models, question sets, connections to other servers.  Without a limit of
    our own the process would run out of files, could take no connection at all, and try it again and again.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    files = MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, MOST_FILES)
    return files * 3 // 4
