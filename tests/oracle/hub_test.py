"""Names of models and data sets against a hub on this host, by way of the real package huggingface_hub:
what arrives, what is refused, and that nothing half-written or wrong is ever used."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import local_hub
import pytest
from local_hub import LocalHub, Repository, body, cut, hang, html, listing, no_range, stall, status, without

TROUPE = Path(os.environ["TROUPE_BUILD_DIR"]) / "troupe"
PATIENCE_S = 120
# Bytes that no compression makes small; whether they are a model is not asked here.
WEIGHTS = bytes((i * i * 31 + i // 7) % 251 for i in range(400_000))
CONFIG = json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}).encode()
MODEL = {"config.json": CONFIG, "model.safetensors": WEIGHTS, "tokenizer.json": b'{"version": "1.0"}', "README.md": b"# A model\n",
         "pytorch_model.bin": b"pickle" * 100, "consolidated.safetensors": b"another" * 50, "run.py": b"raise SystemExit\n"}
TAKEN = ["README.md", "config.json", "model.safetensors", "tokenizer.json"]
ROWS = b'{"input": "1+1=", "output": "2"}\n'


@pytest.fixture
def hub():
    made = LocalHub()
    made.models["org/model"] = Repository(MODEL)
    made.tokens["good"] = "me"
    yield made
    made.close()


@pytest.fixture
def home(tmp_path, hub):
    """The environment of a user: a cache of her own, this hub, waits of the client cut short."""
    python = tmp_path / "python"
    python.write_text(f"""#!/bin/sh
