"""Runs agent programs for Troupe, each once an episode, many at a time.

Reads one JSON request a line from standard input and writes one JSON reply a line on a descriptor of its own:
  {"id": 1, "run": {"environment": {...}, "texts": {"TROUPE_TASK": ...}, "host": ..., "port": ..., "seconds": 60}}
      -> {"id": 1, "how": "ended", "status": 0, "output": "...", "bytes": 12, "errors": "..."}
  {"kill": 1}   no reply
`how`: ended; late, too large, too many (limits); cannot (it could not be started: `errors` says why).

A confined program (confinement.py) has a loopback of its own, without a way out but one: a listening socket
on 127.0.0.1 whose other side is this process, which carries its connections to the run's server. The
socket is made in the program's namespace and handed out before the program begins. Not confined, a
program has a keeper next to it, which ends all that it started when it or this process is gone.
"""
import array
import asyncio
import fcntl
import functools
import shlex
import shutil
import socket
import struct
import tempfile

READ_BYTES, LOOK_AGENTS, PASSED = 1 << 16, 0.5, ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV")
FOLDER_PREFIX = "troupe-agent-"
CONNECTIONS_MAX = 64  # of one program at a time
AGENT_FOLDER, AGENT_FILES, ERRORS_MAX = 256 << 20, 1024, 2000
AGENT_PROCESSES, AGENT_THREADS = 64, 512
PR_SET_CHILD_SUBREAPER = 36


def write_texts(files):
    for path, text in files.items():
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        os.chmod(path, 0o644)


def loopback_listener(port):
    """In a network of its own: loopback, and a socket that listens there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        up = struct.pack("16sH14x", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, up)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(CONNECTIONS_MAX)
    return listener


def real_folder(path):
    """The path without links among its folders, which are not there in a confined program's root; the name of a
    program itself says which environment it is of."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def install_paths(program):
    """What a program's file needs to be read: its installation, and that of what it links to."""
    found = []
    for path in (os.path.abspath(program), os.path.realpath(program)):
        folder = os.path.dirname(path)
        above = os.path.dirname(folder)
        whole = os.path.basename(folder) == "bin" and above not in ("/", os.path.expanduser("~"))
        found.append(above if whole else folder)
    config = os.path.join(found[0], "pyvenv.cfg")
    if os.path.exists(config):
        with open(config, encoding="utf-8") as file:
            homes = [line.partition("=")[2].strip() for line in file if line.partition("=")[0].strip() == "home"]
        found += [os.path.dirname(os.path.realpath(home)) for home in homes]
    return found


