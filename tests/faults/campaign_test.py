#!/usr/bin/env python3
"""The campaign's own parts, without the program: plans, the link, the table of results."""

import socket
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from checks import differences, told  # noqa: E402
from hosts import Hosts, Wire  # noqa: E402
from plan import FAR, HEAD, KINDS, LINK, OF_TRAINERS, TWICE, plan_of  # noqa: E402
from results import Results  # noqa: E402

SEEDS = range(1, 1201)


class Plans(unittest.TestCase):
    def test_a_seed_says_the_same_each_time(self):
        for seed in SEEDS[:50]:
            self.assertEqual(plan_of(seed), plan_of(seed))
        self.assertNotEqual(plan_of(1).faults, plan_of(2).faults)

    def test_faults_fit_their_configuration(self):
        for plan in map(plan_of, SEEDS):
            kinds = {fault.kind for fault in plan.faults}
            victims = [fault.more["who"] for fault in plan.faults if "who" in fault.more]
            self.assertEqual(len(set(victims)), len(victims), plan)
            if len(kinds) < len(plan.faults):
                self.assertLessEqual(kinds, TWICE)
            self.assertLessEqual(len(kinds & HEAD), 1, plan)
            if kinds & LINK:
                self.assertIn(plan.place, FAR)
            for fault in plan.faults:
                self.assertLessEqual(fault.at, plan.updates())
                who = fault.more.get("who")
                if who and who[-2:] == "-1" and not who.startswith("generator"):
                    self.assertEqual(plan.ranks, 2, plan)
                if who in ("far", "far-2", "critic", "attach"):
                    self.assertTrue({"far": plan.far(), "far-2": plan.relays,
                                     "critic": plan.critic, "attach": plan.attach}[who], plan)
            if plan.method != "ppo":
                self.assertLessEqual(kinds, set(OF_TRAINERS), plan)
                self.assertFalse(plan.far() or plan.critic or plan.attach, plan)

    def test_everything_comes_and_a_third_has_two_faults(self):
        plans = [plan_of(seed) for seed in SEEDS]
        self.assertEqual({fault.kind for plan in plans for fault in plan.faults}, set(KINDS))
        two = sum(len(plan.faults) == 2 for plan in plans)
        self.assertTrue(len(plans) // 4 < two < len(plans) * 5 // 12, two)
        self.assertEqual({plan.bound for plan in plans}, {0, 2})
        self.assertTrue(any(plan.critic and plan.attach for plan in plans))
        self.assertEqual({plan.ranks for plan in plans[:200]}, {1})
        self.assertEqual({plan.ranks for plan in plans[200:]}, {1, 2})
        victims = {fault.more.get("who") for plan in plans for fault in plan.faults}
        self.assertTrue({"policy-1", "critic-1", "far-2"} <= victims)
        self.assertEqual({plan.method for plan in plans[:300]}, {"ppo"})
        self.assertEqual({plan.method for plan in plans[300:]}, {"ppo", "sft", "dpo"})
        self.assertEqual({plan.relays for plan in plans[:300]}, {False})


class Echo:
    """A server that sends back what it gets."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.echo, args=(one,), daemon=True).start()

    @staticmethod
    def echo(one):
        with one:
            while data := one.recv(65536):
                one.sendall(data)


class Loopback(Hosts):
    def __init__(self):
        self.networks, self.address = {}, "127.0.0.1"


class Links(unittest.TestCase):
    def setUp(self):
        self.echo = Echo()
        hosts = Loopback()
        _, port = hosts.ports()
        self.wire = Wire(hosts, self.echo.port, port)
        self.node = socket.create_connection(("127.0.0.1", port), timeout=20)

    def tearDown(self):
        self.node.close()
        self.wire.end()
        self.echo.listener.close()

    def answer(self, count):
        data = b""
        while len(data) < count and (more := self.node.recv(65536)):
            data += more
        return data

    def test_it_carries_bytes_fast_and_slow(self):
        for rate in (0, 125000):
            self.wire.order(f"rate {rate}")
            sent = bytes(range(256)) * 100
            threading.Thread(target=self.node.sendall, args=(sent,)).start()
            self.assertEqual(self.answer(len(sent)), sent)

    def test_a_direction_that_is_cut_holds_back_and_loses_nothing(self):
        for direction in ("head", "node"):
            self.node.sendall(b"before")
            self.assertEqual(self.answer(6), b"before")
            self.wire.order(f"cut {direction}")
            self.node.settimeout(0.3)
            self.wire.order("rate 0")
            self.node.sendall(b"held")
            # An order may come a moment after the bytes; what was held is whole in any case.
            early = b""
            try:
                early = self.node.recv(4)
            except TimeoutError:
                pass
            self.node.settimeout(20)
            self.wire.order("heal")
            self.assertEqual(early + self.answer(4 - len(early)), b"held")

    def test_a_reset_ends_connections(self):
        self.node.sendall(b"x")
        self.assertEqual(self.answer(1), b"x")
        self.wire.order("reset")
        try:
            self.assertEqual(self.node.recv(1), b"")
        except ConnectionResetError:
            pass


class Tables(unittest.TestCase):
    def test_rows_come_back_and_the_last_of_a_seed_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "results.tsv")
            results = Results(file)
            self.assertEqual(results.next_seeds(2), [1, 2])
            results.add({"seed": 1, "outcome": "hung", "struck": "kill, disk", "notes": "a\tb\nc"})
            results.add({"seed": 3, "outcome": "ok", "lost": 0, "doubled": 0})
            again = Results(file)
            self.assertEqual(again.rows, results.rows)
            self.assertEqual(again.rows[0]["notes"], "a b c")
            self.assertEqual(again.next_seeds(2), [2, 4])
            self.assertEqual(again.failed(), [1])
            again.add({"seed": 1, "outcome": "ok", "struck": "kill, disk"})
            self.assertEqual(again.failed(), [])
            self.assertIn("# 3 runs of 2 seeds.", file.read_text())
            self.assertIn("# Struck: disk 1, kill 1.", file.read_text())

    def test_differences_name_the_metric(self):
        one = {"weights": "a", "metrics 3": {"x": 1, "y": 2}}
        other = {"weights": "a", "metrics 3": {"x": 1, "y": 3}, "step_000001.jsonl": []}
        self.assertEqual(differences(one, other), ["metrics 3 (y)", "step_000001.jsonl"])
        self.assertEqual(told(["a", "b", "c"], 2), "a, b and 1 more")


if __name__ == "__main__":
    unittest.main()
