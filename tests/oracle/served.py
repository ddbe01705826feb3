"""The real server of tests, on a free port."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", HERE.parents[1] / "build"))
PATIENCE_S = 60


def made_by(script, path, *words):
    """The model folder `path`, which a script of this folder makes with the packages of the environment `oracle`."""
    python = os.environ.get("TROUPE_ORACLE_PYTHON", HERE / "../../.venv/oracle/bin/python")
    subprocess.run([python, "-B", HERE / script, path, *words], check=True)
    return path


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
