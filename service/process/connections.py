"""The limit of connections: fewer than the files that the process may open."""

import resource

MOST_FILES = 65_536


def most_connections() -> int:
    """
    Raise the limit of open files as far as the system allows, and return three quarters of it.

    The rest is for models, question sets and connections to other servers.  Without this limit the process
    would run out of files, and asyncio would retry to accept connections in a loop.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    files = MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, MOST_FILES)
    return files * 3 // 4
