# Downloads into the cache, checked before they are used, and what the cache has. Of hub_client.py.
import concurrent.futures
import errno
import json
import os
import re
import shutil
import sys
import threading
import time


def listing(api, to):
    """(commit, {path: Entry}). The whole listing, bounded."""
    from huggingface_hub.hf_api import RepoFile
    revision = to["revision"] or "main"
    info = api.repo_info(to["name"], repo_type=to["kind"], revision=revision)
    commit = info.sha
    if not (isinstance(commit, str) and COMMIT.fullmatch(commit)):
        raise ValueError(f"the commit of {to['name']} is {one_line(commit, 60)!r}")
    if COMMIT.fullmatch(revision) and commit != revision:
        raise Refusal("damaged", f"the hub gives commit {commit} of {to['name']} for {revision}",
                      "check HF_ENDPOINT")
    entries, raw = {}, []
    for one in api.list_repo_tree(to["name"], repo_type=to["kind"], revision=commit, recursive=True):
        working()
        if isinstance(one, RepoFile):
            raw.append(one)
        if len(raw) > ENTRIES_MAX:
            raise Refusal("damaged", f"{to['name']} has more than {ENTRIES_MAX} files", "name a smaller one")
    for one in raw:
        parts = one.path.split("/")
        if one.path.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\\" in one.path:
            raise Refusal("damaged", f"{to['name']} lists a file '{one_line(one.path, 80)}', which is no "
                                     "name", "do not use it")
        entries[one.path] = one
    return commit, entries


def model_paths(to, entries):
    chosen = [path for path in entries if MODEL_FILES.fullmatch(path)]
    if "model.safetensors" in chosen:  # else shards and their index; transformers prefers it, too
        chosen = [path for path in chosen if not re.fullmatch(r"model-.*|model\.safetensors\.index\.json", path)]
    adapter = "adapter_config.json" in chosen and "adapter_model.safetensors" in chosen
    if "config.json" not in chosen and not adapter:
        raise Refusal("damaged", f"{to['name']} has no config.json: it is no model of transformers",
                      "name one that is; GGUF files are not read")
    if not any(WEIGHTS.fullmatch(path) for path in chosen):
        others = [path for path in entries if PICKLES.fullmatch(path)]
        has = f", only {listed(sorted(others), 3)}" if others else ""
        raise Refusal("damaged", f"{to['name']} has no safetensors weights{has}: pickles are not read",
                      "choose a revision with safetensors (many have a branch refs/pr/N), or convert it "
                      "with transformers' save_pretrained")
    if "model.safetensors" not in chosen and not adapter and "model.safetensors.index.json" not in chosen:
        raise Refusal("damaged", f"{to['name']} has shards of weights and no model.safetensors.index.json",
                      "choose another revision")
    return sorted(chosen)


def fetch_one(to, commit, path):
    from huggingface_hub import hf_hub_download
    return hf_hub_download(to["name"], path, repo_type=to["kind"], revision=commit)


def card_of(to, commit, entries):
    if "README.md" not in entries:
        return ""
    if entries["README.md"].size > CARD_BYTES_MAX:
        raise Refusal("damaged", f"the card of {to['name']} is larger than {size_text(CARD_BYTES_MAX)}", "")
    with open(fetch_one(to, commit, "README.md"), encoding="utf-8", errors="replace") as file:
        return file.read()


def room(folder):
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder) or "/"
    return shutil.disk_usage(folder).free


def there(to, commit, path):
    return os.path.exists(os.path.join(snapshot(to, commit), path))


class Patience:
    """Ends the process when a question to the hub, for which the client has no limit, takes too long."""

    def __init__(self, seconds):
        self.seconds, self.over = seconds, threading.Event()

    def __enter__(self):
        working()
        threading.Thread(target=self.look, daemon=True).start()

    def look(self):
        while not self.over.wait(0.1):
            if unmoved() > self.seconds:
                tell(error={"kind": "network", "what": f"{endpoint()} has not answered for {self.seconds} s",
                            "advice": "check the connection, the proxy and HF_ENDPOINT; try again later"})
                os._exit(1)

    def __exit__(self, *_):
        self.over.set()


