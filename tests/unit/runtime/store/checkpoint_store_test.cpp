// Checkpoints: atomic, verified, pruned; and what a kill or damage at any point leaves.
#include "runtime/store/checkpoint_store.hpp"

#include "runtime/store/append_file.hpp"
#include "tests/unit/runtime/store/saved_checkpoint.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

namespace {

using namespace troupe;
namespace fs = std::filesystem;
using store::CheckpointStore;
using Stage = CheckpointStore::Stage;

core::Result<void> write_two(const fs::path& folder, const std::string& mark) {
  fs::create_directories(folder / "policy");
  test::put_file(folder / "policy" / "weights.bin", std::string(5000, 'w') + mark);
  test::put_file(folder / "data.json", "{\"mark\": \"" + mark + "\"}");
  return {};
}

core::Result<fs::path> save(CheckpointStore& checkpoints, std::uint64_t step) {
  const std::string mark = std::to_string(step);
  return test::save_checkpoint(checkpoints, step, "{\"cursor\": " + mark + "}",
                               [&](const fs::path& folder) { return write_two(folder, mark); });
}

class Checkpoints : public testing::Test {
 protected:
  Checkpoints() : folder_(temp_ / "ckpt") {}
  std::uint64_t newest() {
    auto found = CheckpointStore(folder_, 3).latest_valid();
    return found && found->newest ? found->newest->step : 0;
  }
  test::TempFolder temp_;
  fs::path folder_;
};

TEST_F(Checkpoints, SavesAndFindsTheNewest) {
  CheckpointStore checkpoints(folder_, 3);
  ASSERT_TRUE(save(checkpoints, 5));
  auto path = save(checkpoints, 10);
  ASSERT_TRUE(path);
  EXPECT_EQ(path->filename(), "step_000010");
  auto found = checkpoints.latest_valid();
  ASSERT_TRUE(found);
  ASSERT_TRUE(found->newest);
  EXPECT_TRUE(found->rejected.empty());
  EXPECT_EQ(found->newest->step, 10u);
  EXPECT_EQ(found->newest->state_json, R"({"cursor":10})");
  ASSERT_EQ(found->newest->files.size(), 2u);
  EXPECT_EQ(found->newest->files[0].path, "data.json");
  EXPECT_EQ(found->newest->files[1].path, "policy/weights.bin");
  EXPECT_EQ(found->newest->files[1].bytes, 5002u);
}

// What its writer has hashed is not read again: the manifest has the digest that the writer noted.
TEST_F(Checkpoints, TakeTheDigestsOfThoseWhoWrote) {
  CheckpointStore checkpoints(folder_, 3);
  const auto noted = [&](const store::CheckpointFile& file) {
    return test::save_checkpoint(checkpoints, 1, "{}",
                                 [&](const fs::path& folder) -> core::Result<void> {
                                   TROUPE_TRY(write_two(folder, "1"));
                                   TROUPE_TRY(store::note_written(folder / "policy", {&file, 1}));
                                   return store::note_written(folder / "policy", {&file, 1});
                                 });
  };
  ASSERT_TRUE(noted({"weights.bin", 5001, std::string(64, 'a')}));
  const auto found = store::verify_checkpoint(folder_ / "step_000001");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("weights.bin is damaged"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "step_000001" / "policy" / store::kWrittenFiles));
  const std::string manifest = test::read_file(folder_ / "step_000001" / "manifest.json");
  EXPECT_NE(manifest.find(std::string(64, 'a')), std::string::npos);
  EXPECT_EQ(manifest.find(store::kWrittenFiles), std::string::npos);
}

// A writer on a host that does not share the folder, or whose file did not come whole.
TEST_F(Checkpoints, WhatWasWrittenHasToBeThere) {
  CheckpointStore checkpoints(folder_, 3);
  ASSERT_TRUE(save(checkpoints, 1));
  for (const store::CheckpointFile& file : {store::CheckpointFile{"weights.bin", 5003, "x"},
                                            store::CheckpointFile{"more.bin", 1, "x"}}) {
    const auto saved = test::save_checkpoint(checkpoints, 2, "{}", [&](const fs::path& folder) {
      EXPECT_TRUE(write_two(folder, "2"));
      return store::note_written(folder / "policy", {&file, 1});
    });
    ASSERT_FALSE(saved);
    EXPECT_NE(saved.error().message.find(file.path), std::string::npos) << saved.error().message;
    EXPECT_NE(saved.error().message.find("--run.path"), std::string::npos);
    EXPECT_EQ(newest(), 1u);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  }
}