def locked_folder(path):
    """A descriptor that holds the folder's lock; None if a living process holds it, or it is not ours."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        facts = os.fstat(descriptor)
        if facts.st_uid == os.geteuid() and not facts.st_mode & 0o077:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


class Folders:
    """Those of programs, in a private folder that is there and locked while one of them runs. Those of workers that
    were killed, which could not remove theirs, are removed at the start."""

    def __init__(self):
        self.used, self.place, self.lock = 0, None, None
        base = tempfile.gettempdir()
        for name in os.listdir(base):
            path = os.path.join(base, name)
            if name.startswith(FOLDER_PREFIX) and (descriptor := locked_folder(path)) is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(descriptor)

    def make(self):
        while self.lock is None:  # another worker may take it for a dead one's before it is locked
            self.place = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
            self.lock = locked_folder(self.place)
        folder = tempfile.mkdtemp(dir=self.place)
        self.used += 1
        return folder

    def remove(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        self.used -= 1
        if self.used == 0:
            shutil.rmtree(self.place, ignore_errors=True)
            os.close(self.lock)
            self.lock = None


class Ring:
    """The first and the last bytes of an output that may be endless."""

    def __init__(self, most):
        self.most, self.first, self.last, self.count = most, b"", b"", 0

    def add(self, piece):
        self.count += len(piece)
        room = self.most - len(self.first)
        self.first += piece[:room]
        if len(piece) > room:
            self.last = (self.last + piece[room:])[-self.most:]

    def text(self):
        left_out = self.count - len(self.first) - len(self.last)
        between = f"\n... {left_out} bytes left out ...\n".encode() if left_out else b""
        return (self.first + between + self.last).decode(errors="replace")


class Agent(Confinement):
    """How programs are started: confined, or with a keeper."""

    def __init__(self, settings):
        self.confined, self.folder, self.output_max = settings["confined"], settings["folder"], settings["output_bytes"]
        self.words, self.text_max, self.base = shlex.split(settings["command"]), settings["task_bytes"], os.getpid()
        if not self.words:
            raise Refusal("env.command is empty")
        self.program = shutil.which(self.words[0])
        if self.program is None:
            raise Refusal(f"env.command: there is no program `{self.words[0]}` on the PATH")
        self.program = real_folder(self.program)
        if self.confined:
            super().__init__("env.command", settings["memory_mb"] << 20, (socket.AF_INET, socket.AF_INET6))
            self.apart = APART | CLONE_NEWUSER  # also for root: then the folder's owner can read it, without rights
            home = os.path.realpath(os.path.expanduser("~"))
            if self.folder == "/" or home == self.folder or home.startswith(self.folder + "/"):
                raise Refusal(f"env.command: a confined program can read all of its folder, and {self.folder} holds your "
                              "own files; start the run in a folder that has the agent's files alone, or set "
                              "env.confined false")
            self.paths = self.with_paths(["/etc/ssl", "/etc/pki", "/etc/ca-certificates", self.folder]
                                         + install_paths(self.program) + settings["readable"])
        else:
            self.memory, self.user = settings["memory_mb"] << 20, (os.geteuid(), os.getegid())
            self.folders = Folders()

    def with_paths(self, more):
        kept = list(self.paths)
        for path in more:
            path = os.path.realpath(path)
            if os.path.lexists(path) and not any(path == one or path.startswith(one + "/") for one in kept):
                kept = [one for one in kept if not one.startswith(path + "/")] + [path]
        return kept

    def limits(self, seconds):
        known = [(resource.RLIMIT_DATA, self.memory), (resource.RLIMIT_FSIZE, AGENT_FOLDER),
                 (resource.RLIMIT_NOFILE, AGENT_FILES), (resource.RLIMIT_CORE, 0)]
        return known + ([(resource.RLIMIT_NPROC, AGENT_THREADS)] if self.confined else [])

    def environment(self, run):
        kept = {name: os.environ[name] for name in PASSED if name in os.environ}
        if self.confined:
            folders = [os.path.realpath(folder) for folder in kept.get("PATH", "/usr/bin:/bin").split(":")]
            kept.update(HOME="/tmp", TMPDIR="/tmp", PATH=":".join(folders))
        else:
            kept.update(HOME=os.environ.get("HOME", "/"), TMPDIR=run["folder"])
        return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", **run["environment"]}

    def place_texts(self, run):
        """Short texts are variables; long ones lie in files, whose paths are the variables NAME_FILE."""
        run["files"] = {}
        for name, text in run["texts"].items():
            plain = text.encode(errors="replace").decode() == text and "\0" not in text
            if plain and len(text.encode()) <= self.text_max:
                run["environment"][name] = text
            else:
                path = os.path.join("/tmp" if self.confined else run["folder"], name.lower())
                run["files"][path] = text
                run["environment"][name + "_FILE"] = path

    def start(self, run, number):
        """The child's id, and the ends of what it writes, says of its start, and listens on."""
        out, write = os.pipe()
        err, complain = os.pipe()
        told, tell = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        child = self.fork() if self.confined else os.fork()
        if child == 0:
            try:
                told.close()
                os.close(out)
                os.close(err)
                given, environment = os.open("/dev/null", os.O_RDONLY), self.environment(run)
                (self.begin_confined if self.confined else self.begin_kept)(run, (given, write, complain), tell, number)
                os.execve(self.program, [self.program, *self.words[1:]], environment)
            except BaseException as error:
                tell.sendall(json.dumps([getattr(error, "errno", 0) or 0, str(error)]).encode())
            os._exit(111)
        os.close(write)
        os.close(complain)
        tell.close()
        if child < 0:
            code = ctypes.get_errno()
            for descriptor in (out, err):
                os.close(descriptor)
            told.close()
            raise OSError(code, "no namespaces: " + os.strerror(code))
        return child, out, err, told

    def begin_confined(self, run, streams, tell, number):
        listener = loopback_listener(run["port"])

        def fill(root):
            os.makedirs(root + "/dev/shm", exist_ok=True)
            mount("tmpfs", root + "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, f"size={FOLDER_MAX},mode=1777")
            os.makedirs(root + "/etc", exist_ok=True)
            texts = {"/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n", "/etc/nsswitch.conf": "hosts: files\n",
                     "/etc/passwd": "agent:x:65534:65534::/tmp:/bin/sh\n", "/etc/group": "agent:x:65534:\n"}
            write_texts({root + path: text for path, text in {**texts, **run["files"]}.items()})
        self.leave_root = lambda: leave_root(2_000_000_000 + (self.base + number) % 1_000_000)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))]
        tell.sendmsg([b"+"], rights)
        listener.close()
        self.enter(fill, streams, self.limits(run["seconds"]), AGENT_FOLDER, self.folder)

    def begin_kept(self, run, streams, tell, number):
        """The keeper stays; the program goes on in a child of it, with a session of its own."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        program = os.fork()
        if program != 0:
            tell.close()
            keep(program, run["hold"])
        os.setsid()
        os.chdir(self.folder)
        for target, source in enumerate(streams):
            os.dup2(source, target)
        for kind, value in self.limits(run["seconds"]):
            resource.setrlimit(kind, (value, value))
        prctl(PR_SET_NO_NEW_PRIVS, 1)

    def check(self):
        """Starts a program that says nothing, to know that programs can be confined."""
        if not self.confined:
            return
        run = {"environment": {}, "files": {}, "port": 8000, "seconds": 30}
        why = self.tried(run)
        if why and os.geteuid() == 0:
            self.apart = APART
            why = self.tried(run) and why
        if why:
            raise Refusal(f"env.command cannot be confined here ({why[1]}); allow user namespaces (sysctl "
                          "user.max_user_namespaces, kernel.unprivileged_userns_clone), or set env.confined false, which "
                          "lets the agent do what you may do")

    def tried(self, run):
        program, words = self.program, self.words
        self.program, self.words = interpreter(), ["python3", "-I", "-S", "-c", "pass"]
        try:
            child, out, err, told = self.start(run, 0)
        except OSError as error:
            return error.errno, str(error)
        finally:
            self.program, self.words = program, words
        data = told.recv(4096)
        while data and data.startswith(b"+"):
            data = data[1:] or told.recv(4096)
        os.waitpid(child, 0)
        for descriptor in (out, err):
            os.close(descriptor)
        told.close()
        return json.loads(data) if data else None


def children_of(pid):
    try:
        found = []
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += [int(child) for child in file.read().split()]
        return found
    except OSError:
        return []


def keep(program, hold):
    """Waits for the program, or for the end of the pipe that this process's parent holds; then ends all that
    the program started, also what left its session, and ends as the program did."""
    os.dup2(hold, 3)
    os.closerange(4, 1 << 16)
    for descriptor in range(3):
        os.dup2(os.open("/dev/null", os.O_RDWR), descriptor)
    ended = os.pidfd_open(program)
    select.select([3, ended], [], [])
    if not select.select([ended], [], [], 0)[0]:
        os.kill(program, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    while True:
        for child in children_of(os.getpid()):
            os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    os._exit(code if code >= 0 else 128 - code)


class Run:
    """One program: its output, its connections, its end."""

    def __init__(self, agent, request, replies):
        self.agent, self.run, self.number, self.replies = agent, request["run"], request["id"], replies
        self.output, self.errors = Ring(agent.output_max), Ring(ERRORS_MAX)
        self.how, self.failure, self.child, self.held, self.server = "ended", b"", 0, None, None
        self.links, self.begun = set(), False

    async def go(self):
        loop = asyncio.get_running_loop()
        hold = None
        try:
            if not self.agent.confined:
                hold, self.held = os.pipe()
                self.run.update(hold=hold, folder=self.agent.folders.make())
            self.agent.place_texts(self.run)
            if not self.agent.confined:
                write_texts(self.run["files"])
            self.child, out, err, told = self.agent.start(self.run, self.number)
        except OSError as error:
            self.failure = json.dumps([error.errno, str(error)]).encode()
            self.close()
            return self.reply(None)
        finally:
            if hold is not None:
                os.close(hold)
        ended = os.pidfd_open(self.child)
        over = loop.create_future()
        loop.add_reader(ended, lambda: over.done() or over.set_result(None))
        timer = loop.call_later(self.run["seconds"], self.stop, "late")
        parts = [asyncio.ensure_future(part) for part in
                 (self.read(out, self.output), self.read(err, self.output, self.errors), self.hear(told))]
        looks = asyncio.ensure_future(self.look())
        try:
            await over
            loop.remove_reader(ended)
            os.close(ended)
            status = os.waitpid(self.child, 0)[1]
            self.child = 0
            await asyncio.wait(parts)
        finally:
            timer.cancel()
            looks.cancel()
            self.close()
        self.reply(os.waitstatus_to_exitcode(status))

    def stop(self, how):
        if not self.child:
            return
        self.how = how if self.how == "ended" else self.how
        if self.agent.confined:
            os.kill(self.child, signal.SIGKILL)
        elif self.held is not None:
            os.close(self.held)  # the keeper sees it
            self.held = None

    def close(self):
        if self.held is not None:
            os.close(self.held)
            self.held = None
        if "folder" in self.run:
            self.agent.folders.remove(self.run.pop("folder"))
        if self.server is not None:
            self.server.close()
        for link in list(self.links):
            link.cancel()

    def reply(self, status):
        how, errors = self.how, self.errors.text()
        if self.failure:
            how, errors = "cannot", json.loads(self.failure)[1]
        self.replies.write({"id": self.number, "how": how, "status": status, "output": self.output.text(),
                            "bytes": self.output.count, "errors": errors, "program": self.agent.program})

    async def read(self, descriptor, *kept):
        """All that comes, as far as it is wanted."""
        loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        while True:
            try:
                piece = os.read(descriptor, READ_BYTES)
            except BlockingIOError:
                ready = loop.create_future()
                loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
                await ready
                loop.remove_reader(descriptor)
                continue
            if not piece:
                break
            for one in kept:
                one.add(piece)
            await asyncio.sleep(0)
        os.close(descriptor)

    async def hear(self, told):
        """What the child says before the program begins: its listening socket, or why it cannot begin."""
        loop = asyncio.get_running_loop()
        told.setblocking(False)
        while True:
            try:
                data, rights, _, _ = told.recvmsg(4096, socket.CMSG_SPACE(16))
            except BlockingIOError:
                ready = loop.create_future()
                loop.add_reader(told, lambda: ready.done() or ready.set_result(None))
                await ready
                loop.remove_reader(told)
                continue
            if not data:
                break
            for _, _, packed in rights:
                numbers = array.array("i")
                numbers.frombytes(packed[:len(packed) - len(packed) % numbers.itemsize])
                for one in numbers:
                    self.server = await asyncio.start_server(self.carry, sock=socket.socket(fileno=one))
            if not self.begun:
                self.begun, data = True, data.removeprefix(b"+")
            self.failure += data
        told.close()

    async def carry(self, reader, writer):
        """A connection of the program, to the run's server and back."""
        link = asyncio.current_task()
        self.links.add(link)
        theirs = None
        try:
            if len(self.links) > CONNECTIONS_MAX:
                return
            back, theirs = await asyncio.open_connection(address_of(self.run["host"]), self.run["port"])
            await asyncio.gather(pump(reader, theirs), pump(back, writer))
        except OSError:
            pass
        finally:
            self.links.discard(link)
            for one in (writer, theirs):
                if one is not None:
                    one.close()

    async def look(self):
        while True:
            await asyncio.sleep(LOOK_AGENTS)
            if self.child:
                count, resident = family(self.child, 2 * AGENT_PROCESSES)
                if count > AGENT_PROCESSES:
                    self.stop("too many")
                if resident > self.agent.memory:
                    self.stop("too large")


