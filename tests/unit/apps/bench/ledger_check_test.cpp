// What RunFiles writes for groups of two reward sets, and what the check finds when a record or a
// line is taken away, doubled or changed.
#include "apps/bench/ledger_check.hpp"

#include "actors/data/sample_scores.hpp"
#include "apps/session/run_files.hpp"
#include "runtime/store/ledger.hpp"
#include "tests/unit/actors/data/book_support.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>

#include <fstream>
#include <sstream>

namespace troupe::bench {
namespace {

using namespace actors;
using namespace actors::data;
using namespace actors::test;
using nlohmann::json;

// Two updates of two groups: set 0 scored the first, set 1 the second; one slot was issued again.
class WrittenRun : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "ledger_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    auto run = store::RunFolder::open(folder_);
    ASSERT_TRUE(run) << run.error().message;
    auto files = session::RunFiles::open(*run);
    ASSERT_TRUE(files) << files.error().message;
    TicketBook book(2, false);
    const auto old = make_set(0, {{"right", "r", 1}});
    const auto fresh = make_set(1, {{"right", "r", 1}, {"short", "s", 0.5}}, 1);
    auto tickets = book.issue({0, 2}, old);
    tickets[1] = *book.reissue(tickets[1], old);
    const auto later = book.issue({1, 2}, fresh);
    tickets.insert(tickets.end(), later.begin(), later.end());
    for (const auto& ticket : tickets) {
      book.put_samples(ticket, samples(2, {ticket.update, ticket.update + 1}), false).value();
      book.put_scores({ticket, 0, {1.0, 0.0}, {}});
      book.put_scores({ticket, 1, {4.0, 2.0}, {}});
    }
    for (const std::uint64_t update : {0u, 1u})
      commit(**files, book, update);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static void commit(session::RunFiles& files, const TicketBook& book, std::uint64_t update) {
    std::vector<Prompt> prompts;
    std::vector<CommittedGroup> groups;
    const auto open = book.groups_of(update);
    prompts.reserve(open.size());
    for (const BookGroup* group : open) {
      prompts.push_back({group->prompt, {1}, "p", "l", "{}"});
      groups.push_back({group, &prompts.back()});
    }
    ASSERT_TRUE(files.commit(update, update + 1, groups));
  }

  LedgerCheck check() const {
    const auto checked = check_ledger(folder_);
    EXPECT_TRUE(checked) << checked.error().message;
    return checked ? *checked : LedgerCheck{};
  }
  std::vector<json> rollouts(int step) const {
    std::vector<json> lines;
    std::ifstream in(rollouts_file(step));
    for (std::string line; std::getline(in, line);)
      lines.push_back(json::parse(line));
    return lines;
  }
  void write_rollouts(int step, const std::vector<json>& lines) const {
    std::ofstream out(rollouts_file(step));
    for (const json& line : lines)
      out << line.dump() << '\n';
  }
  // The ledger again, with what `edit` leaves of each record.
  template <class Edit>
  void edit_ledger(Edit edit) const {
    const auto path = folder_ / "ledger.log";
    const auto records = *store::read_ledger(path);
    std::filesystem::remove(path);
    auto ledger = store::Ledger::open(path);
    for (std::size_t i = 0; i < records.size(); ++i) {
      for (const json& kept : edit(i, json::parse(records[i].text))) {
        ASSERT_TRUE(ledger->append(records[i].step, {kept.dump()}));
      }
    }
  }
  std::filesystem::path rollouts_file(int step) const {
    std::string name = "step_00000";
    name.append(std::to_string(step)).append(".jsonl");
    return folder_ / "rollouts" / name;
  }

  std::filesystem::path folder_;
};

using LedgerCheckTest = WrittenRun;
using Edited = std::vector<json>;

}  // namespace

TEST_F(LedgerCheckTest, AWholeRunIsClean) {
  const auto found = check();
  EXPECT_TRUE(found.clean());
  EXPECT_EQ(found.updates, 2u);
  EXPECT_EQ(found.groups, 4u);
  EXPECT_EQ(found.samples, 8u);
  EXPECT_EQ(found.samples_by_set, (std::map<std::uint64_t, std::uint64_t>{{0, 4}, {1, 4}}));
}

TEST_F(LedgerCheckTest, RecordsAndLinesNameSetRewardsAndVersions) {
  const auto records = *store::read_ledger(folder_ / "ledger.log");
  ASSERT_EQ(records.size(), 4u);
  const json again = json::parse(records[1].text), last = json::parse(records[3].text);
  EXPECT_EQ(again["attempt"], 1);
  EXPECT_EQ(again["replaced"], json({1}));
  EXPECT_EQ(last["set"], 1);
  EXPECT_EQ(last["rewards"], json({{"right", 1.0}, {"short", 0.5}}));
  EXPECT_EQ(last["version_min"], 1);
  EXPECT_EQ(last["version_max"], 2);
  const json line = rollouts(2)[0];
  EXPECT_EQ(line["reward_set"], 1);
  EXPECT_EQ(line["rewards"], json({{"right", 1.0}, {"short", 4.0}}));
  EXPECT_EQ(line["reward"], 3.0);
}

