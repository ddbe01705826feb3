"""An agent of a run whose mind is elsewhere: it hands its task, its URL and its key to the test that listens at the
Unix socket that it is started with, and ends when the test says so. So one process imports the clients, not each."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as test:
    test.connect(sys.argv[1])
    test.sendall(json.dumps([os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"],
                             json.loads(os.environ["TROUPE_TASK"])]).encode() + b"\n")
    sys.exit(0 if test.recv(1) == b"." else 1)
