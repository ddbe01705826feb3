// The list of a run's files, and the watch over them.
#include "runtime/store/kept_files.hpp"

#include "runtime/store/step_log.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;
namespace fs = std::filesystem;
using store::Care;
using store::KeptFiles;

Care care_of(std::string_view path) {
  const store::KeptRow* const row = store::row_of(path);
  EXPECT_NE(row, nullptr) << path;
  return row == nullptr ? Care::kFree : row->care;
}

TEST(KeptList, KnowsEachFileOfARun) {
  EXPECT_EQ(care_of("run.lock"), Care::kEnds);
  EXPECT_EQ(care_of("metrics.jsonl"), Care::kLines);
  EXPECT_EQ(care_of("experience/step_000012.log"), Care::kSaved);
  EXPECT_EQ(care_of("experience/step_1234567.log"), Care::kSaved);
  EXPECT_EQ(care_of("experience/contents.json"), Care::kMade);
  EXPECT_EQ(care_of("ckpt/step_000010"), Care::kSaved);
  EXPECT_EQ(care_of("ckpt/step_000010/policy/weights.safetensors"), Care::kSaved);
  EXPECT_EQ(care_of("tensorboard/events.out.tfevents.17.host.1.0"), Care::kAnew);
  EXPECT_EQ(care_of("nodes/generator-0.log.1"), Care::kFree);
  for (const char* other : {"metrics.jsonl.1", "rollouts/step_12.jsonl",
                            "rollouts/x/step_000001.jsonl", "notes.txt", "", "ckpt/best/x"})
    EXPECT_EQ(store::row_of(other), nullptr) << other;
}

class KeptFilesTest : public testing::Test {
 protected:
  // All that the next look finds, told. One may be left out when the one before took long: a file
  // that is lost each time shows that it was taken.
  std::vector<std::string> look() {
    const fs::path lost = put("eval/step_000099.jsonl", "text");
    fs::remove(lost);
    std::vector<std::string> told;
    for (bool looked = false; !looked;) {
      for (const auto& [row, loss] : kept_.look()) {
        looked = looked || loss.file == lost;
        if (loss.file != lost) told.push_back(store::told_of_loss(*row, loss));
      }
    }
    return told;
  }
  fs::path put(const std::string& name, const std::string& text, bool again = false) {
    EXPECT_TRUE(kept_.put(folder_ / name, text, again));
    return folder_ / name;
  }
  using Told = std::vector<std::string>;
  test::TempFolder folder_;
  KeptFiles kept_{folder_.path()};
};

TEST_F(KeptFilesTest, LossesAreToldOnceByUpdates) {
  std::vector<fs::path> files;
  for (const char* name : {"rollouts/step_000001.jsonl", "rollouts/step_000002.jsonl",
                           "rollouts/step_000003.jsonl", "rollouts/step_000005.jsonl"})
    files.push_back(put(name, "text"));
  EXPECT_EQ(look(), Told{});
  fs::remove(files[0]);
  fs::remove(files[1]);
  fs::resize_file(files[3], 2);
  EXPECT_EQ(look(), Told{"the rollouts of updates 1 to 2 and 5 were removed or cut while the run "
                         "went on"});
  EXPECT_EQ(look(), Told{});
  std::ofstream(files[2], std::ios::app) << "a user's own line";
  EXPECT_EQ(look(), Told{}) << "what has grown is no loss";
  put("rollouts/step_000001.jsonl", "again");
  fs::remove(files[0]);
  EXPECT_EQ(look().size(), 1u) << "written again, lost again";
  kept_.forget(files[2]);
  fs::remove(files[2]);
  EXPECT_EQ(look(), Told{}) << "it may go";
}

TEST_F(KeptFilesTest, WhatIsKnownIsMadeAgain) {
  const fs::path file = put("experience/contents.json", "{}", true);
  fs::remove_all(folder_ / "experience");
  EXPECT_EQ(look(), Told{"experience/contents.json was removed while the run went on; it is made "
                         "again"});
  EXPECT_EQ(test::read_file(file), "{}");
  EXPECT_EQ(look(), Told{});
  test::put_file(folder_ / "x", "other");
  fs::rename(folder_ / "x", file);
  EXPECT_EQ(look(), Told{"experience/contents.json was replaced while the run went on; it is made "
                         "again"});
  EXPECT_EQ(test::read_file(file), "{}");
}

TEST_F(KeptFilesTest, TheNextHeadsGenerationStays) {
  const fs::path file = put("generation.json", "ours", true);
  test::put_file(folder_ / "x", "the next head's");
  fs::rename(folder_ / "x", file);
  EXPECT_EQ(look(), Told{"generation.json was replaced while the run went on"});
  EXPECT_EQ(test::read_file(file), "the next head's");
  put("generation.json", "ours", true);
  fs::remove(file);
  EXPECT_EQ(look(), Told{"generation.json was removed while the run went on; it is made again"});
  EXPECT_EQ(test::read_file(file), "ours");
}

// Whatever was lost of a file of the experience log, nothing that comes behind the loss counts.
TEST_F(KeptFilesTest, ALogThatLostItsBeginningSaysSo) {
  const fs::path place = folder_ / "experience";
  const auto kept = std::make_shared<KeptFiles>(folder_.path());
  store::StepLog log(place, store::system_disk(), kept);
  const auto write = [&](std::uint64_t step, const std::string& text) {
    log.add(step, text);
    auto batch = log.take();
    EXPECT_TRUE(log.write(batch));
  };
  const auto texts = [&](std::uint64_t step) {
    return store::StepLog(place, store::system_disk()).read(step)->records;
  };
  write(1, "one");
  write(1, "two");
  fs::remove_all(place);
  write(1, "three");
  write(1, "four");
  EXPECT_EQ(texts(1), (Told{"", "three", "four"})) << "the gap, then what does not count";
  const auto found = kept->look();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(store::told_of_loss(*found.begin()->first, found.begin()->second),
            "the experience log of update 1 was removed or cut while the run went on; a checkpoint "
            "is made, so that nothing depends on it");
  write(2, "one");
  const auto record = fs::file_size(log.file_of(2));
  write(2, "two");
  fs::resize_file(log.file_of(2), record);
  write(2, "three");
  EXPECT_EQ(texts(2), (Told{"one", "", "three"}));
  ASSERT_TRUE(log.remove(2));
  write(2, "anew");
  EXPECT_EQ(texts(2), Told{"anew"}) << "removed by its owner";
}

}  // namespace
