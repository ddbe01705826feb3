// Heads that follow each other on one run.
#include "runtime/store/generation.hpp"

#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/run_folder.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;

// What another process leaves when it takes the run.
void taken_by_another(const fs::path& folder) {
  const fs::path file = folder / "generation.json";
  auto object = nlohmann::json::parse(*read_all(file));
  object["generation"] = object["generation"].get<std::uint64_t>() + 1;
  object["head"] = "another";
  ASSERT_TRUE(replace_file(file, object.dump()));
}

TEST(Generation, AProcessTakesOne) {
  const test::TempFolder folder;
  const auto first = Generation::take(folder / ".");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->number(), 1u);
  EXPECT_NE(first->run_id(), 0u);
  const auto again = Generation::take(folder / ".");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->number(), 1u);
  EXPECT_EQ(again->run_id(), first->run_id());
  EXPECT_TRUE(first->check());
}

TEST(Generation, TheNextHeadHasTheNextOfTheSameRun) {
  const test::TempFolder folder;
  const auto first = Generation::take(folder / ".");
  ASSERT_TRUE(first);
  taken_by_another(folder / ".");  // 2
  const auto check = first->check();
  ASSERT_FALSE(check);
  EXPECT_EQ(check.error().code, core::ErrorCode::kClosed);
  EXPECT_NE(check.error().message.find("generation 2, here 1"), std::string::npos);
  const auto third = Generation::take(folder / ".");
  ASSERT_TRUE(third);
  EXPECT_EQ(third->number(), 3u);
  EXPECT_EQ(third->run_id(), first->run_id());
}

TEST(Generation, AForgottenRunHasAnotherId) {
  const test::TempFolder folder;
  const auto first = Generation::take(folder / ".");
  ASSERT_TRUE(first);
  ASSERT_TRUE(forget_run(folder / "."));
  const auto other = Generation::take(folder / ".");
  ASSERT_TRUE(other);
  EXPECT_NE(other->run_id(), first->run_id());
  EXPECT_EQ(other->number(), 1u);
}

TEST(Generation, ADamagedFileIsAnotherRunAndNoSuccessor) {
  const test::TempFolder folder;
  const auto first = Generation::take(folder / ".");
  ASSERT_TRUE(first);
  ASSERT_TRUE(replace_file(folder / "generation.json", "{\"run_id\":"));
  EXPECT_TRUE(first->check());
  const auto second = Generation::take(folder / ".");
  ASSERT_TRUE(second);
  EXPECT_NE(second->run_id(), first->run_id());
}

TEST(Generation, ARunFolderThatWasTakenOverMustNotBeWritten) {
  const test::TempFolder folder;
  const auto run = RunFolder::open(folder / "run");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->generation().number(), 1u);
  EXPECT_TRUE(run->check_here());
  taken_by_another(folder / "run");
  const auto check = run->check_here();
  ASSERT_FALSE(check);
  EXPECT_EQ(check.error().code, core::ErrorCode::kClosed);
}

}  // namespace
}  // namespace troupe::store