@functools.lru_cache(maxsize=None)
def address_of(host):
    """As numbers: the loop would ask in another thread, and a process that forks has but one."""
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0]


async def pump(reader, writer):
    while piece := await reader.read(READ_BYTES):
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


class Replies:
    def __init__(self, descriptor):
        self.out = os.fdopen(descriptor, "w", buffering=1)

    def write(self, reply):
        self.out.write(json.dumps(reply) + "\n")


async def serve(agent, replies):
    lines = asyncio.StreamReader(limit=1 << 30)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    runs = {}

    async def go(request):
        run = runs[request["id"]] = Run(agent, request, replies)
        try:
            await run.go()
        except Exception as error:
            run.stop("cannot")
            replies.write({"id": request["id"], "how": "cannot", "status": None, "output": "", "bytes": 0,
                           "errors": trace(error)})
        finally:
            runs.pop(request["id"])
    kept = set()
    while line := await lines.readline():
        request = json.loads(line)
        if "kill" in request:
            if request["kill"] in runs:
                runs[request["kill"]].stop("killed")
            continue
        task = asyncio.ensure_future(go(request))
        kept.add(task)
        task.add_done_callback(kept.discard)


def main():
    replies = Replies(int(sys.argv[2]))
    try:
        agent = Agent(json.loads(sys.argv[1]))
        agent.check()
    except BaseException as error:
        replies.write(unready(error, isinstance(error, Refusal)))
        return 1
    replies.write({"ready": True})
    asyncio.run(serve(agent, replies))
    return 0


sys.exit(main())
