# What all Python workers do alike. The program puts this text in front of theirs.
import importlib.util
import os
import sys
import traceback


def user_module(name, path):
    """The user's file as a module; it may import what is beside it."""
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


def trace(error):
    """The traceback without the frames of this file, which mean nothing to the user."""
    told = traceback.TracebackException.from_exception(error, limit=-8)
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack
                                                   if frame.filename not in (__name__, "<string>")
                                                   and not frame.filename.startswith("<frozen")])
    return "".join(told.format(chain=True))