exec {sys.executable} -I -c 'import sys, time
wait = time.sleep
time.sleep = lambda seconds: wait(min(seconds, 0.02))
text = sys.argv.pop(1)
exec(compile(text, "side process", "exec"), {{"__name__": "__main__"}})' "$3" "$4"
""")
    python.chmod(0o755)
    own = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGINGFACE_", "TROUPE_YES"))}
    return {**own, "HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": hub.url, "TROUPE_HUB_PYTHON": str(python), "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_ETAG_TIMEOUT": "1", "HF_HUB_DOWNLOAD_TIMEOUT": "1", "TROUPE_HOME": str(tmp_path / "home")}


def troupe(env, *words, rc=0, **more):
    done = subprocess.run([TROUPE, *words], env=env, text=True, capture_output=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, **more)
    assert done.returncode == rc, done.stdout + done.stderr
    return done.stdout if rc == 0 else done.stderr


def cache(env):
    return Path(env["HF_HOME"]) / "hub"


def snapshot(env, hub, name="org/model", kind="models"):
    folder = f"{kind}--" + name.replace("/", "--")
    return cache(env) / folder / "snapshots" / getattr(hub, kind)[name].head


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def nothing_is_used(env, name="org/model"):
    """No name leads to it: not offline, either."""
    text = troupe(env, "get", name, "--offline", rc=2)
    assert "in the hub cache" in text, text


def half_files(env):
    return [str(path) for path in cache(env).rglob("*") if "incomplete" in path.name or path.name.startswith(".draft-")]


def got(env, hub, name="org/model", kind="models", *words):
    out = troupe(env, "get", name, "--yes", *words).splitlines()
    assert out[0] == f"{name}@{getattr(hub, kind)[name].head}"
    return Path(out[1])


# --- what arrives ----------------------------------------------------------------------------------


def test_only_what_a_model_needs_arrives_and_a_second_get_moves_nothing(hub, home):
    folder = got(home, hub)
    assert folder == snapshot(home, hub)
    assert files_of(folder) == {name: MODEL[name] for name in TAKEN}
    assert (folder.parents[1] / "refs/main").read_text() == hub.models["org/model"].head
    assert not half_files(home) and not list(folder.parents[1].glob(".troupe/*.unchecked"))
    before = len(hub.seen("storage|resolve"))
    assert got(home, hub) == folder
    assert len(hub.seen("storage|resolve")) == before


def test_large_files_come_by_redirect_without_the_token(hub, home):
    headers = []
    hub.fault("storage", lambda hub, http: headers.append(http.headers.get("Authorization")))
    got({**home, "HF_TOKEN": "good"}, hub)
    assert headers == [None] and hub.seen("resolve/.*config.json", "HEAD")


def test_a_renamed_model_is_followed(hub, home):
    hub.moved["models", "old/name"] = "org/model"
    out = troupe(home, "get", "old/name", "--yes").splitlines()
    assert out[0] == f"old/name@{hub.models['org/model'].head}"
    assert files_of(Path(out[1])) == {name: MODEL[name] for name in TAKEN}


def test_a_listing_of_several_pages(hub, home):
    hub.page = 2
    assert set(files_of(got(home, hub))) == set(TAKEN)
    assert len(hub.seen("tree/")) == 4


def test_shards_come_with_their_index(hub, home):
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    files = {"config.json": CONFIG, "model.safetensors.index.json": json.dumps(index).encode(), "model-00001-of-00002.safetensors": WEIGHTS[:900],
             "model-00002-of-00002.safetensors": WEIGHTS[900:], "consolidated.00.safetensors": b"x"}
    hub.models["org/shards"] = Repository(files)
    del files["consolidated.00.safetensors"]
    assert files_of(got(home, hub, "org/shards")) == files
    del files["model-00002-of-00002.safetensors"]
    hub.models["org/lost"] = Repository(files)
    assert "names model-00002-of-00002.safetensors" in troupe(home, "get", "org/lost", "--yes", rc=4)
    nothing_is_used(home, "org/lost")


def test_an_adapter_and_a_private_model(hub, home):
    hub.models["org/adapter"] = Repository({"adapter_config.json": b"{}", "adapter_model.safetensors": WEIGHTS[:2000], "optimizer.pt": b"no"})
    hub.models["org/adapter"].private = True
    assert "or it is private" in troupe(home, "get", "org/adapter", "--yes", rc=2)
    assert sorted(files_of(got({**home, "HF_TOKEN": "good"}, hub, "org/adapter"))) == ["adapter_config.json", "adapter_model.safetensors"]


def test_revisions(hub, home):
    model = hub.models["org/model"]
    first = model.head
    folder = got(home, hub)
    model.commit({**MODEL, "model.safetensors": WEIGHTS[::-1]})
    model.commit({**MODEL, "model.safetensors": WEIGHTS[:5000]}, "refs/pr/1")
    # A pinned commit needs no hub; a name alone is what the cache has, until `get` asks for the newest.
    assert troupe({**home, "HF_ENDPOINT": "http://127.0.0.1:9"}, "get", f"org/model@{first}", "--offline").splitlines()[1] == str(folder)
    assert got(home, hub) != folder
    out = troupe(home, "get", "org/model", "--revision", "refs/pr/1", "--yes").splitlines()
    assert out[0].endswith(model.references["refs/pr/1"]) and (Path(out[1]) / "model.safetensors").read_bytes() == WEIGHTS[:5000]
    assert "has no revision 'v9'" in troupe(home, "get", "org/model@v9", "--yes", rc=2)
    # Only what differs was moved.
    assert len(hub.seen("storage")) == 3


# --- faults after which it arrives all the same ----------------------------------------------------


def arrives(hub, home):
    assert files_of(got(home, hub))["model.safetensors"] == WEIGHTS
    assert not half_files(home)


@pytest.fixture
def long_weights(hub):
    """Longer than what the client writes at a time (10 MiB)."""
    weights = WEIGHTS * 30
    hub.models["org/model"] = Repository({**MODEL, "model.safetensors": weights})
    return weights


def test_a_cut_body_goes_on_where_it_was(hub, home, long_weights):
    hub.fault("storage", cut(11_000_000), times=1)
    assert files_of(got(home, hub))["model.safetensors"] == long_weights
    assert [one[2] for one in hub.seen("storage")] == [None, f"bytes={10 << 20}-"]


def test_a_hub_that_ignores_ranges(hub, home, long_weights):
    hub.fault("storage", cut(11_000_000), times=1)
    hub.fault("storage", no_range, times=1)
    assert files_of(got(home, hub))["model.safetensors"] == long_weights


def test_a_body_that_stops_is_asked_for_again(hub, home):
    hub.fault("storage", stall(100_000), times=1)
    arrives(hub, home)


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_a_hub_that_is_busy_once(hub, home, code):
    hub.fault("resolve", status(code), times=1)
    hub.fault("tree/", status(code), times=1)
    arrives(hub, home)


def test_a_hub_that_does_not_answer_once(hub, home):
    hub.fault("resolve/.*model.safetensors", hang, times=1, method="HEAD")
    arrives(hub, home)


# --- faults after which it does not ----------------------------------------------------------------


def forged(entries):
    """The listing of a mirror that keeps pointers as plain files."""
    data = local_hub.pointer(WEIGHTS)
    for entry in entries:
        if entry.pop("lfs", None) and entry["path"] == "model.safetensors":
            entry |= {"size": len(data), "oid": local_hub.git_sum(data)}
    return entries


def with_pointer(hub):
    hub.fault("resolve/.*model.safetensors", lambda hub, http: hub.send_part(http, local_hub.pointer(WEIGHTS), {
        "X-Repo-Commit": hub.models["org/model"].head, "ETag": f'"{local_hub.git_sum(local_hub.pointer(WEIGHTS))}"'}))


def renamed(old, new):
    def change(entries):
        return [entry | {"path": new} if entry["path"] == old else entry for entry in entries]
    return change


SUM = local_hub.sha256(WEIGHTS)
OTHER = bytes([WEIGHTS[0] ^ 1]) + WEIGHTS[1:]
FAULTS = {
    "no such model": (lambda hub: hub.models.clear(), 2, "has no model org/model, or it is private"),
    "no such revision": (lambda hub: hub.fault("revision/", status(404, X_Error_Code="RevisionNotFound")), 2, "has no revision 'main'"),
    "a listed file is not there": (lambda hub: hub.fault("resolve/.*model.safetensors", status(404, X_Error_Code="EntryNotFound")), 2,
                                   "is listed by the hub and not there"),
    "a gated model": (lambda hub: setattr(hub.models["org/model"], "gated", True), 2, "is gated"),
    "forbidden": (lambda hub: hub.fault("resolve/", status(403)), 2, "(403)"),
    "limited": (lambda hub: hub.fault("resolve/", status(429)), 5, "limits requests (429)"),
    "broken": (lambda hub: hub.fault("resolve/", status(500)), 5, "answered with status 500"),
    "down for good": (lambda hub: hub.fault("revision/", status(503)), 5, "answered with status 503"),
    "a page for all": (lambda hub: hub.fault("revision/", html), 5, "none of a hub's"),
    "a listing that is a page": (lambda hub: hub.fault("tree/", html), 5, "none of a hub's"),
    "no commit": (lambda hub: hub.fault("resolve/", without("X-Repo-Commit")), 5, "is no hub"),
    "no ETag": (lambda hub: hub.fault("resolve/", without("ETag", "X-Linked-Etag")), 5, "is no hub"),
    "cut again and again": (lambda hub: hub.fault("storage", cut(0)), 5, "cannot reach"),
    "a short body": (lambda hub: hub.fault("storage", body(lambda data: data[:-1])), 4, "with another size"),
    "a long body": (lambda hub: hub.fault("storage", body(lambda data: data + b"x")), 4, "with another size"),
    "another body": (lambda hub: hub.fault("storage", body(lambda data: OTHER)), 4, f"the hub says {SUM[:12]}"),
    "another plain file": (lambda hub: hub.fault("resolve/.*config.json", lambda hub, http: hub.send_part(http, CONFIG.replace(b"llama", b"lamma"), {
        "X-Repo-Commit": hub.models["org/model"].head, "ETag": f'"{local_hub.git_sum(CONFIG)}"'})), 4, "config.json of org/model has the sum"),
    "a pointer in place of the file": (with_pointer, 4, "is a Git LFS pointer"),
    "a mirror of pointers": (lambda hub: (hub.fault("tree/", listing(forged)), with_pointer(hub)), 4, "is a Git LFS pointer"),
    "a path that leads out": (lambda hub: hub.fault("tree/", listing(renamed("config.json", "../../config.json"))), 4, "which is no name"),
    "an absolute path": (lambda hub: hub.fault("tree/", listing(renamed("config.json", "/etc/config.json"))), 4, "which is no name"),
    "a listing without sums": (lambda hub: hub.fault("tree/", listing(lambda entries: [entry | {"oid": ""} for entry in entries])), 5, "none of a hub's"),
    "a listing without files": (lambda hub: hub.fault("tree/", listing(lambda entries: [])), 4, "has no config.json"),
    "only pickles": (lambda hub: hub.models.update({"org/model": Repository({"config.json": CONFIG, "pytorch_model.bin": b"x"})}), 4,
                     "no safetensors weights, only pytorch_model.bin"),
    "nothing ever comes": (lambda hub: hub.fault("storage", stall(0)), 5, "cannot reach"),
    "no answer at all": (lambda hub: hub.fault("revision/", hang), 5, "has not answered for 6 s"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault(hub, home, name):
    switch_on, code, words = FAULTS[name]
    before = files_of(cache(home)) if cache(home).exists() else {}
    assert not before
    switch_on(hub)
    text = troupe(home, "get", "org/model", "--yes", rc=code)
    assert words in text and "hint: " in text, text
    assert "org/model" in text or "http://127.0.0.1" in text, text
    assert "Traceback" not in text
    nothing_is_used(home)
    assert not half_files(home)
    # Once the fault is over, the same command does it.
    hub.faults.clear()
    hub.models["org/model"] = Repository(MODEL)
    assert files_of(got(home, hub)) == {name: MODEL[name] for name in TAKEN}


def test_a_wrong_token(hub, home):
    env = {**home, "HF_TOKEN": "bad"}
    assert "refuses the token (401)" in troupe(env, "get", "org/model", "--yes", rc=2)
    nothing_is_used(home)


def test_another_commit_than_asked_for(hub, home):
    first = hub.models["org/model"].head
    hub.models["org/model"].commit({**MODEL, "config.json": b"{}"})
    hub.fault("revision/", lambda hub, http: hub.send_json(http, {"id": "org/model", "sha": hub.models["org/model"].head, "siblings": []}))
    assert "gives commit" in troupe(home, "get", f"org/model@{first}", "--yes", rc=4)


def test_no_hub_at_the_address(hub, home):
    text = troupe({**home, "HF_ENDPOINT": "http://127.0.0.1:9"}, "get", "org/model", "--yes", rc=5)
    assert "cannot reach http://127.0.0.1:9" in text


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", folder], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip("cannot mount a small disk: " + made.stderr.strip())
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_without_room_is_refused_first(hub, home, small_disk):
    hub.models["org/model"] = Repository({**MODEL, "model.safetensors": bytes(20 << 20)})
    env = {**home, "HF_HOME": str(small_disk)}
    text = troupe(env, "get", "org/model", "--yes", rc=3)
    assert "takes 21.0 MB" in text and "free" in text
    assert not hub.seen("storage") and not half_files(env)


def test_a_disk_that_fills_up(hub, home, small_disk):
    """Another program writes there meanwhile."""
    hub.models["org/model"] = Repository({**MODEL, "model.safetensors": bytes(4 << 20)})

    def fill(hub, http):
        with open(small_disk / "other", "wb") as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError:
                return False

    hub.fault("storage", fill)
    env = {**home, "HF_HOME": str(small_disk)}
    text = troupe(env, "get", "org/model", "--yes", rc=3)
    assert "is full" in text, text
    (small_disk / "other").unlink()
    hub.faults.clear()
    nothing_is_used(env)
    assert not half_files(env)
    assert files_of(got(env, hub))["model.safetensors"] == bytes(4 << 20)


def test_killed_in_the_middle(hub, home):
    hub.fault("storage", stall(200_000))
    run = subprocess.Popen([TROUPE, "get", "org/model", "--yes"], env={**home, "HF_HUB_DOWNLOAD_TIMEOUT": "100"}, start_new_session=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE_S
    while not half_files(home) or not list(snapshot(home, hub).glob("*")):
        assert time.monotonic() < end
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    hub.faults.clear()
    nothing_is_used(home)
    # What is half there is not trusted: each file is hashed again.
    config = snapshot(home, hub) / "config.json"
    if config.exists():
        config.resolve().write_bytes(CONFIG.replace(b"llama", b"lamma"))
        assert "config.json of org/model has the sum" in troupe(home, "get", "org/model", "--yes", rc=4)
    assert files_of(got(home, hub)) == {name: MODEL[name] for name in TAKEN}


def test_two_at_once_download_once(hub, home):
    runs = [subprocess.Popen([TROUPE, "get", "org/model", "--yes"], env=home, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE) for _ in range(3)]
    outs = [run.communicate(timeout=PATIENCE_S) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], outs
    assert len({out for out, _ in outs}) == 1
    assert len(hub.seen("storage")) == 1 and len(hub.seen("resolve/.*config.json")) == 1


def test_a_damaged_cache_is_found_by_check(hub, home):
    folder = got(home, hub)
    (folder / "model.safetensors").resolve().write_bytes(OTHER)
    assert got(home, hub) == folder
    assert "model.safetensors of org/model has the sum" in troupe(home, "get", "org/model", "--check", "--yes", rc=4)
    assert files_of(got(home, hub)) == {name: MODEL[name] for name in TAKEN}


# --- data sets --------------------------------------------------------------------------------------


CARD = """---
configs:
- config_name: main
  default: true
  data_files:
  - split: train
    path: main/train-*.jsonl
  - split: test
    path: main/test.jsonl
