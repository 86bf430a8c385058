"""
What real clients make of the code that pages have people paste; run in the environment of real clients.

Prints it as JSON, by client.  One process runs all, since they import the same libraries for seconds.
"""

import gc
import json
import sys

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])  # the folder of the pasted code
    gc.disable()  # the libraries stay, and passes over them take a third of their import and of the end

    from tests.process.real_clients.pipeline import picked
    from tests.process.real_clients.training import rewarded

    gc.freeze()
    gc.enable()
    print(json.dumps({"diffusers": picked(), "trl": rewarded("pictures")}))
