"""Starts the program in place of this process. Tells it what only Python knows: which torch this environment has, and
which interpreter rewards of this environment run in."""
import importlib.util
import os
import sys

from troupe_rl import clash


def torch_folder():
    """The folder of the torch of this environment; '' without one. Nothing is imported."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return ""
    return next(iter(spec.submodule_search_locations or []), "") if spec else ""


def environment():
    found = dict(os.environ)
    found["TROUPE_PYTHON_TORCH"] = torch_folder()
    if sys.prefix != sys.base_prefix:  # `python3` is this environment's, activated or not
        own = os.path.dirname(sys.executable)
        if found.get("PATH", "").split(os.pathsep)[0] != own:
            found["PATH"] = own + os.pathsep + found.get("PATH", os.defpath)
    return found


def main():
    if text := clash():
        print(f"troupe: warning: {text}", file=sys.stderr)
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "troupe")
    try:
        os.execve(program, ["troupe", *sys.argv[1:]], environment())
    except OSError as error:
        sys.exit(f"troupe: cannot start {program}: {error.strerror}; `pip install --force-reinstall troupe-rl` "
                 "puts it back")