- config_name: other
  data_files: other/*.jsonl
---
# Rows
"""


@pytest.fixture
def rows(hub):
    hub.datasets["org/rows"] = Repository({
        "README.md": CARD.encode(), "main/train-00000-of-00002.jsonl": ROWS, "main/train-00001-of-00002.jsonl": ROWS * 2, "main/test.jsonl": ROWS * 3,
        "other/x.jsonl": ROWS * 4, "load.py": b"raise SystemExit"})
    return hub


def rows_got(env, name, *words):
    out = troupe(env, "get", name, "--dataset", "--yes", *words).splitlines()
    return [line.split("/snapshots/")[1].split("/", 1)[1] for line in out[1:]]


def test_data_sets_by_configuration_and_split(rows, home):
    train = ["main/train-00000-of-00002.jsonl", "main/train-00001-of-00002.jsonl"]
    assert rows_got(home, "org/rows") == train
    assert not rows.seen("test.jsonl")
    assert rows_got(home, "org/rows:main:test") == rows_got(home, "org/rows:test") == ["main/test.jsonl"]
    assert rows_got(home, "org/rows:other") == ["other/x.jsonl"]
    assert rows_got(home, "org/rows", "--offline") == train
    for name, words in (("org/rows:none", "has no split 'none'; it has train, test"), ("org/rows:other:test", "has no split 'test'; it has train"),
                        ("org/none", "has no data set org/none"), ("org/model", "has no data set")):
        assert words in troupe(home, "get", name, "--dataset", "--yes", rc=2)


def test_a_damaged_shard_of_rows_is_not_used(rows, home):
    rows.fault("resolve/.*train-00001", lambda hub, http: hub.send_part(http, ROWS + ROWS.replace(b"2", b"3"), {
        "X-Repo-Commit": hub.datasets["org/rows"].head, "ETag": f'"{local_hub.git_sum(ROWS * 2)}"'}))
    assert "train-00001-of-00002.jsonl of org/rows has the sum" in troupe(home, "get", "org/rows", "--dataset", "--yes", rc=4)
    assert "in the hub cache" in troupe(home, "get", "org/rows", "--dataset", "--offline", rc=2)


def test_rows_that_another_program_fetched(rows, home):
    """By the package alone: what is there is used, and a part of the shards is not the whole."""
    load = "import sys, huggingface_hub as h; h.snapshot_download('org/rows', repo_type='dataset', allow_patterns=sys.argv[1:])"
    subprocess.run([sys.executable, "-c", load, "README.md", "main/train-00000*"], env=home, check=True, capture_output=True)
    assert "has 1 of 2 shards" in troupe(home, "get", "org/rows", "--dataset", "--offline", rc=2)
    subprocess.run([sys.executable, "-c", load, "README.md", "main/*"], env=home, check=True, capture_output=True)
    assert len(rows_got(home, "org/rows", "--offline")) == 2


# --- consent ----------------------------------------------------------------------------------------


def test_nothing_is_downloaded_without_a_yes(hub, home):
    for words in (["get", "org/model"], ["generate", "--model", "org/model", "--prompt", "x"]):
        text = troupe(home, *words, rc=2)
        assert "nothing is downloaded without a yes" in text and "`troupe get org/model --yes`" in text, text
    assert not hub.requests and not cache(home).exists()
    assert "HF_HUB_OFFLINE is set" in troupe({**home, "TROUPE_YES": "1", "HF_HUB_OFFLINE": "1"}, "get", "org/model", rc=2)
    assert not hub.requests
    out = troupe({**home, "TROUPE_YES": "1"}, "get", "org/model")
    assert out.startswith("org/model@")
    before = len(hub.requests)
    assert troupe(home, "get", "org/model") == out and len(hub.requests) == before


def on_a_terminal(env, answer, *words):
    """The exit code and what a user sees who answers so."""
    ours, theirs = pty.openpty()
    run = subprocess.Popen([TROUPE, *words], env={**env, "TERM": "xterm"}, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            seen += os.read(ours, 4096)
        except OSError:
            break
        if answer and b"[y/N] " in seen:
            os.write(ours, answer.encode())
            answer = ""
    os.close(ours)
    return run.wait(PATIENCE_S), seen.decode(errors="replace")


def test_a_user_is_asked_once_with_the_size(hub, home):
    code, seen = on_a_terminal(home, "n\n", "get", "org/model")
    assert code == 130 and "org/model: 4 files, 400.1 kB from http://127.0.0.1" in seen and "nothing was downloaded" in seen, seen
    nothing_is_used(home)
    assert not hub.seen("storage")
    code, seen = on_a_terminal(home, "y\n", "get", "org/model")
    assert code == 0 and seen.count("[y/N]") == 1 and "400.1 kB downloaded and checked" in seen, seen
    code, seen = on_a_terminal(home, "", "get", "org/model")
    assert code == 0 and "nothing had to be downloaded" in seen


def test_a_python_without_the_client_names_the_command(hub, home, tmp_path):
    bare = tmp_path / "bare"
    bare.write_text(f"""#!/bin/sh
exec {sys.executable} -S "$@"
""")
    bare.chmod(0o755)
    text = troupe({**home, "TROUPE_HUB_PYTHON": str(bare)}, "get", "org/model", "--yes", rc=3)
    assert "no Python package huggingface_hub" in text and "-m pip install huggingface_hub" in text
    text = troupe({**home, "TROUPE_HUB_PYTHON": "/none"}, "get", "org/model", "--yes", rc=5)
    assert "TROUPE_HUB_PYTHON names an interpreter" in text


@pytest.mark.parametrize("words, cause", [
    (["get"], "0 names"),
    (["get", "org/model", "org/other"], "2 names"),
    (["get", "model"], "'model' is no name of a hub"),
    (["get", "org/model:x"], "is no name of a hub"),
    (["get", "org/model@../x"], "is no name of a hub"),
    (["get", "org/model@v1", "--revision", "v2"], "both give a revision"),
    (["get", "data/rows.jsonl", "--dataset"], "is no name of a hub"),
    (["push", "x"], "1 words"),
    (["push", "/none", "org/x"], "no folder /none"),
    (["push", "/tmp", "x"], "is no name of a repository"),
    (["push", "/tmp", "org/x@v1"], "is no name of a repository"),
])
def test_bad_words(home, words, cause):
    text = troupe({**home, "TROUPE_YES": "1"}, *words, rc=2)
    assert cause in text and "hint: " in text


# --- commands by name -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A model that is one."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    subprocess.run([TROUPE, "model", "random", "--shape", "tiny", "--out", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def words_of_training(run, steps, *more):
    return ["train", "sft", "--actor.model_name_or_path", "org/tiny", "--data.dataset", "org/rows:main", "--eval.dataset", "org/rows:main:test",
            "--eval.steps", "1", "--data.max_len", "64", "--train.batch_size", "2", "--train.max_epochs", "9", "--train.max_steps", str(steps),
            "--train.threads", "1", "--logger.tensorboard", "false", "--actor.lr_warmup_ratio", "0", "--actor.lr_scheduler", "constant",
            "--run.path", str(run), *more]  # fmt: skip


def test_generate_and_train_by_name(rows, home, tiny, tmp_path):
    hub = rows
    hub.models["org/tiny"] = Repository(files_of(tiny))
    pinned, rows_pinned = f"org/tiny@{hub.models['org/tiny'].head}", f"org/rows@{hub.datasets['org/rows'].head}"
    sample = ["--prompt", "1+1=", "--max-new-tokens", "4", "--temperature", "0"]
    by_path = troupe(home, "generate", "--model", str(tiny), *sample)
    assert troupe(home, "generate", "--model", "org/tiny", *sample, "--yes") == by_path
    assert troupe(home, "generate", "--model", pinned, *sample, "--offline") == by_path

    run = tmp_path / "run"
    troupe(home, *words_of_training(run, 2), "--yes")
    resolved = (run / "resolved_config.yaml").read_text()
    assert f'"{pinned}"' in resolved and f'"{rows_pinned}:main"' in resolved and f'"{rows_pinned}:main:test"' in resolved
    card = (run / "ckpt/step_000002/model/README.md").read_text()
    assert 'base_model: "org/tiny"' in card and '- "org/rows"' in card and f"| data | {rows_pinned}:main |" in card and "eval/" in card

    # The hub goes on; the run keeps what it was made from, and asks nobody.
    hub.models["org/tiny"].commit({"config.json": b"{}"})
    hub.datasets["org/rows"].commit({"x.jsonl": ROWS})
    before = len(hub.requests)
    troupe(home, *words_of_training(run, 3), "--yes")
    assert len(hub.requests) == before
    assert f'"{pinned}"' in (run / "resolved_config.yaml").read_text()
    assert [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()][-1] == 3

    # The same rows as files, the same bits.
    main = [str(path) for path in sorted((cache(home) / "datasets--org--rows").glob("snapshots/*/main/train-*"))]
    troupe(home, *words_of_training(tmp_path / "files", 3), "--actor.model_name_or_path", str(tiny), "--data.dataset", ",".join(main))
    assert weights(tmp_path / "files") == weights(run)


