# Fetches models and data sets from a hub, and uploads models, by the stock package huggingface_hub:
# tokens, mirrors, proxies, retries and Xet are its business. The program starts this text with
# `python3 -c TEXT SETTINGS`; it goes on in the environment of the pinned package.
#
# Standard output has one JSON object a line: {"alive": seconds since the last step of the work},
# {"note": text}, {"plan": what would be moved}, {"moved": bytes}, {"error": {kind, what, advice}},
# {"done": what is there}. After a plan it waits for "go" on standard input, whose end means that the
# program is gone.
#
# Nothing that was not checked is ever used: while files of a snapshot are on their way, a mark stands in
# its repository (.troupe/COMMIT.unchecked), and readers pass over such a snapshot. Each file that came is
# hashed and compared with what the hub says of it; one that differs is removed. The reference (refs/main)
# is written and the mark removed only after that.
import json
import logging
import os
import sys
import threading

ENVIRONMENT = {"name": "hub", "variable": "TROUPE_HUB", "packages": "the hub's client", "gib": 0.2,
               "requirements": r"""@TROUPE_HUB_REQUIREMENTS@"""}


def offline():
    value = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return value.upper() in ("1", "ON", "YES", "TRUE")


def environment_is_there():
    names = ("TROUPE_HUB_PYTHON", "TROUPE_HUB_ENTERED")
    return any(os.environ.get(name) for name in names) or complete(environment_folder())


class Notes(logging.Handler):
    """Warnings of the client, each once."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = set()

    def emit(self, record):
        text = one_line(record.getMessage(), 240)
        if text not in self.said and len(self.said) < 20:
            self.said.add(text)
            tell(note=text)


def work():
    to = json.loads(sys.argv[1])
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    os.environ.setdefault("HF_HUB_DISABLE_UPDATE_CHECK", "1")
    try:
        import huggingface_hub  # noqa: F401
    except ImportError as error:
        raise Refusal("client", f"no Python package huggingface_hub ({one_line(error, 120)}) in "
                                f"{sys.executable}",
                      f"`{sys.executable} -m pip install huggingface_hub` installs it; or unset "
                      "TROUPE_HUB_PYTHON to have an environment made") from None
    log = logging.getLogger("huggingface_hub")
    log.handlers, log.propagate = [Notes()], False
    try:
        {"get": get, "push": push}[to["do"]](to)
    except (Refusal, SystemExit):
        raise
    except Exception as error:  # the client's own have no common type
        raise refusal_of(error, to) from error


def main():
    threading.Thread(target=tell_alive, daemon=True).start()
    try:
        if offline() and not environment_is_there():
            raise Refusal("offline", "the rows are not in the hub cache, and HF_HUB_OFFLINE is set",
                          "unset it, or leave out --offline")
        enter_environment()
        os.dup2(2, 1)  # what the package prints is no line for the program
        work()
    except Refusal as error:
        tell(error={"kind": error.kind, "what": error.what, "advice": error.advice})
        sys.stdout = sys.stderr = open(os.devnull, "w")
        os._exit(1)  # threads of a download may still wait for the hub


if __name__ == "__main__":
    main()
