# What all Python workers do alike. The program puts this text in front of theirs.
import hashlib
import importlib.util
import os
import site
import sys
import traceback

MODULES_MAX, MODULE_BYTES_MAX = 500, 1 << 24


def user_module(name, path):
    """The user's file as a module; it may import what is next to it."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # data classes and the source of a class look here
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    return module


def unready(error, refused=False):
    """The first line of a worker that cannot serve: why, and which Python runs it."""
    python = f"{sys.executable}, Python {sys.version_info.major}.{sys.version_info.minor}"
    return {"ready": False, "error": str(error) if refused else trace(error), "interpreter": python}


def loaded_modules(besides):
    """The SHA-256 of each file from which a module was loaded, but for the interpreter's own folders and the user's
    file itself, which is known."""
    own = [sys.prefix, sys.base_prefix, sys.exec_prefix, site.getusersitepackages()]
    own = tuple(path.rstrip("/") + "/" for folder in own for path in (os.path.abspath(folder), os.path.realpath(folder)))
    hashes = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or len(hashes) >= MODULES_MAX:
            continue
        named, path = os.path.abspath(path), os.path.realpath(path)
        if named.startswith(own) or path.startswith(own) or path in (os.path.realpath(besides), *hashes):
            continue
        try:
            if os.path.getsize(path) <= MODULE_BYTES_MAX:
                with open(path, "rb") as file:
                    hashes[path] = hashlib.sha256(file.read()).hexdigest()
        except OSError:
            pass  # of an archive, or gone
    return hashes


def trace(error):
    """The traceback without the frames of this file, which mean nothing to the user."""
    told = traceback.TracebackException.from_exception(error, limit=-8)
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack
                                                   if frame.filename not in (__name__, "<string>")
                                                   and not frame.filename.startswith("<frozen")])
    return "".join(told.format(chain=True))


