// A thousand random events on a network that delays and doubles frames: tickets, deliveries (late
// and doubled), rewards attached, weighted anew, detached and lost, scorers that crash and come
// back. A naive model says which set each ticket gets; every sample that is committed must have
// been scored by exactly that set, and every prompt is used by one attempt of one slot.
#include "runtime/core/rng.hpp"
#include "tests/unit/actors/data/data_stage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace troupe::actors::data {
namespace {

using namespace test;

constexpr std::uint64_t kSeeds = 30;
constexpr int kEvents = 1000;
constexpr std::uint32_t kGroups = 4;
constexpr int kScorers = 4;  // reward/0..3; scorer k gives k + 1 times the number of the response

RewardMember member(int scorer, double weight) {
  return {"r" + std::to_string(scorer), "reward/" + std::to_string(scorer), weight};
}

// What the tickets' sets ought to be, in the plainest way: all changes ever made, in order.
class Model {
 public:
  explicit Model(std::vector<RewardMember> first) { changes_.push_back(change(0, 0, first)); }
  void add(const SetRewards& request) { changes_.push_back(request); }
  std::uint64_t newest() const { return changes_.back().set; }
  const std::vector<RewardMember>& members(std::uint64_t set) const {
    return changes_[set].members;
  }
  std::uint64_t set_for(std::uint64_t update) const {
    std::uint64_t set = newest();
    while (changes_[set].from_update > update)
      --set;
    while (dead(set))
      ++set;
    return set;
  }

