// data_state.json: what is written comes back, old files are read, damage is named.
#include "actors/data/data_state.hpp"

#include "tests/unit/actors/data/book_support.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace troupe::actors::data {
namespace {

using namespace test;

class DataStateFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "data_state_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  core::Result<DataState> read(const std::string& text) {
    std::ofstream(folder_ / "data_state.json") << text;
    return read_state(folder_);
  }
  std::filesystem::path folder_;
};

}  // namespace

TEST_F(DataStateFile, OpenTicketsComeBack) {
  TicketBook book(4, false);
  const auto tickets = book.issue({3, 2}, one_reward());
  const auto again = *book.reissue(tickets[1], one_reward());
  book.issue({4, 1, 2}, one_reward());
  book.put_samples(tickets[0], samples(4), false).value();
  ASSERT_TRUE(write_state(state_of(book), folder_));
  const auto state = read_state(folder_);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->prompts.next(), 4u);
  const std::vector<SavedTicket> open = {
      {{3, 0, 0}, 0, 4, {}}, {again, 2, 4, {1}}, {{4, 0, 0}, 3, 2, {}}};
  EXPECT_EQ(state->open, open);
}

TEST_F(DataStateFile, PromptsInUseAboveAFreeOneComeBack) {
  DataState saved;
  saved.prompts = PromptPositions(5, {7, 8});
  saved.open = {{{2, 0, 0}, 7, 2, {8}}};
  ASSERT_TRUE(write_state(saved, folder_));
  const auto state = read_state(folder_);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->prompts.next(), 5u);
  EXPECT_EQ(state->prompts.ahead(), (std::set<std::uint64_t>{7, 8}));
  EXPECT_EQ(state->open, saved.open);
}

TEST_F(DataStateFile, RewardSetsComeBack) {
  DataState saved;
  saved.reward_sets = {change(4, 17, {{"rule", "reward/0", 1}, {"length", "reward/length", 0.1}})};
  saved.reward_sets[0].formula = "min(rule, length)";
  ASSERT_TRUE(write_state(saved, folder_));
  const auto state = read_state(folder_);
  ASSERT_TRUE(state) << state.error().message;
  ASSERT_EQ(state->reward_sets.size(), 1u);
  const SetRewards& set = state->reward_sets[0];
  EXPECT_EQ(set.set, 4u);
  EXPECT_EQ(set.from_update, 17u);
  EXPECT_EQ(set.members, saved.reward_sets[0].members);
  EXPECT_EQ(set.formula, "min(rule, length)");
}

TEST_F(DataStateFile, AnOldFileHasNoOpenTickets) {
  const auto state = read(R"({"next_prompt": 12, "dropped_samples": 1, "failed_groups": 0})");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->prompts.next(), 12u);
  EXPECT_TRUE(state->open.empty());
}

TEST_F(DataStateFile, DamageIsNamed) {
  const std::string ticket = R"({"update": 1, "slot": 0, "attempt": 0, "prompt": 5, "wanted": 2})";
  EXPECT_TRUE(read(R"({"next_prompt": 6, "open": [)" + ticket + "]}"));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "next_prompt"},
      {R"({"next_prompt": "6"})", "next_prompt"},
      {R"({"next_prompt": 6, "prompts_ahead": ["7"]})", "not a number"},
      {R"({"next_prompt": 6, "open": 1})", "no list"},
      {R"({"next_prompt": 6, "open": [1]})", "not an object"},
      {R"({"next_prompt": 6, "open": [{"update": 1}]})", "without slot"},
      {R"({"next_prompt": 6, "reward_sets": 1})", "no list"},
      {R"({"next_prompt": 6, "reward_sets": [{"set": 1, "from_update": 2}]})", "malformed"},
      {R"({"next_prompt": 6, "reward_sets": [{"set": 1, "from_update": 2, "rewards": [{}]}]})",
       "without name"},
      {R"({"next_prompt": 5, "open": [)" + ticket + "]}", "twice"},
      {R"({"next_prompt": 6, "open": [)" + ticket + "," + ticket + "]}", "twice"}};
  for (const auto& [text, words] : cases) {
    const auto state = read(text);
    ASSERT_FALSE(state) << text;
    EXPECT_EQ(state.error().code, core::ErrorCode::kData);
    EXPECT_NE(state.error().message.find(words), std::string::npos) << state.error().message;
    EXPECT_NE(state.error().message.find("data_state.json"), std::string::npos);
  }
}

}  // namespace troupe::actors::data
