#!/usr/bin/env python3
"""How long `troupe report` takes for a run of 10,000 updates with 200 MB of rollouts, and how long a
headless browser takes to open its page. Prints one JSON line; fails above 3 s of opening.

    tests/perf/report_open.py [BUILD] [--updates N] [--megabytes N]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))
from browser import Browser  # noqa: E402
from long_run import write_long_run  # noqa: E402

OPEN_S_MAX = 3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build", type=Path)
    parser.add_argument("--updates", default=10_000, type=int)
    parser.add_argument("--megabytes", default=200, type=int)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = write_long_run(Path(folder) / "run", flags.updates, flags.megabytes)
        page = Path(folder) / "page.html"
        began = time.monotonic()
        subprocess.run([flags.build / "troupe", "report", run, "--out", page], check=True, stdout=subprocess.DEVNULL)
        written_s = time.monotonic() - began
        browser = Browser()
        try:
            opened_s = []
            for _ in range(5):
                began = time.monotonic()
                browser.open(page)
                opened_s.append(time.monotonic() - began)
                assert browser.run("return document.documentElement.dataset.ready") is not None
            script_ms = int(browser.run("return document.documentElement.dataset.ready"))
        finally:
            browser.close()
        print(json.dumps({"updates": flags.updates, "megabytes": flags.megabytes,
                          "page_bytes": page.stat().st_size, "report_s": round(written_s, 2),
                          "open_s": [round(one, 2) for one in opened_s], "ready_ms": script_ms}))
    return 0 if max(opened_s) <= OPEN_S_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