TEST_F(LedgerCheckTest, LostAndDoubledGroupsAreCounted) {
  edit_ledger([](std::size_t i, const json& record) {
    return i == 0 ? Edited{} : i == 3 ? Edited{record, record} : Edited{record};
  });
  const auto found = check();
  EXPECT_EQ(found.lost_groups, 1u);
  EXPECT_EQ(found.lost_prompts, 1u);
  EXPECT_EQ(found.doubled_groups, 1u);
  EXPECT_EQ(found.doubled_prompts, 1u);
  EXPECT_EQ(found.doubled_samples, 2u);  // the lines of the group without a record
}

TEST_F(LedgerCheckTest, LostAndDoubledSamplesAreCounted) {
  auto lines = rollouts(1);
  lines.push_back(lines[0]);
  lines.erase(lines.begin() + 1);
  write_rollouts(1, lines);
  const auto found = check();
  EXPECT_EQ(found.lost_samples, 1u);
  EXPECT_EQ(found.doubled_samples, 1u);
}

TEST_F(LedgerCheckTest, ScoresOfAnotherSetAreCounted) {
  auto lines = rollouts(2);
  lines[0]["reward_set"] = 0;
  lines[1]["reward"] = 1.75;
  lines[2]["rewards"].erase("short");
  write_rollouts(2, lines);
  EXPECT_EQ(check().wrong_scores, 3u);
}

TEST_F(LedgerCheckTest, ANumberThatStandsForTwoSetsIsCounted) {
  edit_ledger([](std::size_t i, json record) {
    if (i == 3) record["rewards"]["short"] = 0.25;
    return Edited{record};
  });
  EXPECT_EQ(check().unclear_sets, 1u);
  EXPECT_EQ(check().wrong_scores, 2u);
}

TEST_F(LedgerCheckTest, WhatAKilledHeadWasReplacingIsRemoved) {
  const auto half = folder_ / "rollouts" / ".tmp-1-step_000002.jsonl";
  std::ofstream(half) << "{\"half";
  ASSERT_TRUE(session::RunFiles::open(*store::RunFolder::open(folder_)));
  EXPECT_FALSE(std::filesystem::exists(half));
  EXPECT_TRUE(std::filesystem::exists(rollouts_file(2)));
}

// Lines of episodes say what was drawn in which turn, and whose forks they are; the reward is that
// of the whole path.
TEST_F(LedgerCheckTest, LinesOfEpisodesHaveTheirTurns) {
  const auto run = store::RunFolder::open(folder_);
  ASSERT_TRUE(run);
  auto files = session::RunFiles::open(*run);
  ASSERT_TRUE(files);
  TicketBook book(2, false);
  const auto set = make_set(2, {{"feedback", kFeedbackPeer, 2}}, 2);
  const auto ticket = book.issue({2, 1}, set)[0];
  auto some = samples(3, {0, 0, 0});
  some[0].turns = {{0, {}}, {1, {8, 9}}};
  some[0].feedback_steps = {{0, 0.5}};
  some[1].turns = {{0, {1, 7}}};
  some[1].shares = experience::Shares{0, 1};
  some[0].episode = some[1].episode = 1;
  some[2].episode = 2;
  for (auto& sample : some)
    sample.feedback = 1;
  book.put_samples(ticket, std::move(some), false, {5}).value();
  const GroupScored given = feedback_scores(*book.find(ticket), 0);
  ASSERT_TRUE(book.put_scores({ticket, 0, given.scores, given.causes, {}, "", given.steps}));
  commit(**files, book, 2);
  const auto lines = rollouts(3);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["turns"], json::parse("[[0, 1], [2, 2]]"));
  EXPECT_EQ(lines[0]["episode"], 1);
  EXPECT_FALSE(lines[0].contains("shares"));
  EXPECT_EQ(lines[0]["reward"], 3.0);
  EXPECT_EQ(lines[0]["steps"], json::parse("[[0, 1.0]]"));
  EXPECT_EQ(lines[1]["turns"], json::parse("[[2, 3]]"));
  EXPECT_EQ(lines[1]["shares"], json::parse("[0, 1]"));
  EXPECT_EQ(lines[1]["rewards"]["feedback"], 1.5);
  EXPECT_EQ(lines[1]["reward"], 3.0) << "with what its path shares";
  EXPECT_FALSE(lines[2].contains("turns"));
  EXPECT_EQ(check().wrong_scores, 0u);
}

TEST_F(LedgerCheckTest, DamageIsNamed) {
  std::ofstream(rollouts_file(1), std::ios::app) << "{\n";
  const auto found = check_ledger(folder_);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("step_000001.jsonl:5"), std::string::npos);
}

}  // namespace troupe::bench