def weights(run):
    return (run / "ckpt/step_000003/model/model.safetensors").read_bytes()


def test_a_missing_name_stops_a_run_before_it_begins(hub, home, tmp_path):
    run = tmp_path / "run"
    text = troupe(home, *words_of_training(run, 1), "--yes", rc=2)
    assert "actor.model_name_or_path: " in text and "has no model org/tiny" in text
    assert "data.dataset: " in text and "has no data set org/rows" in text
    assert not run.exists()


def test_a_pointer_in_a_folder_is_named(home, tiny, tmp_path):
    folder = tmp_path / "clone"
    shutil.copytree(tiny, folder)
    (folder / "model.safetensors").write_bytes(local_hub.pointer(WEIGHTS))
    text = troupe(home, "generate", "--model", str(folder), "--prompt", "x", rc=4)
    assert "it is a Git LFS pointer, not the weights" in text and "git lfs pull" in text


# --- uploads ----------------------------------------------------------------------------------------


def test_push(hub, home, tiny, tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(tiny, folder)
    (folder / "README.md").write_text("---\nlibrary_name: transformers\n---\n# Mine\n")
    (folder / "secret.txt").write_text("not for others")
    (folder / "optimizer.pt").write_text("pickle")
    env = {**home, "HF_TOKEN": "good"}
    assert "nothing is uploaded without a yes" in troupe(env, "push", str(folder), "me/new", rc=2)
    done = subprocess.run([TROUPE, "push", folder, "me/new", "--dry-run"], env=env, text=True, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and "model.safetensors, " in done.stderr and "secret.txt" not in done.stderr
    assert not hub.requests and "me/new" not in hub.models
    assert "refuses the token (401)" in troupe({**home, "HF_TOKEN": "bad"}, "push", str(folder), "me/new", "--yes", rc=2)
    out = troupe(env, "push", str(folder), "me/new", "--private", "--yes")
    made = hub.models["me/new"]
    assert out.strip() == f"{hub.url}/me/new/commit/{made.head}" and made.private
    pushed = {name: data for name, data in files_of(folder).items() if name not in ("secret.txt", "optimizer.pt")}
    assert made.commits[made.head] == pushed
    # And back.
    assert files_of(got(env, hub, "me/new")) == pushed
    assert "holds neither model.safetensors" in troupe(env, "push", str(tmp_path / "home" / ".."), "me/new", "--yes", rc=4)