TEST_F(Checkpoints, KeepsTheNewestOnes) {
  CheckpointStore checkpoints(folder_, 2);
  for (std::uint64_t step : {1, 2, 3, 4})
    ASSERT_TRUE(save(checkpoints, step));
  EXPECT_EQ(*checkpoints.steps(), (std::vector<std::uint64_t>{3, 4}));
}

TEST_F(Checkpoints, TheBestOneStaysBesideTheNewest) {
  CheckpointStore checkpoints(folder_, 2);
  checkpoints.keep_also(1);
  for (const std::uint64_t step : {1u, 2u, 3u, 4u})
    ASSERT_TRUE(save(checkpoints, step));
  EXPECT_EQ(checkpoints.steps().value(), (std::vector<std::uint64_t>{1, 3, 4}));
  EXPECT_EQ(fs::read_symlink(folder_ / "best"), "step_000001");
  EXPECT_EQ(newest(), 4u) << "the best is no newest";
  checkpoints.keep_also(5);  // a better one comes: the old best goes
  ASSERT_TRUE(save(checkpoints, 5));
  EXPECT_EQ(checkpoints.steps().value(), (std::vector<std::uint64_t>{4, 5}));
  EXPECT_EQ(fs::read_symlink(folder_ / "best"), "step_000005");
}

TEST_F(Checkpoints, ThoseThatAreSetAsideAreNotGoneOnFrom) {
  CheckpointStore checkpoints(folder_, 5);
  for (const std::uint64_t step : {2, 4, 6, 8})
    ASSERT_TRUE(save(checkpoints, step));
  ASSERT_TRUE(checkpoints.set_aside_from(6));
  EXPECT_EQ(newest(), 4u);
  EXPECT_EQ(*checkpoints.steps(), (std::vector<std::uint64_t>{2, 4}));
  EXPECT_TRUE(fs::exists(folder_ / "diverged_000006/policy/weights.bin"));
  EXPECT_TRUE(fs::exists(folder_ / "diverged_000008/manifest.json"));
  ASSERT_TRUE(save(checkpoints, 6));
  ASSERT_TRUE(checkpoints.set_aside_from(6)) << "in the place of the one before";
  EXPECT_EQ(newest(), 4u);
}

TEST_F(Checkpoints, OfThoseThatAreSetAsideTheNewestAreKept) {
  CheckpointStore checkpoints(folder_, 2);
  for (const std::uint64_t step : {1, 2, 3, 4}) {
    ASSERT_TRUE(save(checkpoints, step));
    ASSERT_TRUE(checkpoints.set_aside_from(step));
  }
  EXPECT_FALSE(fs::exists(folder_ / "diverged_000002"));
  EXPECT_TRUE(fs::exists(folder_ / "diverged_000003/manifest.json"));
  EXPECT_TRUE(fs::exists(folder_ / "diverged_000004/manifest.json"));
}

TEST_F(Checkpoints, OldOnesGoOnlyAfterTheNewOneIsCommitted) {
  using Steps = std::vector<std::uint64_t>;
  std::map<Stage, Steps> seen;
  CheckpointStore checkpoints(
      folder_, 1, [&](Stage stage) { seen[stage] = *CheckpointStore(folder_, 1).steps(); });
  ASSERT_TRUE(save(checkpoints, 1));
  ASSERT_TRUE(save(checkpoints, 2));
  EXPECT_EQ(seen[Stage::kHashed], (Steps{1}));
  EXPECT_EQ(seen[Stage::kCommitted], (Steps{1, 2}));
  EXPECT_EQ(seen[Stage::kPruned], (Steps{2}));
}

TEST_F(Checkpoints, SameStepIsReplaced) {
  CheckpointStore checkpoints(folder_, 2);
  ASSERT_TRUE(save(checkpoints, 1));
  ASSERT_TRUE(test::save_checkpoint(checkpoints, 1, "{}", [](const fs::path& folder) {
    test::put_file(folder / "only", "x");
    return core::Result<void>{};
  }));
  auto found = checkpoints.latest_valid();
  ASSERT_TRUE(found->newest);
  EXPECT_EQ(found->newest->files.size(), 1u);
}

