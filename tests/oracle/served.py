"""The real server of tests, on a free port."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess

BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", pathlib.Path(__file__).parents[2] / "build"))
PATIENCE_S = 60


@contextlib.contextmanager
def serve(folder, *flags):
    """Gives the address of a server of the model `folder`; ends it by SIGINT, cleanly."""
    words = [os.environ.get("TROUPE_SERVE", BUILD / "troupe"), "serve", "--model", folder, "--port", "0",
             "--served-model-name", "tiny", "--threads", "1", *flags]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        yield re.search(r"https?://127\.0\.0\.1:\d+", process.stdout.readline()).group(0)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
        assert process.stdout.read() == "stopped\n"
    finally:
        process.kill()
        process.wait()