class Watch:
    """Tells how much has come, and ends the process when nothing comes any more."""

    def __init__(self, to, entries):
        self.to, self.entries, self.over = to, entries, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        last, since = -1, time.monotonic()
        while not self.over.wait(0.3):
            moved = sum(entry.moved(repository(self.to)) for entry in self.entries)
            if moved != last:
                last, since = moved, time.monotonic()
                working()
                tell(moved=moved)
            elif time.monotonic() - since > STALL_S:
                tell(error={"kind": "network", "what": f"{endpoint()} has sent nothing for {STALL_S} s",
                            "advice": "the same command goes on"})
                os._exit(1)

    def end(self):
        self.over.set()
        self.thread.join()


def remove(path):
    """A file of a snapshot, and the blob behind it."""
    blob = os.path.realpath(path)
    for one in {path, blob}:
        try:
            os.unlink(one)
        except OSError:
            pass


def remove_begun(to):
    """Removes the files that other threads of this process are still downloading: the client never goes on with them."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if path.endswith(".incomplete") and path.startswith(os.path.realpath(repository(to)) + os.sep):
            remove(path)


def fetch(to, commit, chosen):
    """Downloads what is missing and checks it; returns its bytes. Under the lock."""
    mark, where = mark_file(to, commit), snapshot(to, commit)
    doubtful = os.path.exists(mark)
    missing = [entry for entry in chosen if not there(to, commit, entry.path)]
    if missing and not doubtful:
        write_whole(mark, json.dumps({"files": [entry.path for entry in missing]}) + "\n")
    if missing:
        watch = Watch(to, missing)
        pool = concurrent.futures.ThreadPoolExecutor(WORKERS)
        try:
            for done in [pool.submit(fetch_one, to, commit, entry.path) for entry in missing]:
                done.result()
        except BaseException:
            remove_begun(to)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            watch.end()
    fresh = {entry.path for entry in missing}
    for entry in chosen:
        path = os.path.join(where, entry.path)
        fault = entry.fault(path, doubtful or to["check"] or entry.path in fresh)
        if fault:
            remove(path)
            raise Refusal("damaged", f"{entry.path} of {to['name']} {fault}: not used, and removed",
                          "try again; if it stays so, the mirror (HF_ENDPOINT) or the proxy is broken")
    check_shards(to, where, chosen)
    return sum(entry.size for entry in missing)


def check_shards(to, where, chosen):
    """The index names the shards, and all of them are there."""
    if not any(entry.path == "model.safetensors.index.json" for entry in chosen):
        return
    try:
        with open(os.path.join(where, "model.safetensors.index.json"), encoding="utf-8") as file:
            named = set(json.load(file)["weight_map"].values())
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Refusal("damaged", f"model.safetensors.index.json of {to['name']} is no index", "") from None
    lost = sorted(str(one) for one in named - {entry.path for entry in chosen})
    if lost:
        raise Refusal("damaged", f"the index of {to['name']} names {listed(lost, 3)}, which the hub lacks",
                      "choose another revision")


def settle(to, commit, chosen):
    """From now on readers find it."""
    revision = to["revision"] or "main"
    if not COMMIT.fullmatch(revision):
        path = os.path.normpath(os.path.join(repository(to), "refs", revision))
        if path.startswith(os.path.join(repository(to), "refs") + os.sep):
            write_whole(path, commit)
    if to["kind"] == "dataset":
        files = [entry.path for entry in chosen if entry.path != "README.md"]
        write_whole(record_file(to, commit), json.dumps({"files": files}) + "\n")
    try:
        os.unlink(mark_file(to, commit))
    except FileNotFoundError:
        pass


def wait_for_go():
    line = b""
    while not line.endswith(b"\n"):
        working()
        got = os.read(0, 64)
        if not got:
            os._exit(0)  # the program is gone
        line += got
    if line.strip() != b"go":
        sys.exit(0)


def cached_listing(to):
    """As listing(), of a data set that another program put into the cache; without sums, so that
    nothing is fetched by it."""
    revision = to["revision"] or "main"
    commit = revision if COMMIT.fullmatch(revision) else ""
    if not commit:
        try:
            with open(os.path.join(repository(to), "refs", revision), encoding="utf-8") as file:
                commit = file.read().strip()
        except OSError:
            pass
    where = snapshot(to, commit)
    found = []
    if COMMIT.fullmatch(commit) and not os.path.exists(mark_file(to, commit)):
        for folder, _, files in os.walk(where):
            found += [os.path.relpath(os.path.join(folder, one), where) for one in files]
    found = [path for path in found if there(to, commit, path)]
    if not found:
        raise Refusal("offline", f"{to['name']} is not in the hub cache, and HF_HUB_OFFLINE is set",
                      "unset it, or leave out --offline")
    return commit, found


def all_shards(to, rows):
    """Refuses rows of which only some shards are there."""
    for path in rows:
        shard = re.search(r"-(\d{5})-of-(\d{5})(?=[.-])", path)
        if not shard:
            continue
        head, tail = path[: shard.start()], path[shard.end() :]
        have = [one for one in rows if one.startswith(head + "-") and f"-of-{shard[2]}" in one]
        if len(have) < int(shard[2]):
            raise Refusal("offline", f"the hub cache has {len(have)} of {int(shard[2])} shards of {head} "
                                     f"({tail.lstrip('.')}) of {to['name']}, and HF_HUB_OFFLINE is set",
                          "unset it, or leave out --offline")


def rows_of(to, paths, card):
    try:
        return choose(paths, card, to["first"], to["second"])
    except NoSuchRows as error:
        raise Refusal("rows", f"{to['name']}: {error.what}",
                      error.advice.replace("NAME", to["name"])) from None


def end(to, commit, paths, fetched, config=None, split=None):
    tell(done={"name": to["name"], "commit": commit, "folder": snapshot(to, commit), "config": config,
               "split": split, "fetched": fetched, "files": paths})


def get_offline(to):
    if to["kind"] != "dataset":
        raise Refusal("offline", f"{to['name']} is not in the hub cache, and HF_HUB_OFFLINE is set",
                      "unset it, or leave out --offline")
    commit, found = cached_listing(to)
    card = ""
    if "README.md" in found:
        with open(os.path.join(snapshot(to, commit), "README.md"), encoding="utf-8", errors="replace") as file:
            card = file.read(CARD_BYTES_MAX)
    config, split, rows = rows_of(to, found, card)
    all_shards(to, rows)
    end(to, commit, rows, 0, config, split)


def get(to):
    from huggingface_hub import HfApi, constants
    if constants.HF_HUB_OFFLINE:
        return get_offline(to)
    api = HfApi(library_name="troupe", library_version=to.get("version"))
    with Patience(6 * constants.HF_HUB_ETAG_TIMEOUT):
        commit, raw = listing(api, to)
    config, split = None, None
    if to["kind"] == "dataset":
        config, split, rows = rows_of(to, raw, card_of(to, commit, raw))
        paths = rows + (["README.md"] if "README.md" in raw else [])
    else:
        paths = model_paths(to, raw)
    chosen = [Entry(raw[path]) for path in paths]
    files = rows if to["kind"] == "dataset" else paths
    doubtful = os.path.exists(mark_file(to, commit))
    if not doubtful and not to["check"] and all(there(to, commit, entry.path) for entry in chosen):
        try:
            fetch(to, commit, chosen)
            settle(to, commit, chosen)
        except PermissionError:
            pass  # a cache that others keep
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
        return end(to, commit, files, 0, config, split)
    missing = [entry for entry in chosen if not there(to, commit, entry.path)]
    left = sum(entry.size for entry in missing if entry.moved(repository(to)) != entry.size)
    if left:
        free = room(cache_folder())
        if free < left + SPARE_BYTES:
            raise Refusal("no_room", f"{to['name']} takes {size_text(left)}, and {cache_folder()} has "
                                     f"{size_text(free)} free",
                          "free some; HF_HUB_CACHE or HF_HOME puts the cache elsewhere")
        tell(plan={"name": to["name"], "commit": commit, "files": len(missing), "bytes": left,
                   "total": sum(entry.size for entry in missing), "free": free,
                   "where": repository(to), "from": endpoint()})
        wait_for_go()
    with OneAtATime(to):
        fetched = fetch(to, commit, chosen)
        settle(to, commit, chosen)
    end(to, commit, files, fetched, config, split)