TEST_F(Checkpoints, FailedWriterLeavesNothing) {
  CheckpointStore checkpoints(folder_, 2);
  ASSERT_TRUE(save(checkpoints, 1));
  auto failed =
      test::save_checkpoint(checkpoints, 2, "{}", [](const fs::path& folder) -> core::Result<void> {
        test::put_file(folder / "half", "x");
        return core::fail(core::ErrorCode::kNumeric, "no");
      });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, core::ErrorCode::kNumeric);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  EXPECT_EQ(newest(), 1u);
}

TEST_F(Checkpoints, DamageFallsBackToTheOlderOneAndSaysSo) {
  const auto damage = [&](const char* what, const auto& act) {
    fs::remove_all(folder_);
    CheckpointStore checkpoints(folder_, 3);
    ASSERT_TRUE(save(checkpoints, 1));
    ASSERT_TRUE(save(checkpoints, 2));
    act(folder_ / "step_000002");
    auto found = checkpoints.latest_valid();
    ASSERT_TRUE(found) << what;
    ASSERT_TRUE(found->newest) << what;
    EXPECT_EQ(found->newest->step, 1u) << what;
    ASSERT_EQ(found->rejected.size(), 1u) << what;
    EXPECT_NE(found->rejected[0].find("step_000002"), std::string::npos) << what;
  };
  damage("flipped byte", [](const fs::path& folder) {
    std::string text = test::read_file(folder / "policy/weights.bin");
    text[2500] ^= 1;
    test::put_file(folder / "policy/weights.bin", text);
  });
  damage("truncated",
         [](const fs::path& folder) { fs::resize_file(folder / "policy/weights.bin", 4096); });
  damage("missing file", [](const fs::path& folder) { fs::remove(folder / "data.json"); });
  damage("missing manifest", [](const fs::path& folder) { fs::remove(folder / "manifest.json"); });
  damage("torn manifest", [](const fs::path& folder) {
    fs::resize_file(folder / "manifest.json", fs::file_size(folder / "manifest.json") / 2);
  });
  damage("another step's folder", [](const fs::path& folder) {
    fs::remove_all(folder);
    fs::copy(folder.parent_path() / "step_000001", folder, fs::copy_options::recursive);
  });
  damage("path outside", [](const fs::path& folder) {
    std::string text = test::read_file(folder / "manifest.json");
    text.replace(text.find("data.json"), 9, "../x.json");
    test::put_file(folder / "manifest.json", text);
  });
}

// Whatever bit is another: the manifest is passed over, or says what it said.
TEST_F(Checkpoints, EveryFlippedBitOfAManifestIsNoticed) {
  CheckpointStore checkpoints(folder_, 3);
  ASSERT_TRUE(test::save_checkpoint(checkpoints, 1,
                                    R"({"arithmetic": "avx2 1", "sha256": {"x": "y"}})",
                                    [](const fs::path& folder) { return write_two(folder, "1"); }));
  const fs::path file = folder_ / "step_000001" / "manifest.json";
  const std::string whole = test::read_file(file);
  const auto before = store::verify_checkpoint(file.parent_path());
  ASSERT_TRUE(before) << before.error().message;
  std::size_t passed_over = 0;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string text = whole;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    test::put_file(file, text);
    const auto after = store::verify_checkpoint(file.parent_path());
    passed_over += after ? 0 : 1;
    if (after) {
      EXPECT_EQ(after->state_json, before->state_json) << "bit " << bit;
    } else {
      EXPECT_EQ(after.error().code, core::ErrorCode::kData);
    }
  }
  EXPECT_GT(passed_over, 7 * whole.size()) << "but for blanks";
}

// A folder of another run, under the name of a later step.
TEST_F(Checkpoints, AForeignFolderIsNotNamedAsTheNewest) {
  CheckpointStore checkpoints(folder_, 3);
  ASSERT_TRUE(save(checkpoints, 5));
  fs::copy(folder_ / "step_000005", folder_ / "step_001000", fs::copy_options::recursive);
  EXPECT_EQ(*checkpoints.latest_listed(), 5u);
  EXPECT_EQ(newest(), 5u);
  fs::resize_file(folder_ / "step_000005" / "data.json", 1);
  EXPECT_EQ(*checkpoints.latest_listed(), std::nullopt) << "nor one whose files are cut";
}

TEST_F(Checkpoints, EveryTruncatedManifestIsRejected) {
  CheckpointStore checkpoints(folder_, 3);
  ASSERT_TRUE(save(checkpoints, 1));
  ASSERT_TRUE(save(checkpoints, 2));
  const std::string whole = test::read_file(folder_ / "step_000002/manifest.json");
  for (std::size_t cut = 0; cut + 2 < whole.size(); ++cut) {
    test::put_file(folder_ / "step_000002/manifest.json", whole.substr(0, cut));
    ASSERT_EQ(newest(), 1u) << cut;
  }
}

