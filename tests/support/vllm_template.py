"""
`python -P vllm_template.py SOCKET`, with the Python that has vLLM: import it once, fork a server per caller.

The import takes 7 s of CPU time, and a server that is started as a command imports twice: itself, and in the
process of its engine.  A caller sends a line of JSON, the log and the server's arguments, and gets the number
of the server's process, which leads a group of that number.
"""

import gc
import json
import multiprocessing.context
import os
import signal
import socket
import sys
from collections.abc import Callable


def main() -> None:
    """Serve until killed; the servers go on."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        gc.disable()  # what is imported stays, and passes over it take a third of the time
        import vllm.entrypoints.launchers.api_server.entry as api
        import vllm.v1.engine.core
        import vllm.v1.worker.cpu_model_runner  # noqa: F401

        gc.freeze()
        gc.enable()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a server that has ended leaves nothing
        while True:
            caller, _ = listener.accept()
            with caller:
                log, *arguments = json.loads(caller.makefile().readline())
                if child := os.fork():
                    caller.sendall(str(child).encode())
                    continue
            listener.close()
            serve(api.main, log, arguments)


def serve(run: Callable[[], None], log: str, arguments: list[str]) -> None:
    """Be the server that *arguments* describe."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    output, nothing = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    # The engine's process has what is imported here, too, if it is a fork.  With OMP_NUM_THREADS=1 torch has
    # started no thread, which a fork would lack.
    contexts = multiprocessing.context._concrete_contexts
    contexts["spawn"] = contexts["fork"]
    sys.argv = ["vllm", *arguments]
    run()
    sys.exit()


if __name__ == "__main__":
    main()
