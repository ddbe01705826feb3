// Disks and prints at their limits: a reward that prints 2 GiB, a file system that turns read-only
// under a run, a full folder of temporary files.
#include "company_support.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace troupe::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// A mount namespace of this test's own: what it mounts is gone with it. False without the right.
bool own_mounts() {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

bool shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace

TEST(RunFilesDay, ARewardThatPrintsTwoGigabytesFailsNoCall) {
  const TinyRun files;
  std::ofstream(files / "score.py")
      << "def reward_func(queries, prompts, labels):\n"
         "    for _ in range(170): print('x' * 1_000_000)\n"
         "    return [float(sum(map(ord, q)) % 3) for q in queries]\n";
  std::string config = text_of(files / "tiny.yaml");
  const std::string rule = "reward: {rule: regex, rule_pattern: \"[A-Za-z]{2}\"}";
  config.replace(config.find(rule), rule.size(),
                 "reward: {python: " + (files / "score.py").string() + "}");
  std::ofstream(files / "tiny.yaml") << config;
  const Ended run =
      troupe_ends(files.words("run") + Words{"--train.max_steps", "3"}, files / "run.out", 300);
  ASSERT_EQ(run.status, 0) << run.text;
  EXPECT_EQ(run.text.find("replaced"), std::string::npos) << run.text;
  expect_clean_ledger(files / "run");
  std::uintmax_t bytes = 0;
  for (const char* name : {"reward.log", "reward.log.1"}) {
    std::error_code none;
    const auto size = fs::file_size(files / "run/nodes" / name, none);
    bytes += none ? 0 : size;
  }
  EXPECT_LT(bytes, std::uintmax_t{33} << 20);
}

// The kernel turns an ext4 file system read-only when it finds it damaged, whoever writes there.
TEST(RunFilesDay, AFileSystemThatTurnsReadOnlyEndsTheRunWithItsCause) {
  const TinyRun files;
  fs::create_directory(files / "disk");
  const std::string disk = (files / "disk").string(), image = (files / "image").string();
  if (!own_mounts()) GTEST_SKIP() << "no right to mount: " << std::strerror(errno);
  std::ofstream(image) << "";
  fs::resize_file(image, 128u << 20);
  if (!shell("mkfs.ext4 -q " + image) ||
      !shell("mount -o loop,errors=remount-ro " + image + " " + disk)) {
    GTEST_SKIP() << "no ext4 on a loop device here";
  }
  // With a rate that does not fall the run may have any length.
  const Words flat = {"--actor.lr_warmup_ratio", "0", "--actor.min_lr_ratio", "1",
                      "--ckpt.save_steps",       "2", "--train.max_steps"};
  {
    Background run =
        start_troupe(files.words("disk/run") + flat + Words{"100000"}, files / "run.out");
    ASSERT_TRUE(within(60, [&] { return lines_in(files / "disk/run/metrics.jsonl") >= 4; }))
        << run.text();
    ASSERT_TRUE(shell("mount -o remount,abort " + disk)) << "ext4 takes it at any time";
    EXPECT_EQ(run.wait(120), 3) << run.text();
    EXPECT_TRUE(run.says("Read-only file system")) << run.text();
  }
  // Put in order, the run goes on from its last checkpoint, with the bits of a calm one.
  ASSERT_TRUE(shell("umount " + disk));
  shell("e2fsck -fy " + image);
  ASSERT_TRUE(shell("mount -o loop " + image + " " + disk));
  const int more = static_cast<int>(lines_in(files / "disk/run/metrics.jsonl")) + 3;
  for (const char* name : {"disk/run", "calm"}) {
    const Ended again = troupe_ends(files.words(name) + flat + Words{std::to_string(more)},
                                    files / "again.out", 120);
    EXPECT_EQ(again.status, 0) << again.text;
  }
  expect_same_bits(files / "calm", files / "disk/run", more);
  shell("umount " + disk);
}

TEST(RunFilesDay, AFullFolderOfTemporaryFilesHarmsNoRun) {
  const TinyRun files;
  fs::create_directory(files / "tmp");
  if (!own_mounts() || ::mount("none", (files / "tmp").c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "no right to mount: " << std::strerror(errno);
  const Ended calm = troupe_ends(files.words("calm"), files / "calm.out", 120);
  ASSERT_EQ(calm.status, 0) << calm.text;
  ::setenv("TMPDIR", (files / "tmp").c_str(), 1);
  const auto fill = [&] { std::ofstream(files / "tmp/full") << std::string(1 << 20, 'x'); };
  fill();
  const Ended full = troupe_ends(files.words("full"), files / "full.out", 120);
  fs::remove(files / "tmp/full");
  Background meanwhile = start_troupe(files.words("run"), files / "run.out");
  within(60, [&] { return lines_in(files / "run/metrics.jsonl") >= 2 || !meanwhile.running(); });
  fill();
  EXPECT_EQ(meanwhile.wait(120), 0) << meanwhile.text();
  ::unsetenv("TMPDIR");
  expect_same_bits(files / "calm", files / "run", 10);
  ASSERT_EQ(full.status, 0) << full.text;
  expect_same_bits(files / "calm", files / "full", 10);
}

}  // namespace troupe::test
