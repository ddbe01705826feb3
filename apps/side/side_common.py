# What the side processes share: one JSON object a line on standard output, signs of life, and the
# private environment of pinned packages in which they go on. CMake puts this text before theirs;
# they set ENVIRONMENT.
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time

# name: of the environment; variable: PREFIX_PYTHON names an interpreter to use instead; packages: what
# messages call them; gib: the room that making it needs; requirements: the pinned list.
ENVIRONMENT = {}
OUT = os.fdopen(os.dup(1), "w", buffering=1)
work_at = time.monotonic()


def tell(**line):
    try:
        OUT.write(json.dumps(line) + "\n")
    except OSError:
        os._exit(0)  # nobody listens any more


def fail(text):
    tell(note=text)
    sys.exit(1)


def working():
    global work_at
    work_at = time.monotonic()


def unmoved():
    return time.monotonic() - work_at


def tell_alive():
    while True:
        tell(alive=round(unmoved(), 1))
        time.sleep(1)


# --- the environment ------------------------------------------------------------------------------


def home():
    return os.environ.get("TROUPE_HOME") or os.path.expanduser("~/.cache/troupe")


def environment_folder():
    """Named as ./dev names it: after the list and the version of Python."""
    text = ENVIRONMENT["requirements"] + str(sys.version_info[:2]) + "\n"
    name = ENVIRONMENT["name"] + "-" + hashlib.sha256(text.encode()).hexdigest()[:12]
    return os.path.join(home(), "venv", name)


def complete(folder):
    return os.path.exists(os.path.join(folder, ".complete"))


def make_environment(folder):
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(os.path.join(os.path.dirname(folder), ".lock"), "w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                working()
                time.sleep(0.2)
        if complete(folder):
            return
        free = shutil.disk_usage(os.path.dirname(folder)).free / 2**30
        if free < ENVIRONMENT["gib"]:
            fail(f"{os.path.dirname(folder)} has {free:.1f} GiB free; the packages of "
                 f"{ENVIRONMENT['packages']} need about {ENVIRONMENT['gib']} GiB (TROUPE_HOME moves it)")
        tell(note=f"making the Python environment of {ENVIRONMENT['packages']} in {folder}, once")
        shutil.rmtree(folder, ignore_errors=True)
        python = getattr(sys, "_base_executable", None) or sys.executable
        log = folder + ".log"
        listed = folder + ".txt"
        with open(listed, "w") as file:
            file.write(ENVIRONMENT["requirements"])
        with open(log, "w") as out:
            for words in ([python, "-m", "venv", folder],
                          [os.path.join(folder, "bin", "python"), "-m", "pip", "install",
                           "--no-deps", "--no-cache-dir", "--progress-bar", "off",
                           "--disable-pip-version-check", "-r", listed]):
                child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
                while child.poll() is None:
                    working()
                    time.sleep(0.2)
                if child.returncode != 0:
                    fail(f"the Python environment of {ENVIRONMENT['packages']} cannot be made (log: "
                         f"{log}); PIP_INDEX_URL names a mirror, {ENVIRONMENT['variable']}_PYTHON an "
                         "interpreter that has the packages")
        os.remove(listed)
        os.remove(log)
        with open(os.path.join(folder, ".complete"), "w"):
            pass


def enter_environment():
    """Goes on in the environment, unless this is it."""
    entered, named = ENVIRONMENT["variable"] + "_ENTERED", ENVIRONMENT["variable"] + "_PYTHON"
    if os.environ.get(entered):
        del os.environ[entered]
        return
    python = os.environ.get(named)
    if not python:
        folder = environment_folder()
        if not complete(folder):
            make_environment(folder)
        python = os.path.join(folder, "bin", "python")
    os.environ[entered] = "1"
    try:
        os.execv(python, [python] + sys.orig_argv[1:])
    except OSError as error:
        fail(f"cannot run {python}: {error.strerror}; {named} names an interpreter")
