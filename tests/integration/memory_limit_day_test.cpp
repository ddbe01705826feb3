// A control group without memory: the kernel kills the process in it, and the run goes on with the
// bits of a calm one. Needs control groups of memory that this user may make.
#include "company_support.hpp"

namespace troupe::test {
namespace {

// A group whose processes get no more memory than they have; removed at the end.
class NoMemory {
 public:
  NoMemory() {
    const std::string name = "troupe-test-" + std::to_string(::getpid());
    for (const auto& [root, limit] : {std::pair{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                                      {"/sys/fs/cgroup", "memory.max"}}) {
      folder_ = std::filesystem::path(root) / name;
      std::error_code error;
      if (!std::filesystem::exists(std::filesystem::path(root) / "cgroup.procs", error)) continue;
      if (!std::filesystem::create_directory(folder_, error)) continue;
      std::ofstream(folder_ / limit) << 65536 << std::flush;
      there_ = text_of(folder_ / limit).starts_with("65536");
      if (there_) return;
      std::filesystem::remove(folder_, error);
    }
  }
  ~NoMemory() {
    std::error_code error;
    if (there_) within(10, [&] { return std::filesystem::remove(folder_, error); });
  }
  bool there() const { return there_; }
  bool take(pid_t pid) const {
    std::ofstream out(folder_ / "cgroup.procs");
    out << pid << std::flush;
    return static_cast<bool>(out);
  }

 private:
  std::filesystem::path folder_;
  bool there_ = false;
};

std::size_t mentions_in(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

}  // namespace

TEST(MemoryLimit, ARunGoesOnWhenTheKernelKillsItsPolicy) {
  NoMemory group;
  if (!group.there()) GTEST_SKIP() << "no control groups of memory here, or not for this user";
  const TinyRun files;
  ASSERT_EQ(troupe_ends(files.words("calm"), files / "calm.out", CompanyRun::kLimit_s).status, 0);
  CompanyRun run(files, "killed");
  const pid_t pid = run.node_after("policy", 2);
  ASSERT_GT(pid, 0) << run.output();
  ASSERT_TRUE(group.take(pid));
  EXPECT_EQ(run.wait(), 0) << run.output() << run.log();
  EXPECT_NE(run.log().find("node/policy is lost"), std::string::npos) << run.log();
  EXPECT_NE(run.log().find("for want of memory"), std::string::npos) << run.log();
  expect_same_bits(run.folder(), files / "calm", 10);
  expect_clean_ledger(run.folder());
}

TEST(MemoryLimit, APolicyThatTheKernelKillsAgainAndAgainEndsTheRunForWantOfMemory) {
  const NoMemory group;
  if (!group.there()) GTEST_SKIP() << "no control groups of memory here, or not for this user";
  const TinyRun files;
  CompanyRun run(files, "run", {"--train.max_steps", "1000000"});
  std::set<pid_t> killed;
  const bool ended = within(120, [&] {
    const auto now = run.nodes();
    const auto policy = now.find("policy");
    const std::size_t starts =
        mentions_in(text_of(run.folder() / "nodes" / "policy.log"), "started policy/0");
    if (run.wait(0)) return true;
    if (starts <= killed.size() || policy == now.end() || killed.contains(policy->second))
      return false;
    ::kill(policy->second, SIGSTOP);  // until the head has seen where it is
    const bool taken = group.take(policy->second);
    const auto silences = [&run] { return mentions_in(run.log(), "node/policy has been silent"); };
    within(10, [&, before = silences()] { return silences() > before; });
    ::kill(policy->second, SIGCONT);
    if (taken) killed.insert(policy->second);
    return false;
  });
  EXPECT_TRUE(ended) << run.output();
  EXPECT_EQ(run.wait(0), 3) << run.output() << run.log();
  EXPECT_GE(killed.size(), 8u);
  for (const char* part :
       {"policy/0 was lost 8 times within 60 s", "node/policy is lost", "signal 9",
        "the kernel killed it for want of memory (oom_kill in /sys/fs/cgroup/",
        "train.micro_tokens_max", "rollout.kv_cache_gb"})
    EXPECT_NE(run.output().find(part), std::string::npos) << part << "\n" << run.output();
}

}  // namespace troupe::test
