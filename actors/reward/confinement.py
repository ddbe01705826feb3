# Runs programs confined: each with namespaces of its own, without network and without other processes, a
# file system with the interpreter's files to read and one small folder to write to, system calls that
# open sockets or look into processes refused, limits on memory, processes, output and time. Linux;
# without root by a user namespace. `Confinement` is what every confined program has; `Program` runs
# one in a fresh interpreter with an input, and judges nothing.
import ctypes
import errno
import json
import os
import platform
import resource
import select
import signal
import time

PROCESSES_MAX = 16
OUTPUT_MAX = 1 << 20
FOLDER_MAX = 64 << 20
FILES_MAX = 64
LOOK_EVERY = 0.05

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
APART = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH, MOUNT_SETATTR, AT_RECURSIVE = 2, 442, 0x8000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38

# Errors of a machine that is short of processes, memory or files.
PASSING = (errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EMFILE, errno.ENFILE)

# Numbers of system calls: clone, pivot_root, clone3, socket, those that are refused, and those of no
# use to a program that only computes (personality, modify_ldt, pidfd_open, memfd_create).
CALLS = {
    "x86_64": dict(audit=0xC000003E, clone=56, pivot_root=155, clone3=435, socket=41, refused=(
        101, 155, 165, 166, 175, 246, 248, 249, 250, 272, 298, 304, 308, 310, 311, 313, 321, 323, 425, 426, 427,
        428, 429, 430, 442), needless=(135, 154, 434, 319)),
    "aarch64": dict(audit=0xC00000B7, clone=220, pivot_root=41, clone3=435, socket=198, refused=(
        117, 41, 40, 39, 105, 104, 217, 218, 219, 97, 241, 265, 268, 270, 271, 273, 280, 282, 425, 426, 427, 428,
        429, 430, 442), needless=(92, 434, 279)),
}


class Refusal(Exception):
    """The rule cannot run here; its text says why."""


def checked(result, what):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def prctl(option, value, more=0):
    checked(LIBC.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(more), 0, 0), "prctl")


def mount(source, target, kind, flags, data=None):
    text = [None if word is None else word.encode() for word in (source, target, kind, data)]
    checked(LIBC.mount(text[0], text[1], text[2], ctypes.c_ulong(flags), text[3]), f"mount {target}")


def interpreter():
    """The path of this interpreter, without links among its folders; its own name says which environment it is of."""
    folder, name = os.path.split(sys.executable)
    return os.path.join(os.path.realpath(folder), name)


def readable_paths():
    """What the interpreter needs to read."""
    wanted = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/localtime",
              "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"]
    own = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.path.dirname(interpreter())),
           os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))]
    home = os.path.expanduser("~/.local/")  # which an isolated interpreter does not read
    own += [path for path in sys.path if path.endswith("-packages") and not path.startswith(home)]
    wanted += [os.path.realpath(path) for path in own]
    kept = []
    for path in wanted:
        inside = any(path == other or path.startswith(other + "/") for other in kept)
        if path not in ("", "/") and os.path.lexists(path) and not inside:
            kept.append(path)
    return kept


