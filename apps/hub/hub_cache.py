# The cache of huggingface_hub: where files of a name are, marks and records beside them, and whether a file
# is what the hub says. Of hub_client.py.
import fcntl
import hashlib
import os
import re
import tempfile
import time


def cache_folder():
    from huggingface_hub import constants
    return constants.HF_HUB_CACHE


def repository(to):
    return os.path.join(cache_folder(), f"{to['kind']}s--" + to["name"].replace("/", "--"))


def mark_file(to, commit):
    return os.path.join(repository(to), ".troupe", commit + ".unchecked")


def record_file(to, commit):
    """What data_files of C++ reads: the files of NAME:FIRST:SECOND."""
    return os.path.join(repository(to), ".troupe",
                        f"{commit}.{to['first'] or ''},{to['second'] or ''}.json")


def snapshot(to, commit):
    return os.path.join(repository(to), "snapshots", commit)


def write_whole(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".draft-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


class OneAtATime:
    """Of the processes that fetch the same repository, one works and the others wait."""

    def __init__(self, to):
        folder = os.path.join(cache_folder(), ".locks", os.path.basename(repository(to)))
        os.makedirs(folder, exist_ok=True)
        self.file = open(os.path.join(folder, "troupe.lock"), "w")

    def __enter__(self):
        told = False
        while True:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self
            except BlockingIOError:
                if not told:
                    tell(note="waiting for another process that fetches it")
                told = True
                working()
                time.sleep(0.1)

    def __exit__(self, *_):
        self.file.close()


class Entry:
    """A file of the repository as the hub lists it. `sum`: sha256 of a large file, else git's SHA-1."""

    def __init__(self, listed_file):
        self.path, self.size = listed_file.path, listed_file.size
        lfs = listed_file.lfs
        self.large = lfs is not None
        if lfs is not None:
            self.size = lfs.size
        self.sum = lfs.sha256 if lfs is not None else listed_file.blob_id
        hexes = {64} if self.large else {40, 64}
        if not (isinstance(self.size, int) and self.size >= 0 and isinstance(self.sum, str)
                and len(self.sum) in hexes and re.fullmatch(r"[0-9a-f]+", self.sum)):
            raise ValueError(f"the entry of {self.path} has no size or no sum")

    def moved(self, folder):
        """Bytes that are there, whole or in part."""
        blobs = os.path.join(folder, "blobs")
        total = 0
        try:
            with os.scandir(blobs) as found:
                for one in found:
                    if one.name == self.sum or one.name.startswith(self.sum + "."):
                        total = max(total, one.stat().st_size)
        except OSError:
            pass
        return min(total, self.size)

    def fault(self, path, hashed):
        """What is wrong with a file; None: nothing."""
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            head = file.read(len(POINTER))
            if head == POINTER and (size != self.size or self.path.endswith((".safetensors", ".parquet"))):
                return "is a Git LFS pointer, not the file itself"
            if size != self.size:
                return f"has {size} bytes, the hub says {self.size}"
            if not hashed:
                return None
            file.seek(0)
            if self.large or len(self.sum) == 64:
                digest = hashlib.sha256()
            else:
                digest = hashlib.sha1(usedforsecurity=False)
            if not self.large:
                digest.update(b"blob %d\0" % size)
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
                working()
        if digest.hexdigest() != self.sum:
            return f"has the sum {digest.hexdigest()[:12]}..., the hub says {self.sum[:12]}..."
        return None
