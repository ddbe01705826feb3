"""The hosts of a run: two network namespaces with a cable where that is allowed, else this host's
loopback; the link between head and node (proxy.py); and a small disk. Whatever is made here ends with
this process."""

import ctypes
import errno
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEW_NETWORK, NEW_MOUNTS = 0x40000000, 0x00020000
PRIVATE = 1 << 18 | 1 << 14  # MS_PRIVATE, MS_REC
DETACHED = 2                 # MNT_DETACH
libc = ctypes.CDLL(None, use_errno=True)


def may_make_disks():
    """Mounts of this process and its children are theirs alone from now on; whether they may mount."""
    if os.geteuid() != 0 or libc.unshare(NEW_MOUNTS) != 0:
        return False
    return libc.mount(b"none", b"/", None, PRIVATE, None) == 0


class Hosts:
    """Head and node on hosts of their own. `words_at` says how a command runs on one of them."""

    def __init__(self):
        self.networks = {}
        self.address = "127.0.0.1"
        if os.geteuid() == 0:
            self.join()

    def join(self):
        self.networks = {"head": fresh_network(), "node": fresh_network()}
        if None in self.networks.values() or not self.wire():
            self.close()
            return
        self.address = "10.213.78.1"

    def wire(self):
        far = f"/proc/{os.getpid()}/fd/{self.networks['node']}"
        return all(self.ip(at, words) for at, words in [
            ("head", "link set lo up"), ("node", "link set lo up"),
            ("head", f"link add cable type veth peer name cable netns {far}"),
            ("head", "addr add 10.213.78.1/24 dev cable"),
            ("node", "addr add 10.213.78.2/24 dev cable"),
            ("head", "link set cable up"), ("node", "link set cable up")])

    def ip(self, at, words):
        done = subprocess.run(self.words_at(at, ["ip", *words.split()]), capture_output=True,
                              timeout=20, check=False)
        return done.returncode == 0

    def words_at(self, at, words):
        network = self.networks.get(at)
        if network is None:
            return words
        return ["nsenter", f"--net=/proc/{os.getpid()}/fd/{network}", "--", *words]

    def ports(self):
        """Two free ports: of the gateway, and of the link to it."""
        if self.networks:
            return 4711, 4712
        with socket.create_server(("127.0.0.1", 0)) as one, \
                socket.create_server(("127.0.0.1", 0)) as other:
            return one.getsockname()[1], other.getsockname()[1]

    def relay(self, number):
        """An address of the node's host for what passes weights on there."""
        if self.networks:
            return f"10.213.78.2:{4713 + number}"
        with socket.create_server(("127.0.0.1", 0)) as one:
            return f"127.0.0.1:{one.getsockname()[1]}"

    def close(self):
        for network in self.networks.values():
            if network is not None:
                os.close(network)
        self.networks = {}


def fresh_network():
    """A descriptor of a new network namespace. A thread goes there, so that this one stays."""
    found = []

    def enter():
        if libc.unshare(NEW_NETWORK) == 0:
            found.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return found[0] if found else None


class Wire:
    """The link from the node's host to the gateway, as proxy.py makes it."""

    def __init__(self, hosts, gateway_port, port):
        words = [sys.executable, "-B", str(HERE / "proxy.py"), hosts.address, str(port),
                 hosts.address, str(gateway_port)]
        self.address = f"{hosts.address}:{port}"
        self.process = subprocess.Popen(hosts.words_at("head", words), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the link does not listen")

    def order(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Disk:
    """A disk of a few MiB that can be filled and freed."""

    def __init__(self, folder, mib=64):
        folder.mkdir(parents=True)
        self.folder = folder
        if libc.mount(b"tmpfs", bytes(folder), b"tmpfs", 0, f"size={mib}m".encode()) != 0:
            raise OSError(ctypes.get_errno(), "cannot mount a tmpfs")

    def fill(self):
        """To the last byte, also of what is written meanwhile."""
        with open(self.folder / "filler", "ab", buffering=0) as filler:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while filler.write(b"\0" * size):
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self):
        (self.folder / "filler").unlink(missing_ok=True)

    def end(self):
        libc.umount2(bytes(self.folder), DETACHED)
