"""Long calm under load: both cores busy with something else, and nobody may be called silent, frozen or
lost."""

import json
import os
import subprocess
import sys
import time

from company import Company

LIMIT_S = 60
WORDS = ["--train.max_steps", "100000", "--rollout.max_new_tokens", "16", "--ckpt.save_steps", "50",
         "--rollout.generators", "2", "--train.staleness_max", "1"]


def calm_run(build, files, run, end):
    """One run until that time; whether it ended well, and the false alarms in its log."""
    company = Company(build, files, run, WORDS)
    try:
        status = company.wait(max(1, end - time.monotonic()))
        good = status is None
        if good:
            company.process.terminate()
            good = company.wait(LIMIT_S) == 130
    finally:
        company.end()
    alarms = [line for _, line in company.log()
              if any(word in line for word in ("silent", "frozen", "is lost"))]
    print(json.dumps({"calm_run": company.steps(), "notes": alarms}), flush=True)
    return good, alarms


def calm(build, files, folder, seconds):
    """Exit status."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
               for _ in range(2 * os.cpu_count())]
    runs, failed, found = 0, 0, []
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            good, alarms = calm_run(build, files, folder / f"calm{runs}", end)
            runs, failed, found = runs + 1, failed + (not good), found + alarms
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    summary = {"calm_s": seconds, "runs": runs, "failed": failed, "false_alarms": len(found)}
    print(json.dumps({"summary": summary}), flush=True)
    return 1 if found or failed else 0
