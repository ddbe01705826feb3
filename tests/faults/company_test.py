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


class ReadsRunFolder(unittest.TestCase):
    def test_texts_with_line_separators_of_unicode_are_no_line_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder)
            (run / "rollouts").mkdir()
            rows = [{"version_min": 3, "response": f"a{SEPARATORS}b"},
                    {"version_min": 1, "response": ""}]
            rollouts = run / "rollouts" / "step_000005.jsonl"
            rollouts.write_text("".join(map(line, rows)), encoding="utf-8")
            metrics = {"step": 5, "policy/loss": 0.5, "note": SEPARATORS}
            (run / "metrics.jsonl").write_text(line({**metrics, "time": 0}), encoding="utf-8")
            log = f"2026-01-02T03:04:05.678+00:00 one{SEPARATORS}line\n"
            (run / "troupe.log").write_text(log, encoding="utf-8")
            company = Company.__new__(Company)  # of a run that is over: no process is started
            company.run = run
            self.assertEqual(company.ages(), 3)
            found = bits(run)
            self.assertEqual(found["metrics 5"], metrics)
            self.assertEqual(found["step_000005.jsonl"], rows)
            self.assertEqual(len(company.log()), 1)


if __name__ == "__main__":
    unittest.main()