def bind(source, target):
    """What is at `source`, read-only, at `target`."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
        return
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    mount(source, target, None, MS_BIND | MS_REC)
    device = source.startswith("/dev/")
    kept = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)  # of mounts that we may not loosen
    mount(None, target, None,
          MS_REMOUNT | MS_BIND | (0 if device else MS_RDONLY | MS_NODEV) | MS_NOSUID | kept)
    if not device:
        read_only_below(target)


def read_only_below(target):
    """The mounts below a bound folder, too, where the kernel knows how (5.12)."""
    wanted = (ctypes.c_uint64 * 4)(MS_RDONLY | MS_NOSUID | MS_NODEV, 0, 0, 0)
    LIBC.syscall(ctypes.c_long(MOUNT_SETATTR), ctypes.c_long(-100), target.encode(), ctypes.c_long(AT_RECURSIVE),
                 wanted, ctypes.c_long(32))


def leave_root(user):
    """Becomes this user, or nobody where that cannot be."""
    os.setgroups([])
    for one in (user, 65534):
        try:
            os.setresgid(one, one, one)
            os.setresuid(one, one, one)
            return
        except OSError as error:
            if one == 65534:
                raise error


class Filter:
    """A seccomp filter: the refused calls fail with EPERM, and so do sockets, but for the families given."""

    def __init__(self, calls, families=(), computes=False):
        load, equal, above, test, give = 0x20, 0x15, 0x25, 0x45, 0x06
        refuse, allow = 0x00050000 | errno.EPERM, 0x7FFF0000
        lines = [(load, 0, 0, 4), (equal, 1, 0, calls["audit"]), (give, 0, 0, refuse), (load, 0, 0, 0)]
        lines += [(above, 0, 1, 0x3FFFFFFF), (give, 0, 0, refuse)]  # another numbering of the calls
        for number in calls["refused"] + (calls["needless"] if computes else ()):
            lines += [(equal, 0, 1, number), (give, 0, 0, refuse)]
        lines += [(equal, 0, len(families) + 3 if families else 1, calls["socket"])]
        lines += [(load, 0, 0, 16)] if families else []
        for i, family in enumerate(families):
            lines += [(equal, len(families) - i, 0, family)]  # to `allow`
        lines += [(give, 0, 0, refuse)]
        lines += [(give, 0, 0, allow)] if families else []
        lines += [(equal, 0, 1, calls["clone3"]), (give, 0, 0, 0x00050000 | errno.ENOSYS)]  # its flags are hidden
        lines += [(equal, 0, 3, calls["clone"]), (load, 0, 0, 16), (test, 0, 1, CLONE_NEWUSER), (give, 0, 0, refuse)]
        lines += [(give, 0, 0, allow)]

        class Line(ctypes.Structure):
            _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte),
                        ("value", ctypes.c_uint)]

        class Program(ctypes.Structure):
            _fields_ = [("count", ctypes.c_ushort), ("lines", ctypes.POINTER(Line))]

        self.lines = (Line * len(lines))(*[Line(*line) for line in lines])
        self.program = Program(len(lines), self.lines)

    def install(self):
        prctl(PR_SET_SECCOMP, 2, ctypes.addressof(self.program))


class Outcome:
    def __init__(self):
        self.output, self.how = b"", "ended"  # or late, too long, too large, too many, or cannot
        self.status = None


class Confinement:
    """Forks processes into namespaces of their own and takes from them what a program may not have."""

    def __init__(self, what, memory, families=(), computes=False):
        self.what, self.memory = what, memory
        self.calls = CALLS.get(platform.machine())
        if not self.calls or sys.platform != "linux":
            raise Refusal(f"{what} cannot confine programs on {sys.platform} {platform.machine()}")
        self.filter = Filter(self.calls, families, computes)
        self.root = "/proc"  # a folder that is there, and that the program shall not have
        self.paths = readable_paths()
        self.user = os.geteuid(), os.getegid()
        self.apart = APART if os.geteuid() == 0 else APART | CLONE_NEWUSER
        prctl(PR_SET_DUMPABLE, 0)  # no other process of this user may read the tests here

    def fork(self):
        return LIBC.syscall(ctypes.c_long(self.calls["clone"]), ctypes.c_ulong(self.apart | signal.SIGCHLD), None, None,
                            None, None)

    def enter(self, fill, streams, limits, folder_bytes=FOLDER_MAX, work="/tmp"):
        """In the child, which then has nothing but what the program may have. `fill` is called with the new
        root, in which /tmp can be written to."""
        for number in os.listdir("/proc/self/fd"):
            try:
                os.set_inheritable(int(number), False)
            except OSError:
                pass  # of the listing itself
        os.umask(0o022)  # the program is another user of what is made here
        os.setsid()  # else it could signal the group of this process, which it does not see
        uid, gid = self.user
        if self.apart & CLONE_NEWUSER:
            prctl(PR_SET_DUMPABLE, 1)  # else the files below belong to root
            for name, text in (("setgroups", "deny"), ("uid_map", f"65534 {uid} 1"), ("gid_map", f"65534 {gid} 1")):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
        mount(None, "/", None, MS_REC | MS_PRIVATE)
        mount("tmpfs", self.root, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
        folder = self.root + "/tmp"
        os.makedirs(folder, exist_ok=True)
        mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, f"size={folder_bytes},nr_inodes=4096,mode=1777")
        for path in self.paths:
            bind(path, self.root + path)
        fill(self.root)
        os.chdir(self.root)
        checked(LIBC.syscall(ctypes.c_long(self.calls["pivot_root"]), b".", b"."), "pivot_root")
        checked(LIBC.umount2(b".", MNT_DETACH), "umount")
        mount(None, "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
        os.chdir(work)
        given, out, err = streams
        os.dup2(given, 0)
        os.dup2(out, 1)
        os.dup2(os.open("/dev/null", os.O_WRONLY) if err is None else err, 2)
        for kind, value in limits:
            resource.setrlimit(kind, (value, value))
        if not self.apart & CLONE_NEWUSER:
            self.leave_root()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        self.filter.install()

    @staticmethod
    def leave_root():
        leave_root(2_000_000_000 + os.getppid() % 1_000_000)  # one whose processes are only these


class Program(Confinement):
    """Runs Python texts, each in a fresh interpreter, and takes what they print."""

    def __init__(self, memory):
        super().__init__("the rule code", memory, computes=True)
        self.python = interpreter()

    def check(self):
        outcome = self.run("print(6 * 7)", b"", 30)
        if outcome.how == "cannot" and outcome.code == errno.EPERM and not self.apart & CLONE_NEWUSER:
            self.apart |= CLONE_NEWUSER  # root, but not of the machine
            outcome = self.run("print(6 * 7)", b"", 30)
        if outcome.output.strip() == b"42":
            return
        why = outcome.output.decode(errors="replace").strip() if outcome.how == "cannot" else "the first program failed"
        raise Refusal(f"the rule code cannot confine programs here ({why}); allow user namespaces "
                      "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone), or run its reward where "
                      "they are allowed: `troupe attach reward --rule code` there")

    def run(self, program, given, seconds):
        """Runs a program with that input. The result of a failed preparation: how is `cannot`."""
        out, write = os.pipe()
        read, into = os.pipe()
        told, tell = os.pipe()
        child = self.fork()
        if child == 0:
            try:
                os.close(out)
                os.close(into)
                os.close(told)
                self.prepare(program, read, write, seconds)
                os.execve(self.python, [self.python, "-I", "/tmp/program.py"],
                          {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/tmp", "TMPDIR": "/tmp",
                           "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"})
            except BaseException as error:
                os.write(tell, json.dumps([getattr(error, "errno", 0) or 0, str(error)]).encode())
            os._exit(111)
        for descriptor in (read, write, tell):
            os.close(descriptor)
        if child < 0:
            for descriptor in (out, into, told):
                os.close(descriptor)
            return self.failed(ctypes.get_errno(), "no namespaces: " + os.strerror(ctypes.get_errno()))
        outcome = self.watch(child, out, into, given, seconds)
        failure = os.read(told, 4096)
        os.close(told)
        return self.failed(*json.loads(failure)) if failure else outcome

    @staticmethod
    def failed(code, why):
        outcome = Outcome()
        outcome.how, outcome.code, outcome.output = "cannot", code, why.encode()
        return outcome

    def prepare(self, program, read, write, seconds):
        def fill(root):
            with open(root + "/tmp/program.py", "w", encoding="utf-8", errors="surrogatepass") as file:
                file.write(program)
            os.chmod(root + "/tmp/program.py", 0o644)
        self.enter(fill, (read, write, None), (
            (resource.RLIMIT_AS, self.memory), (resource.RLIMIT_CPU, cpu_limit(seconds)),
            (resource.RLIMIT_FSIZE, FOLDER_MAX), (resource.RLIMIT_NOFILE, FILES_MAX),
            (resource.RLIMIT_NPROC, PROCESSES_MAX), (resource.RLIMIT_CORE, 0)))

    def watch(self, child, out, into, given, seconds):
        outcome, began = Outcome(), time.monotonic()
        for descriptor in (out, into):
            os.set_blocking(descriptor, False)
        writing, reading, looked = True, True, began
        while outcome.status is None:
            now = time.monotonic()
            if now - began > seconds:
                outcome.how = "late"
                break
            if now - looked > LOOK_EVERY:
                looked = now
                processes, resident = family(child)
                outcome.how = ("too many" if processes > 2 * PROCESSES_MAX else
                               "too large" if resident > 2 * self.memory else outcome.how)
                if outcome.how != "ended":
                    break
            readable, writable, _ = select.select([out] if reading else [], [into] if writing else [], [], 0.01)
            if writable:
                writing, given = self.feed(into, given)
            if readable:
                piece = os.read(out, 1 << 16)
                reading = bool(piece)
                outcome.output += piece
                if len(outcome.output) > OUTPUT_MAX:
                    outcome.how = "too long"
                    break
            if not readable or not reading:
                done, status, used = os.wait4(child, os.WNOHANG)
                if done:
                    outcome.status = status
                    # The kernel may count to its limit before the clock gets to ours.
                    if status != 0 and used.ru_utime + used.ru_stime > cpu_limit(seconds) - 0.1:
                        outcome.how = "late"
        if outcome.status is None:
            os.kill(child, signal.SIGKILL)
            outcome.status = os.waitpid(child, 0)[1]
        elif reading:
            outcome.output += rest_of(out, OUTPUT_MAX)
        if writing:
            os.close(into)
        os.close(out)
        return outcome

    @staticmethod
    def feed(into, given):
        """Whether there is more to write, and what."""
        try:
            given = given[os.write(into, given[:1 << 16]):] if given else given
            if given:
                return True, given
        except BlockingIOError:
            return True, given
        except OSError:
            pass
        os.close(into)
        return False, b""


def cpu_limit(seconds):
    """Processor seconds of one process: the kernel takes whole ones."""
    return max(1, int(seconds + 0.999))


def rest_of(out, most):
    """What a program that has ended left in its pipe."""
    rest = b""
    while len(rest) <= most:
        try:
            piece = os.read(out, 1 << 16)
        except BlockingIOError:
            break
        if not piece:
            break
        rest += piece
    return rest


def family(pid, most=4 * PROCESSES_MAX):
    """Number of a process and its descendants, and their resident bytes; of so many at most."""
    count, resident, todo = 0, 0, [pid]
    while todo and count < most:
        one = todo.pop()
        try:
            with open(f"/proc/{one}/statm", "rb") as file:
                resident += int(file.read().split()[1]) * resource.getpagesize()
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children", "rb") as file:
                    todo += [int(child) for child in file.read().split()]
        except (OSError, IndexError, ValueError):
            pass
        count += 1
    return count, resident


