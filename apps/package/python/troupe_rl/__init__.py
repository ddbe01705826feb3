"""What the distribution troupe-rl is made of: the program in bin/, its libraries in lib/, and its start."""
import importlib.metadata

__version__ = "@VERSION@"
TORCH = "@TORCH@"  # the LibTorch that training needs


def clash():
    """A line about the other distribution whose module is called `troupe`, if it is installed; else ''."""
    try:
        other = importlib.metadata.version("troupe")
    except importlib.metadata.PackageNotFoundError:
        return ""
    return (f"two packages that use the name `troupe` are installed: troupe-rl {__version__} and troupe {other}, "
            "another project; each replaces files of the other. Keep one: `pip uninstall troupe troupe-rl`, then "
            "`pip install troupe-rl`")


def refuse_clash():
    if text := clash():
        raise ImportError(text)
