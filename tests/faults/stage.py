"""Everything that one run of the campaign needs around it: its hosts, the link between them, its disk,
the nodes on the other host, and the reward that is attached and detached meanwhile."""

import contextlib
import shutil
import signal
import subprocess
import threading
import time

from company import Company
from hosts import Disk, Hosts, Wire

COMMAND_S = 60


class Stage:
    """`folder` is the run's own, made here. `end` takes everything down, however far `start` came."""

    def __init__(self, folder, plan):
        self.plan, self.folder = plan, folder
        self.hosts = self.wire = self.disk = self.company = self.attacher = None
        self.far = {}  # the processes on the other host, by name
        self.disk_is_free = threading.Event()
        self.bad, self.notes = [], []

    def start(self, build, files):
        self.folder.mkdir(parents=True)
        plan, run = self.plan, self.folder / "run"
        words, before = plan.words() + plan.rank_words(), []
        if any(fault.kind == "disk" for fault in plan.faults):
            self.disk = Disk(self.folder / "disk")
            run = self.folder / "disk" / "run"
        else:
            self.disk_is_free.set()
        if plan.far():
            self.hosts = Hosts()
            gateway, port = self.hosts.ports()
            self.wire = Wire(self.hosts, gateway, port)
            words += ["--cluster.listen", f"{self.hosts.address}:{gateway}"]
            before = self.hosts.words_at("head", [])
        environment = {"TROUPE_FAULTS": plan.sick()} if plan.sick() else {}
        self.company = Company(build, files, run, words, before, environment, self.folder,
                               plan.method)
        for name in plan.far_nodes():
            self.start_far(name)
        if plan.attach:
            self.attacher = threading.Thread(target=self.attach_and_detach, daemon=True)
            self.attacher.start()

    def over(self):
        return self.company.over()

    def await_steps(self, steps, limit_s=240):
        """Whether the run got that far."""
        end = time.monotonic() + limit_s
        while self.company.steps() < steps and not self.over() and time.monotonic() < end:
            time.sleep(0.002)
        return not self.over() and self.company.steps() >= steps

    # --- the nodes on the other host

    def start_far(self, name):
        """Starts one, or the next one under its name."""
        words = ["node", "--join", self.wire.address, "--roles", "generator", "--name", name,
                 "--token-file", str(self.company.run / "join_token")]
        if self.plan.relays:
            words += ["--relay", self.hosts.relay(self.plan.far_nodes().index(name))]
        end = time.monotonic() + 20
        while not (self.company.run / "join_token").exists() and time.monotonic() < end:
            time.sleep(0.01)
        before = self.hosts.words_at("node", [])
        self.far[name] = self.company.program(words, self.folder / f"{name}.out", before)

    def end_far(self):
        """What is wrong with how they end when the run has ended: by itself with code 0, or by SIGTERM
        where one had lost the company before, and waits for it. Empty when all is well."""
        wrong = [self.end_of(name, process) for name, process in self.far.items()]
        return "; ".join(one for one in wrong if one)

    def end_of(self, name, process):
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = process.wait(15)
            return f"the other host's node {name} ended with status {status}" if status else ""
        if any(fault.more.get("who") == name and fault.more.get("for_s") == 0
               for fault in self.plan.faults):
            process.kill()  # frozen for good
        else:
            self.notes.append(f"the other host's node {name} waits for its company")
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
            return ""
        return f"the other host's node {name} does not end"

    # --- the attached reward

    def command(self, words):
        """Runs a command for the run from its host; whether it succeeded."""
        before = self.hosts.words_at("head", []) if self.hosts else []
        process = self.company.program(words, self.folder / "commands.out", before)
        try:
            return process.wait(COMMAND_S) == 0
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return False

    def try_until_over(self, words):
        while not self.over():
            if self.command(words):
                return True
            time.sleep(0.3)
        return False

    def attach_and_detach(self):
        attached, detached = self.plan.attach
        join = ["reward", "--join", str(self.company.run), "--name", "letters"]
        rule = ["--rule", "regex", "--pattern", "[a-z]", "--weight", "0.5", "--background"]
        if not self.await_steps(attached) or not self.try_until_over(["attach", *join, *rule]):
            self.notes.append("not attached")
        elif not self.await_steps(detached) or not self.try_until_over(["detach", *join]):
            self.notes.append("not detached")

    # --- the end

    def evidence(self):
        """Keeps what a failure is explained by: the answer of `troupe status`, and what is on a disk
        that goes."""
        if self.company is None:
            return
        if not self.over() and not self.command(["status", "--join", str(self.company.run)]):
            self.notes.append("no status")
        if self.disk:
            self.disk.free()
            shutil.copytree(self.company.run, self.folder / "run", dirs_exist_ok=True)

    def end(self):
        if self.company:
            self.company.end()
        if self.attacher:
            self.attacher.join(COMMAND_S)
        for process in self.far.values():
            process.wait(5)
        if self.wire:
            self.wire.end()
        if self.hosts:
            self.hosts.close()
        if self.disk:
            self.disk.end()