// Runs `body` in a child process, which is expected to die by SIGKILL.
template <class Body>
void run_killed(Body body) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST_F(Checkpoints, KillAtEveryStageLeavesALoadableState) {
  for (const bool replace : {false, true}) {
    for (const Stage stage :
         {Stage::kBegun, Stage::kWritten, Stage::kHashed, Stage::kCommitted, Stage::kPruned}) {
      fs::remove_all(folder_);
      CheckpointStore before(folder_, 1);
      ASSERT_TRUE(save(before, 1));
      const std::uint64_t step = replace ? 1 : 2;
      run_killed([&] {
        CheckpointStore checkpoints(folder_, 1, [stage](Stage at) {
          if (at == stage) ::raise(SIGKILL);
        });
        [[maybe_unused]] auto done = save(checkpoints, step);
      });
      const bool committed = stage == Stage::kCommitted || stage == Stage::kPruned;
      EXPECT_EQ(newest(), committed ? step : 1u) << static_cast<int>(stage);
      // The next run cleans up and saves on.
      CheckpointStore after(folder_, 1);
      ASSERT_TRUE(after.clean());
      ASSERT_TRUE(save(after, 3));
      EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
    }
  }
}

// Lets the traced `child` make `count` system calls and kills it before the next. False when it
// ended first.
bool kill_before_syscall(pid_t child, int count) {
  int status = 0;
  ::waitpid(child, &status, 0);  // stopped by its own SIGSTOP
  if (!WIFSTOPPED(status)) return false;
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  for (int stops = 0; stops <= 2 * count;) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) || WIFSIGNALED(status)) return false;
    if (WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80)) ++stops;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return true;
}

TEST_F(Checkpoints, KillBeforeEverySystemCallLeavesALoadableState) {
  int calls = 0;
  for (bool killed = true; killed; ++calls) {
    fs::remove_all(folder_);
    CheckpointStore before(folder_, 1);
    ASSERT_TRUE(save(before, 1));
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
      ::raise(SIGSTOP);
      CheckpointStore checkpoints(folder_, 1);
      const bool saved = save(checkpoints, 2).has_value();
      ::_exit(saved ? 0 : 1);
    }
    killed = kill_before_syscall(child, calls);
    if (!killed && calls == 0) GTEST_SKIP() << "ptrace is not allowed here";
    const std::uint64_t found = newest();
    ASSERT_TRUE(found == 1 || found == 2) << "killed before system call " << calls;
    if (!killed) {
      EXPECT_EQ(found, 2u);
    }
    ASSERT_LT(calls, 2000);
  }
  EXPECT_GT(calls, 30) << "the child was not followed";
}

TEST_F(Checkpoints, FullDiskKeepsTheLastOneAndIsAResourceError) {
  const fs::path disk = temp_ / "disk";
  fs::create_directories(disk);
  if (::geteuid() != 0 || ::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=4m") != 0) {
    GTEST_SKIP() << "needs root and a mount of a small tmpfs";
  }
  {
    CheckpointStore checkpoints(disk / "ckpt", 3);
    const auto save_bytes = [&](std::uint64_t step, std::size_t bytes) {
      return test::save_checkpoint(checkpoints, step, "{}",
                                   [&](const fs::path& folder) -> core::Result<void> {
                                     auto file = store::AppendFile::create(folder / "weights.bin");
                                     if (!file) return file.failure();
                                     TROUPE_TRY(file->append(std::string(bytes, 'w')));
                                     return file->close();
                                   });
    };
    EXPECT_TRUE(save_bytes(1, 3u << 20));
    auto failed = save_bytes(2, 3u << 20);
    EXPECT_FALSE(failed);
    if (!failed) {
      EXPECT_EQ(failed.error().code, core::ErrorCode::kNoRoom);
      EXPECT_EQ(core::exit_status(failed.error().code), 3);
      EXPECT_NE(failed.error().message.find("No space left"), std::string::npos);
    }
    auto found = checkpoints.latest_valid();
    EXPECT_TRUE(found && found->newest && found->newest->step == 1);
    EXPECT_TRUE(save_bytes(3, 100)) << "room again once the failed save is gone";
  }
  ::umount(disk.c_str());
}

}  // namespace
