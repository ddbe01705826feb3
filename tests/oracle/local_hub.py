"""A hub on this host: repositories of models and data sets behind the HTTP interface that the package
huggingface_hub speaks (HF_ENDPOINT), with faults that a test switches on. Large files are kept as the
hub keeps them, behind redirects to another address, with their sha256."""

import base64
import hashlib
import json
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGE = (".safetensors", ".parquet", ".bin")
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def git_sum(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def pointer(data):
    return POINTER.format(sha256(data), len(data)).encode()


class Repository:
    def __init__(self, files):
        self.commits, self.references, self.private, self.gated = {}, {}, False, False
        self.commit(files)

    def commit(self, files, reference="main"):
        text = json.dumps({path: git_sum(data) for path, data in files.items()}, sort_keys=True)
        name = hashlib.sha1((text + str(len(self.commits))).encode()).hexdigest()
        self.commits[name] = dict(files)
        self.references[reference] = name
        return name

    def find(self, revision):
        name = self.references.get(revision, revision)
        return (name, self.commits[name]) if name in self.commits else (None, None)

    @property
    def head(self):
        return self.references["main"]


class LocalHub:
    """`models` and `datasets`: {name: Repository}. `requests`: (method, path, range) of all that came."""

    def __init__(self):
        self.models, self.datasets, self.moved, self.requests = {}, {}, {}, []
        self.tokens, self.uploads, self.page = {}, {}, 1000
        self.faults, self.lock, self.over = [], threading.Lock(), threading.Event()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_any(self):
                try:
                    hub.answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            do_GET = do_HEAD = do_POST = do_PUT = handle_any

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        # Another address, as that of the storage behind a hub.
        self.storage = f"http://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True, kwargs={"poll_interval": 0.05}).start()

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    # `times`: how often it happens; None: always.
    def fault(self, pattern, act, times=None, method=None):
        self.faults.append({"pattern": re.compile(pattern), "act": act, "times": times, "method": method})

    def seen(self, pattern, method="GET"):
        return [one for one in self.requests if one[0] == method and re.search(pattern, one[1])]

    def answer(self, http):
        length = int(http.headers.get("Content-Length") or 0)
        http.body = http.rfile.read(length) if length else b""
        path = urllib.parse.unquote(http.path)
        with self.lock:
            self.requests.append((http.command, path, http.headers.get("Range")))
            fault = next((one for one in self.faults if one["times"] != 0 and one["pattern"].search(path)
                          and one["method"] in (None, http.command)), None)
            if fault and fault["times"]:
                fault["times"] -= 1
        if fault and fault["act"](self, http):
            return
        self.route(http, http.path.split("?")[0], urllib.parse.parse_qs(urllib.parse.urlsplit(http.path).query))

    def route(self, http, path, query):
        word = [urllib.parse.unquote(one) for one in path.strip("/").split("/")]
        if word[0] == "storage":
            return self.send_stored(http, word[1])
        if word[0] == "upload":
            self.uploads[word[1]] = http.body
            return self.send(http, 200, b"")
        if word[:3] == ["api", "repos", "create"]:
            return self.create(http)
        if word[:2] == ["api", "validate-yaml"]:
            return self.send_json(http, {"errors": [], "warnings": []})
        if word[0] == "api" and word[1] in ("models", "datasets"):
            return self.api(http, word[1], "/".join(word[2:4]), word[4:], query)
        if word[2:5] == ["info", "lfs", "objects"]:
            return self.lfs_batch(http)
        kind = "models"
        if word[0] == "datasets":
            kind, word = "datasets", word[1:]
        if len(word) > 4 and word[2] == "resolve":
            return self.resolve(http, kind, "/".join(word[:2]), word[3], "/".join(word[4:]))
        return self.send(http, 404, b"no such page")

    # --- what is there -----------------------------------------------------------------------------

    def repository(self, http, kind, name):
        """The repository, or None after a refusal."""
        token = (http.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token and token not in self.tokens:
            return self.refuse(http, 401, "", "Invalid credentials in Authorization header")
        found = getattr(self, kind).get(name)
        if found is None or (found.private and not token):
            return self.refuse(http, 404 if token else 401, "RepoNotFound", "Repository not found")
        return found

    def api(self, http, kind, name, rest, query):
        if (kind, name) in self.moved:
            target = f"/api/{kind}/{self.moved[kind, name]}/" + "/".join(rest)
            return self.send(http, 307, b"", {"Location": target + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")})
        found = self.repository(http, kind, name)
        if found is None:
            return None
        if rest[:1] == ["preupload"]:
            wanted = json.loads(http.body)["files"]
            return self.send_json(http, {"files": [{"path": one["path"], "shouldIgnore": False,
                                                    "uploadMode": "lfs" if one["path"].endswith(LARGE) else "regular"} for one in wanted]})
        if rest[:1] == ["commit"]:
            return self.take_commit(http, found, name)
        commit, files = found.find(rest[1] if len(rest) > 1 else "main")
        if commit is None:
            return self.refuse(http, 404, "RevisionNotFound", "Invalid rev id")
        if rest[:1] == ["tree"]:
            return self.send_tree(http, found, files, query)
        return self.send_json(http, {"_id": "1", "id": name, "modelId": name, "sha": commit, "private": found.private, "gated": found.gated,
                                     "tags": [], "siblings": [{"rfilename": path} for path in files]})

    def entries(self, files):
        folders = sorted({path.rsplit("/", 1)[0] for path in files if "/" in path})
        out = [{"type": "directory", "oid": git_sum(one.encode()), "size": 0, "path": one} for one in folders]
        for path, data in sorted(files.items()):
            entry = {"type": "file", "oid": git_sum(data), "size": len(data), "path": path}
            if path.endswith(LARGE):
                entry |= {"oid": git_sum(pointer(data)),
                          "lfs": {"oid": sha256(data), "size": len(data), "pointerSize": len(pointer(data))}}
            out.append(entry)
        return out

    def send_tree(self, http, repository, files, query):
        entries, at = self.entries(files), int(query.get("cursor", ["0"])[0])
        headers = {}
        if at + self.page < len(entries):
            path = http.path.split("?")[0]
            rest = urllib.parse.urlencode({**{key: one[0] for key, one in query.items()}, "cursor": at + self.page})
            headers["Link"] = f'<{self.url}{path}?{rest}>; rel="next"'
        self.send_json(http, entries[at : at + self.page], headers)

    def resolve(self, http, kind, name, revision, path):
        if (kind, name) in self.moved:
            prefix = "" if kind == "models" else "/datasets"
            return self.send(http, 307, b"", {"Location": f"{prefix}/{self.moved[kind, name]}/resolve/{revision}/{path}"})
        found = self.repository(http, kind, name)
        if found is None:
            return None
        if found.gated:
            return self.refuse(http, 403, "GatedRepo", f"Access to model {name} is restricted")
        commit, files = found.find(revision)
        if commit is None:
            return self.refuse(http, 404, "RevisionNotFound", "Invalid rev id")
        if path not in files:
            return self.refuse(http, 404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        data = files[path]
        if path.endswith(LARGE):
            return self.send(http, 302, b"", {"X-Repo-Commit": commit, "X-Linked-Size": str(len(data)), "X-Linked-Etag": f'"{sha256(data)}"',
                                              "Location": f"{self.storage}/storage/{sha256(data)}"})
        return self.send_part(http, data, {"X-Repo-Commit": commit, "ETag": f'"{git_sum(data)}"'})

    def stored(self, name):
        for found in [*self.models.values(), *self.datasets.values()]:
            for files in found.commits.values():
                for data in files.values():
                    if sha256(data) == name:
                        return data
        return None

    def send_stored(self, http, name):
        data = self.stored(name)
        return self.send(http, 404, b"") if data is None else self.send_part(http, data, {"ETag": f'"{name}"'})

    # --- what is uploaded --------------------------------------------------------------------------

    def create(self, http):
        wanted = json.loads(http.body)
        name = f"{wanted.get('organization') or 'me'}/{wanted['name']}"
        if not (http.headers.get("Authorization") or "").removeprefix("Bearer ") in self.tokens:
            return self.refuse(http, 401, "", "Invalid username or password.")
        if name in self.models:
            return self.refuse(http, 409, "", "You already created this model repo", body={"url": f"{self.url}/{name}"})
        made = self.models[name] = Repository({})
        made.private = bool(wanted.get("private") or wanted.get("visibility") == "private")
        return self.send_json(http, {"url": f"{self.url}/{name}", "id": "1", "name": name})

    def lfs_batch(self, http):
        return self.send_json(http, {"transfer": "basic", "objects": [
            {"oid": one["oid"], "size": one["size"], "actions": {"upload": {"href": f"{self.url}/upload/{one['oid']}", "header": {}}}}
            for one in json.loads(http.body)["objects"]]})

    def take_commit(self, http, repository, name):
        files = dict(repository.commits[repository.head])
        for line in http.body.splitlines():
            row = json.loads(line)
            if row["key"] == "file":
                files[row["value"]["path"]] = base64.b64decode(row["value"]["content"])
            elif row["key"] == "lfsFile":
                files[row["value"]["path"]] = self.uploads[row["value"]["oid"]]
        made = repository.commit(files)
        return self.send_json(http, {"success": True, "commitOid": made, "commitUrl": f"{self.url}/{name}/commit/{made}"})

    # --- answers ------------------------------------------------------------------------------------

    def send(self, http, status, data, headers=None):
        http.send_response(status)
        for key, value in (headers or {}).items():
            http.send_header(key, value)
        if "Content-Length" not in (headers or {}):
            http.send_header("Content-Length", str(len(data)))
        http.end_headers()
        if http.command != "HEAD":
            http.wfile.write(data)
        return True

    def send_json(self, http, value, headers=None):
        return self.send(http, 200, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    def send_part(self, http, data, headers):
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", http.headers.get("Range") or "")
        if not asked:
            return self.send(http, 200, data, {**headers, "Accept-Ranges": "bytes"})
        first = int(asked[1])
        return self.send(http, 206, data[first:], {**headers, "Content-Range": f"bytes {first}-{len(data) - 1}/{len(data)}"})

    def refuse(self, http, status, code, message, headers=None, body=None):
        self.send(http, status, json.dumps(body or {"error": message}).encode(),
                  {"X-Error-Code": code, "X-Error-Message": message, "Content-Type": "application/json", **(headers or {})})
        return None


# --- faults: what `fault` takes --------------------------------------------------------------------


def status(code, text=b"", **headers):
    return lambda hub, http: hub.send(http, code, text, {key.replace("_", "-"): value for key, value in headers.items()})


def html(hub, http):
    return hub.send(http, 200, b"<html>Please sign in to the network</html>", {"Content-Type": "text/html"})


def hang(hub, http):
    """Answers nothing until the hub is closed."""
    hub.over.wait()
    http.close_connection = True
    return True


def body(change, status_of=200, length_of=len):
    """Sends `change` of the right bytes."""
    def act(hub, http):
        path = urllib.parse.unquote(http.path).split("?")[0]
        data = change(hub.stored(path.rsplit("/", 1)[1]))
        return hub.send(http, status_of, data, {"Content-Length": str(length_of(data))})
    return act


def cut(after):
    """Sends so many bytes of the body, then breaks the connection."""
    def act(hub, http):
        data = hub.stored(http.path.rsplit("/", 1)[1])
        first = int((http.headers.get("Range") or "bytes=0-")[6:-1])
        http.send_response(206 if first else 200)
        if first:
            http.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        http.send_header("Content-Length", str(len(data) - first))
        http.end_headers()
        http.wfile.write(data[first : first + after])
        http.wfile.flush()
        http.close_connection = True
        http.connection.shutdown(2)
        return True
    return act


def stall(after):
    """Sends so many bytes of the body, then nothing."""
    def act(hub, http):
        data = hub.stored(http.path.rsplit("/", 1)[1])
        http.send_response(200)
        http.send_header("Content-Length", str(len(data)))
        http.end_headers()
        http.wfile.write(data[:after])
        http.wfile.flush()
        return hang(hub, http)
    return act


def no_range(hub, http):
    """Answers a request for a part with the whole."""
    data = hub.stored(http.path.rsplit("/", 1)[1])
    return hub.send(http, 200, data)


def without(*names):
    """The right answer without some headers."""
    def act(hub, http):
        plain = http.send_header
        http.send_header = lambda key, value: None if key in names else plain(key, value)
        return False
    return act


def listing(change):
    """The tree as `change` makes it of the right one."""
    def act(hub, http):
        word = http.path.split("?")[0].strip("/").split("/")
        _, files = getattr(hub, word[1])["/".join(word[2:4])].find(word[-1])
        return hub.send_json(http, change(hub.entries(files)))
    return act
