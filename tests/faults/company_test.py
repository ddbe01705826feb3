#!/usr/bin/env python3
"""What Company reads of a run folder, on a folder written by hand."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from checks import bits  # noqa: E402
from company import Company  # noqa: E402

SEPARATORS = "\u0085\u2028\u2029\x1c\x1d\x1e\x0b\x0c\r"  # where splitlines() cuts and JSON lines do not


def line(row):
    return json.dumps(row, ensure_ascii=False) + "\n"


def save(run, updates, version):
    """A checkpoint after so many updates, with weights of this version."""
    folder = run / "ckpt" / f"step_{updates:06d}" / "policy"
    folder.mkdir(parents=True)
    (folder / "trainer_state.json").write_text(json.dumps({"version": version}), encoding="utf-8")


class ReadsRunFolder(unittest.TestCase):
    def test_ages_are_in_updates_whatever_the_optimiser_steps_of_one(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder)
            (run / "rollouts").mkdir()
            company = Company.__new__(Company)
            company.run = run
            for update, versions in ((1, (0, 0)), (3, (4, 8))):
                row = {"version_min": versions[0], "version_max": versions[1]}
                (run / "rollouts" / f"step_{update:06d}.jsonl").write_text(line(row), encoding="utf-8")
            save(run, 2, 8)
            save(run, 3, 12)
            self.assertEqual(company.ages(), (0, 1))
            row = {"version_min": 0, "version_max": 12}
            (run / "rollouts" / "step_000003.jsonl").write_text(line(row), encoding="utf-8")
            self.assertEqual(company.ages(), (-1, 2), "too old by one, and from the future")
            save(run, 4, 13)
            with self.assertRaises(ValueError):
                company.ages()

    def test_texts_with_line_separators_of_unicode_are_no_line_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder)
            (run / "rollouts").mkdir()
            rows = [{"version_min": 3, "version_max": 4, "response": f"a{SEPARATORS}b"},
                    {"version_min": 1, "version_max": 1, "response": ""}]
            rollouts = run / "rollouts" / "step_000005.jsonl"
            rollouts.write_text("".join(map(line, rows)), encoding="utf-8")
            metrics = {"step": 5, "policy/loss": 0.5, "note": SEPARATORS}
            (run / "metrics.jsonl").write_text(line({**metrics, "time": 0}), encoding="utf-8")
            log = f"2026-01-02T03:04:05.678+00:00 one{SEPARATORS}line\n"
            (run / "troupe.log").write_text(log, encoding="utf-8")
            company = Company.__new__(Company)  # of a run that is over: no process is started
            company.run = run
            save(run, 5, 5)
            self.assertEqual(company.ages(), (0, 3))
            found = bits(run)
            self.assertEqual(found["metrics 5"], metrics)
            self.assertEqual(found["step_000005.jsonl"], rows)
            self.assertEqual(len(company.log()), 1)


if __name__ == "__main__":
    unittest.main()
