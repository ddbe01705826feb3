#!/usr/bin/env python3
"""gpu-check on the emulated device: every stage by its name, and full lines whatever is wrong with the device or the
disk.

    gpu_check_test.py BUILD [EveryStage | Short]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()


class Checked(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = pathlib.Path(self.folder.name) / "out"

    def tearDown(self):
        self.folder.cleanup()

    def check(self, mode, *words):
        """Runs gpu-check with the device in that mode; its exit status, its lines without `started`, and all."""
        environment = {**os.environ, "TROUPE_CUDA_EMULATOR": mode, "TROUPE_CUDA_EMULATOR_MEMORY": "536870912",
                       "TROUPE_CUDA_LIBRARY": str(BUILD / "bin/libtroupe_cuda_emulated.so")}
        self.done = subprocess.run(
            [sys.executable, "-B", str(ROOT / "apps/package/gpu_check/main.py"), "--build", str(BUILD), "--small",
             "--out", str(self.out), *words], env=environment, text=True, capture_output=True, check=False,
            timeout=1500)
        return self.done.returncode, [line for line in self.lines() if line["state"] != "started"]

    def lines(self):
        path = self.out / "lines.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

    def states(self, lines):
        return {f"{line['stage']} {line['item']}": line["state"] for line in lines}


class EveryStage(Checked):
    def test_every_stage_by_its_name(self):
        status, lines = self.check("guard", "--stages", "0,1,2,5,3,6,4,7,8,9", "--minutes", "60")
        states = self.states(lines)
        bad = {item: state for item, state in states.items() if state not in ("passed", "absent")}
        self.assertEqual((status, bad), (0, {}), self.done.stderr)
        self.assertEqual({line["stage"] for line in lines}, set(range(10)))
        for item in ("0 version", "1 gpus", "2 test_kernels_cuda.CudaRows", "3 test_integration.Gpu",
                     "4 test_kernels_cuda.CudaDevice", "5 kernels.tiny.bf16-compute.2x20", "5 gemm.bf16-compute.64x64",
                     "6 decode.tiny.bf16.1", "6 train.tiny.bf16.sft", "9 grpo.bf16", "9 figures.grpo.bf16"):
            self.assertEqual(states.get(item), "passed", item)
        figures = {line["item"]: line.get("figures") for line in lines}
        self.assertGreater(figures["6 decode.tiny.bf16.1"[2:]][0]["decode_tokens_per_s"], 0)
        self.assertEqual(figures["figures.grpo.bf16"][0]["kl_max"], 0)
        begun = [line for line in self.lines() if line["state"] == "started"]
        self.assertEqual(len(begun), sum(line["state"] != "absent" for line in lines))
        self.assertTrue((self.out / "logs.tar.gz").is_file())


class Short(Checked):
    def test_facts_and_measurements_by_their_name(self):
        status, lines = self.check("plain", "--stages", "0,1,5", "--minutes", "60")
        states = self.states(lines)
        self.assertEqual(status, 0, self.done.stderr)
        for item in ("0 version", "1 gpus", "5 kernels.tiny.bf16-compute.2x20", "5 gemm.bf16-compute.64x64"):
            self.assertEqual(states.get(item), "passed", item)
        self.assertTrue((self.out / "logs.tar.gz").is_file())

    def test_without_a_driver_each_item_says_so(self):
        status, lines = self.check("none", "--stages", "0,1,4")
        states = self.states(lines)
        self.assertEqual(status, 1)
        self.assertEqual(states["0 version"], "passed")
        self.assertEqual(states["1 gpus"], "failed")
        self.assertEqual(states["4 test_kernels_cuda.CudaDevice"], "skipped")
        why = {line["item"]: line.get("why", "") for line in lines}
        self.assertIn("no CUDA-capable device", why["gpus"])

    def test_a_broken_kernel_costs_its_suite(self):
        _, lines = self.check("guard,skip:2", "--stages", "2,4")
        states = self.states(lines)
        self.assertIn("failed", states.values())
        self.assertIn("2 test_kernels_cuda.CudaRows", states)
        self.assertIn("4 test_kernels_cuda.CudaDevice", states)

    def test_a_kernel_that_hangs_costs_its_time(self):
        status, lines = self.check("guard,hang:1", "--stages", "4,0", "--minutes", "0.2")
        states = self.states(lines)
        self.assertEqual(status, 1)
        self.assertEqual(states["4 test_kernels_cuda.CudaDevice"], "timeout")
        self.assertEqual(len({line["stage"] for line in lines}), 2, "what has no time left is said, too")

    def test_a_fault_that_stays_ends_one_process(self):
        _, lines = self.check("guard,fail:3", "--stages", "2,4")
        states = self.states(lines)
        self.assertEqual(states["2 test_kernels_cuda.CudaRows"], "failed")
        self.assertIn("4 test_kernels_cuda.CudaDevice", states)
        log = (self.out / "logs" / "2_test_kernels_cuda.CudaRows.log").read_text()
        self.assertIn("an illegal memory access was encountered", log)

    def test_a_full_disk_loses_lines_and_no_item(self):
        self.out.mkdir()
        (self.out / "lines.jsonl").symlink_to("/dev/full")
        status, _ = self.check("guard", "--stages", "0", "--resume")
        self.assertEqual(status, 0, self.done.stderr)
        self.assertIn("not written: [Errno 28] No space left on device", self.done.stderr)
        self.assertIn("0 version: passed", self.done.stderr)

    def test_what_has_passed_is_not_run_again(self):
        self.check("guard", "--stages", "0")
        before = len(self.lines())
        status, _ = self.check("guard", "--stages", "0", "--resume")
        again = self.lines()[before:]
        self.assertEqual(status, 0)
        self.assertTrue(all(line["state"] == "absent" for line in again), again)

    def test_the_plan_fits_into_the_minutes(self):
        self.check("none", "--minutes", "0.7")
        self.assertIn("stage 0, facts", self.done.stderr)
        self.assertNotIn("stage 2", self.done.stderr)

    def test_wrong_words_are_refused(self):
        for words, why in ((("--stages", "x"), "expected numbers"), (("--stages", "12"), "there is no stage 12")):
            status, _ = self.check("guard", *words)
            self.assertEqual(status, 2)
            self.assertIn(why, self.done.stderr)


if __name__ == "__main__":
    unittest.main()