 private:
  bool dead(std::uint64_t set) const {
    for (std::uint64_t later = set + 1; later < changes_.size(); ++later) {
      for (const auto& name : changes_[later].lost) {
        for (const auto& one : changes_[set].members) {
          if (one.name == name) return true;
        }
      }
    }
    return false;
  }
  std::vector<SetRewards> changes_;  // the set's number is its place
};

class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed)
      : rng_(seed, 7),
        model_({member(0, 1), member(1, 0.5)}),
        stage_(options(), seed, {100us, 20ms, 0, 0.1, 300ms}) {
    for (int scorer = 0; scorer < kScorers; ++scorer)
      revive(scorer);
  }

  void play() {
    for (int event = 0; event < kEvents; ++event) {
      act();
      stage_.run(core::Duration(rng_.next_below(30'000'000)));
      settle();
    }
    finish();
    check();
  }

 private:
  static DataRoleOptions options() {
    DataRoleOptions options;
    options.samples = 3;
    options.rewards = {member(0, 1), member(1, 0.5)};
    return options;
  }

  void act() {
    switch (rng_.next_below(12)) {
      case 0:
        return issue();
      case 1:
        return change_rewards();
      case 2:
        return crash(static_cast<int>(rng_.next_below(kScorers)));
      case 3:
        return reissue();
      case 4:
      case 5:
        return revive(static_cast<int>(rng_.next_below(kScorers)));
      default:
        return deliver();
    }
  }

  void issue() {
    if (next_update_ > oldest_ + 2) return;
    note(stage_.issue(next_update_++, kGroups));
  }

  void note(const std::vector<experience::Ticket>& tickets) {
    for (const auto& ticket : tickets) {
      expected_[ticket] = model_.set_for(ticket.update);
      tickets_.push_back(ticket);
    }
  }

  // Any ticket that ever was, the newer ones more often; sometimes twice, sometimes cut.
  void deliver() {
    if (tickets_.empty()) return;
    const std::uint64_t back = rng_.next_below(std::min<std::uint64_t>(tickets_.size(), 16));
    const auto ticket = tickets_[tickets_.size() - 1 - back];
    const bool cut = rng_.next_below(4) == 0;
    auto put = delivery(ticket, cut ? 2 : 3);
    put.cut = cut;
    stage_.begin(put);
    if (rng_.next_below(4) == 0) stage_.begin(put);
  }

  // A failed or idle group of the oldest update gets another attempt.
  void reissue() {
    if (oldest_ == next_update_) return;
    std::map<std::uint32_t, experience::Ticket> present;  // by slot
    for (const experience::Ticket& ticket : tickets_) {
      if (ticket.update == oldest_) present[ticket.slot] = ticket;
    }
    const auto ticket =
        std::next(present.begin(), static_cast<std::ptrdiff_t>(rng_.next_below(present.size())))
            ->second;
    const auto again = stage_.reissue(ticket);
    if (again) note(again->tickets);
  }

  void change_rewards() {
    SetRewards next = change(model_.newest() + 1, next_update_ + rng_.next_below(2), {});
    for (int scorer = 0; scorer < kScorers; ++scorer) {
      const bool kept = rng_.next_below(2) == 0;
      const double weight = 0.25 * static_cast<double>(1 + rng_.next_below(8));
      if (kept) next.members.push_back(member(scorer, weight));
      if (!kept && !up_.contains(scorer)) next.lost.push_back(member(scorer, 0).name);
    }
    if (next.members.empty()) next.members.push_back(member(3, 1));
    std::erase(next.lost, next.members.back().name);
    ASSERT_TRUE(stage_.ask(next));
    model_.add(next);
  }

  void crash(int scorer) {
    if (up_.erase(scorer) > 0) stage_.network.crash("reward/" + std::to_string(scorer));
  }
  void revive(int scorer) {
    if (!up_.insert(scorer).second) return;
    const auto played =
        stage_.reward("reward/" + std::to_string(scorer), numbers_times(scorer + 1));
    played->delay = core::Duration(rng_.next_below(50'000'000));
  }

  // Commits the oldest update when it is ready.
  void settle() {
    if (oldest_ == next_update_ || !stage_.ask(CommitUpdate{oldest_, oldest_ + 1})) return;
    ++oldest_;
  }

  // Everybody is there and every slot is filled, so the run must come to its end.
  void finish() {
    for (int scorer = 0; scorer < kScorers; ++scorer)
      revive(scorer);
    for (int round = 0; round < 400 && oldest_ < next_update_; ++round) {
      for (const auto& ticket : stage_.issue(oldest_, kGroups)) {
        stage_.begin(delivery(ticket, 3));
        stage_.run(50ms);
      }
      stage_.run(2s);
      reissue_failed();
      settle();
    }
    EXPECT_EQ(oldest_, next_update_);
  }

  void reissue_failed() {
    auto asked = stage_.begin(AwaitGroups{oldest_, {}});
    stage_.run(50ms);
    if (!asked.done() || !asked.value()) return;
    const auto statuses = *asked.value();
    for (const auto& group : statuses.groups) {
      if (group.state != GroupState::kFailed) continue;
      const auto again = stage_.reissue(group.ticket);
      ASSERT_TRUE(again);
      note(again->tickets);
    }
  }

  void check() {
    std::set<std::uint64_t> prompts;
    std::uint64_t attempts = 0;
    ASSERT_EQ(stage_.committed.groups.size(), next_update_);
    for (const auto& [update, groups] : stage_.committed.groups) {
      ASSERT_EQ(groups.size(), kGroups);
      for (const BookGroup& group : groups) {
        attempts += group.ticket.attempt + 1;
        EXPECT_TRUE(prompts.insert(group.prompt).second);
        for (const auto old : group.replaced)
          EXPECT_TRUE(prompts.insert(old).second);
        check_group(group);
      }
    }
    EXPECT_EQ(prompts.size(), attempts);
    EXPECT_EQ(*prompts.rbegin() + 1, attempts);  // none left out
    EXPECT_EQ(stage_.amount("stale_refused"), 0);
    EXPECT_EQ(stage_.amount("open_groups/generated"), 0);
  }

  void check_group(const BookGroup& group) {
    const std::uint64_t set = expected_.at(group.ticket);
    EXPECT_EQ(group.rewards->number, set);
    EXPECT_EQ(group.rewards->members, model_.members(set));
    for (std::size_t i = 0; i < group.samples.size(); ++i) {
      const experience::Trajectory& sample = group.samples[i];
      double sum = 0;
      for (std::size_t m = 0; m < group.rewards->members.size(); ++m) {
        const RewardMember& one = group.rewards->members[m];
        const double value = (std::stod(one.name.substr(1)) + 1) * std::stod(sample.text);
        EXPECT_EQ(group.scores[i].components[m], value);
        sum += one.weight * value;
      }
      EXPECT_EQ(sample.score, sum);
    }
  }

  core::Rng rng_;
  Model model_;
  DataStage stage_;
  std::set<int> up_;
  std::uint64_t next_update_ = 0, oldest_ = 0;
  std::vector<experience::Ticket> tickets_;
  std::map<experience::Ticket, std::uint64_t> expected_;  // the set's number
};

}  // namespace

TEST(DataRoleRandom, EverySampleIsScoredByTheSetOfItsTicket) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun(seed).play();
    if (HasFailure()) return;
  }
}

}  // namespace troupe::actors::data
