"""The order of .ci/run, in a repository of its own: what stands in for `./dev test` and ctest writes down that it was
called."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = "".join(f"{part}\t{tests}\ta claim\tdaily.test\n" for part, tests in
                [("one", "a.first"), ("one", "a.second"), ("two", "b.*"), ("three", "c.third")])
ONE, TWO, THREE = "^(a.first|a.second)$", "^(b.*)$", "^(c.third)$"


class CiRun(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-ci-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for file in (".ci/run", "tests/house/full_parts.py"):
            (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, self.folder / file)
        (self.folder / "tests/full_parts.tsv").write_text(TABLE)
        self.program("dev", 'echo "dev $*" >>calls; exit "${DEV_STATUS:-0}"')
        self.program(".venv/build/bin/ctest", 'echo "${@: -1}" >>calls; [[ ${@: -1} != "$FAILS" ]]')
        self.git("init", "-q")
        self.commit()

    def program(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/usr/bin/env bash\n{text}\n")
        path.chmod(0o755)

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.folder, check=True)

    def commit(self):
        self.git("commit", "-q", "--allow-empty", "-m", "a change")

    def run_ci(self, **environment):
        (self.folder / "calls").unlink(missing_ok=True)
        done = subprocess.run([self.folder / ".ci/run"], env={**os.environ, "FAILS": "", **environment}, text=True,
                              capture_output=True, check=False)
        return done.returncode, (self.folder / "calls").read_text().splitlines()

    def test_each_commit_begins_with_the_next_part(self):
        turns = []
        for _ in range(4):
            status, calls = self.run_ci()
            self.assertEqual((status, calls[0]), (0, "dev test"))
            turns.append(calls[1:])
            self.commit()
        self.assertEqual(turns, [[TWO, THREE, ONE], [THREE, ONE, TWO], [ONE, TWO, THREE], [TWO, THREE, ONE]])

    def test_no_part_begins_when_the_time_is_up(self):
        self.assertEqual(self.run_ci(CI_MINUTES="0"), (0, ["dev test"]))

    def test_a_failed_part_fails(self):
        self.assertEqual(self.run_ci(FAILS=THREE), (1, ["dev test", TWO, THREE]))

    def test_a_part_that_time_cuts_off_fails_nothing(self):
        self.program(".venv/build/bin/ctest", 'echo "${@: -1}" >>calls; exit 124')
        self.assertEqual(self.run_ci(), (0, ["dev test", TWO]))

    def test_daily_tests_that_fail_are_all_that_runs(self):
        self.assertEqual(self.run_ci(DEV_STATUS="3"), (3, ["dev test"]))


if __name__ == "__main__":
    unittest.main()
