// What a run leaves behind where process 1 waits for nobody, as in a container whose first process
// is a plain program.
#include "company_support.hpp"

namespace troupe::test {
namespace {

// Process 1 of its namespace: starts a run, kills three node processes, waits for the run alone,
// and counts the processes that have ended and that nobody has waited for.
constexpr const char* kFirstProcess = R"(
import os, signal, subprocess, sys, time
metrics, words = sys.argv[1], sys.argv[2:]
def nodes():
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            line = open(f'/proc/{pid}/cmdline').read().split('\0')
        except OSError:
            continue
        if '--local' in line and '--name' in line:
            found[line[line.index('--name') + 1]] = int(pid)
    return found
def updates():
    try:
        return open(metrics).read().count('\n')
    except OSError:
        return 0
run = subprocess.Popen(words)
killed, due = set(), [('reward', 1), ('policy', 2), ('reward', 4)]
while run.poll() is None:
    if due and updates() >= due[0][1]:
        pid = nodes().get(due[0][0])
        if pid and pid not in killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
            due.pop(0)
    time.sleep(0.01)
left = []
for pid in filter(str.isdigit, os.listdir('/proc')):
    try:
        name, rest = open(f'/proc/{pid}/stat').read().split('(', 1)[1].rsplit(')', 1)
    except OSError:
        continue
    if rest.split()[0] == 'Z':
        left.append(name)
print('status', run.returncode, 'killed', len(killed), 'zombies', len(left), sorted(left))
)";

}  // namespace

TEST(CompanyReaping, NoProcessIsLeftWhereTheFirstOneWaitsForNobody) {
  const TinyRun files;
  std::ofstream(files / "first.py") << kFirstProcess;
  const std::vector<std::string> apart = {"unshare", "--fork", "--pid", "--mount-proc"};
  Background allowed(apart + std::vector<std::string>{"true"}, files / "allowed.out");
  if (allowed.wait(10) != 0) GTEST_SKIP() << "no namespace of processes here: " << allowed.text();
  const std::string python =
      std::string(std::getenv("TROUPE_SOURCE_DIR")) + "/.venv/oracle/bin/python";
  Background first(
      apart +
          std::vector<std::string>{python, (files / "first.py").string(),
                                   (files / "run/metrics.jsonl").string(), troupe_program()} +
          files.words("run"),
      files / "first.out");
  ASSERT_EQ(first.wait(100), 0) << first.text();
  EXPECT_TRUE(first.says("status 0 killed 3 zombies 0 []")) << first.text();
  expect_clean_ledger(files / "run");
}

}  // namespace troupe::test
