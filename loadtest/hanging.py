"""
`python -m loadtest.hanging`: the service with fake models, which hang for ever after a SIGUSR1.

So does a GPU whose driver does not return, or a server that accepts a request and never answers.
"""

import threading

from loadtest.failing import serve

if __name__ == "__main__":
    serve(lambda _: threading.Event().wait())
