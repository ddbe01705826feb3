"""Tests of the matrix's parts."""

import itertools
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import cases as table  # noqa: E402
from leavings import hashes, listed_metrics, unlisted_metrics  # noqa: E402
from results import OK, Results  # noqa: E402


def factors(case):
    return case.method, case.kind, case.legs[0].ranks, case.legs[0].stage


class Cases(unittest.TestCase):
    def test_the_pairs_hold_every_pair(self):
        chosen = [factors(case) for case in table.pairs()]
        for a, b in itertools.combinations(range(4), 2):
            values = (table.METHODS, table.KINDS, table.RANKS, table.STAGES)
            self.assertEqual({(case[a], case[b]) for case in chosen},
                             set(itertools.product(values[a], values[b])))

    def test_the_matrix_holds_all_once(self):
        cases = table.matrix()
        self.assertEqual(len(cases), len(set(cases)))
        self.assertEqual(len({case.name for case in cases}), len(cases))
        straight = {factors(case) for case in cases if len(case.legs) == 1 and case.device == "cpu"}
        self.assertEqual(straight, set(itertools.product(table.METHODS, table.KINDS, table.RANKS,
                                                         table.STAGES)))
        self.assertEqual(len(cases) - len(straight), len(table.journeys()) + len(table.offloads()))

    def test_one_rank_is_one_process(self):
        case = table.Case("ppo", "lora", (table.Leg(4, 3),))
        self.assertNotIn("--actor.ranks", table.words_of(case.alone, case.alone.legs[0], "run"))
        words = table.words_of(case, case.legs[0], "run")
        for key, value in (("actor.ranks", "4"), ("critic.ranks", "4"), ("train.zero_stage", "3")):
            self.assertEqual(words[words.index(f"--{key}") + 1], value)

    def test_each_rank_has_a_device(self):
        case = table.Case("sft", "plain", (table.Leg(2, 0, "cuda"),))
        words = table.words_of(case, case.legs[0], "run")
        self.assertEqual(words[words.index("--actor.device") + 1], "cuda:0,cuda:1")
        self.assertEqual(case.alone.device, "cpu")


class Leavings(unittest.TestCase):
    def run_of(self, folder, loss, step_s, attempt, shard):
        run = Path(folder)
        (run / "rollouts").mkdir()
        (run / "rollouts/step_000001.jsonl").write_text(json.dumps({"tokens": [1], "attempt": attempt}) + "\n")
        (run / "metrics.jsonl").write_text(
            json.dumps({"step": 1, "policy/loss": loss, "time/step": step_s, "async/queue": attempt}) + "\n")
        for part, text in (("model", "weights"), ("policy", shard)):
            (run / "ckpt/step_000001" / part).mkdir(parents=True)
            (run / "ckpt/step_000001" / part / "config.txt").write_text(text)
        return hashes(run)

    def test_times_and_the_cut_of_a_state_are_left_out(self):
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            self.assertEqual(self.run_of(a, 0.5, 1.0, 0, "whole"), self.run_of(b, 0.5, 2.0, 1, "shard"))

    def test_a_last_digit_counts(self):
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            one, other = self.run_of(a, 0.5, 1.0, 0, ""), self.run_of(b, 0.5000000000000001, 1.0, 0, "")
            self.assertEqual([part for part in one if one[part] != other[part]], ["metrics"])

    def test_a_metric_that_is_not_in_the_table_is_found(self):
        self.assertIn("policy/loss", listed_metrics())
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "metrics.jsonl").write_text('{"step": 1, "policy/loss": 1, "policy/new": 2, "time/step": 3}\n')
            self.assertEqual(unlisted_metrics(Path(folder)), ["policy/new"])


class Table(unittest.TestCase):
    def test_good_cases_of_a_program_are_known_again(self):
        first, second = table.pairs()[:2]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "results.tsv")
            results = Results(path, {"cpu": "abc"})
            results.add(first, {"model": "1"}, OK, 1.0)
            results.add(second, {}, "other model than one process", 2.0)
            again = Results(path, {"cpu": "abc"})
            self.assertEqual(again.find(first)["model"], "1")
            self.assertIsNone(again.find(second))
            self.assertIsNone(Results(path, {"cpu": "def"}).find(first))
            again.add(second, {"model": "2"}, OK, 2.5)
            self.assertEqual(Results(path, {"cpu": "abc"}).find(second)["model"], "2")
            self.assertIn("2 cases, 0 failed, 4 s", path.read_text())


if __name__ == "__main__":
    unittest.main()
