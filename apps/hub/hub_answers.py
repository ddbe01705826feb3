# What is taken of a repository, and what goes wrong with a hub, as refusals. CMake joins this text with
# those of hub_client.py.
import errno
import re

ENTRIES_MAX = 200_000
CARD_BYTES_MAX = 4 << 20
SPARE_BYTES = 32 << 20  # of the disk, beside the files
STALL_S = 300  # without a byte
WORKERS = 4
POINTER = b"version https://git-lfs.github.com/spec/"
COMMIT = re.compile(r"[0-9a-f]{40}")

# What is taken of a model's repository, at its top.
MODEL_FILES = re.compile(
    r"config\.json|generation_config\.json|tokenizer\.json|tokenizer_config\.json|tokenizer\.model|"
    r"special_tokens_map\.json|added_tokens\.json|vocab\.json|vocab\.txt|merges\.txt|"
    r"chat_template\.(?:jinja|json)|additional_chat_templates/[\w.-]+\.jinja|"
    r"model\.safetensors(?:\.index\.json)?|model-\d{5}-of-\d{5}\.safetensors|"
    r"adapter_config\.json|adapter_model\.safetensors|README\.md|LICEN[CS]E[\w.-]*|NOTICE[\w.-]*")
WEIGHTS = re.compile(r"model(?:-\d{5}-of-\d{5})?\.safetensors|adapter_model\.safetensors")
PICKLES = re.compile(r"(?:.*/)?[^/]*\.(?:bin|pt|pth|ckpt|msgpack|h5|gguf)")
PUSHED = re.compile(MODEL_FILES.pattern + r"|value_head\.safetensors|training_state\.json")


class Refusal(Exception):
    """An end for a known reason. `kind` decides the exit code of the program."""

    def __init__(self, kind, what, advice=""):
        super().__init__(what)
        self.kind, self.what, self.advice = kind, what, advice


def size_text(count):
    for unit, bytes_of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= bytes_of:
            return f"{count / bytes_of:.1f} {unit}"
    return f"{count} bytes"


def one_line(text, most=300):
    return " ".join(str(text).split())[:most]


def endpoint():
    from huggingface_hub import constants
    return constants.ENDPOINT


def causes(error):
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def refusal_of(error, to):
    """The reason behind an exception of the client."""
    from huggingface_hub import errors
    kind = "data set" if to["kind"] == "dataset" else "model"
    name, chain = to["name"], list(causes(error))
    page = f"{endpoint()}/{'datasets/' if to['kind'] == 'dataset' else ''}{name}"

    def first(*kinds):
        return next((one for one in chain if isinstance(one, kinds)), None)

    if first(errors.GatedRepoError):
        return Refusal("denied", f"{name} is gated: its owner gives access to those who ask",
                       f"ask on {page}, then set HF_TOKEN to a token of that account, or run `hf auth login`")
    if first(errors.RevisionNotFoundError):
        return Refusal("not_found", f"{name} has no revision '{to['revision'] or 'main'}'",
                       f"{page} lists its branches and tags")
    if first(errors.RemoteEntryNotFoundError):
        return Refusal("not_found", f"a file of {name} is listed by the hub and not there",
                       "try again; else the mirror (HF_ENDPOINT) lacks it")
    if first(errors.RepositoryNotFoundError):
        return Refusal("not_found", f"{endpoint()} has no {kind} {name}, or it is private",
                       "check the spelling; for a private one set HF_TOKEN, or run `hf auth login`")
    if first(errors.OfflineModeIsEnabled):
        return Refusal("offline", f"{name} is not in the hub cache, and HF_HUB_OFFLINE is set",
                       "unset it, or leave out --offline")
    if first(errors.HFValidationError):
        return Refusal("name", one_line(error), "a name is OWNER/NAME, of letters, digits, '-', '_' and '.'")
    http = first(errors.HfHubHTTPError)
    if http is not None and getattr(http, "response", None) is not None:
        status = http.response.status_code
        said = one_line(http.server_message or "", 120)
        said = f" ({said})" if said else ""
        if status == 401:
            return Refusal("denied", f"{endpoint()} refuses the token (401){said}",
                           "set HF_TOKEN to one that is valid, or run `hf auth login`")
        if status == 403:
            return Refusal("denied", f"{endpoint()} forbids this for {name} (403){said}",
                           "the token lacks a permission: make another on its settings page")
        if status == 429:
            return Refusal("network", f"{endpoint()} limits requests (429){said}",
                           "wait some minutes; with a token (HF_TOKEN) the limit is higher")
        return Refusal("network", f"{endpoint()} answered with status {status}{said}", "try again later")
    full = first(OSError)
    if full is not None and full.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refusal("no_room", f"the disk of {cache_folder()} is full",
                       "free some; HF_HUB_CACHE or HF_HOME puts the cache elsewhere")
    if full is not None and full.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return Refusal("no_room", f"{cache_folder()} cannot be written: {full.strerror}",
                       "HF_HUB_CACHE or HF_HOME puts the cache elsewhere")
    if first(errors.FileMetadataError):
        return Refusal("network", f"{endpoint()} is no hub: its answer lacks commit or ETag",
                       "check HF_ENDPOINT and the proxy")
    if any("Consistency check failed" in str(one) for one in chain):
        return Refusal("damaged", f"a file of {name} arrived with another size than the hub says: not used",
                       "try again; if it stays so, the mirror (HF_ENDPOINT) or the proxy is broken")
    if first(ValueError, KeyError, TypeError, AttributeError) and not first(ConnectionError):
        return Refusal("network", f"{endpoint()} gave an answer that is none of a hub's "
                                  f"({type(error).__name__}: {one_line(error, 120)})",
                       "check HF_ENDPOINT and the proxy")
    return Refusal("network", f"cannot reach {endpoint()}: {type(chain[-1]).__name__}: "
                              f"{one_line(chain[-1], 160)}",
                   "check the connection, the proxy and HF_ENDPOINT; --offline uses only what is in the "
                   "cache")
