// Prompts, scores, ledger and checkpoints.
#include "tests/sim/world/fake_data.hpp"

#include "runtime/store/step_log.hpp"
#include "tests/sim/world/fake_trainers.hpp"

#include <cmath>
#include <sstream>

namespace troupe::sim {
namespace {

class FakeReward final : public actors::reward::RewardSource {
 public:
  FakeReward(cluster::sim::VirtualTime& time, Truth& truth, std::string role, core::Duration takes)
      : time_(time), truth_(truth), role_(std::move(role)), takes_(takes) {}
  std::string name() const override { return role_.substr(role_.find('/') + 1); }
  core::Result<std::vector<actors::reward::RewardScore>> score(
      const std::vector<actors::RewardGroup>& groups, core::Duration deadline) override {
    time_.pass(takes_);
    if (auto error = truth_.error(role_, "score")) {
      if (error->code == core::ErrorCode::kDeadline) time_.pass(deadline);
      return core::fail(*error);
    }
    std::vector<actors::reward::RewardScore> scores;
    for (const actors::RewardGroup& group : groups) {
      const bool scorable = !cannot_be_scored(std::stoull(group.label));
      for (const actors::RewardSample& sample : group.samples) {
        actors::reward::RewardScore& score = scores.emplace_back();
        if (scorable) score.value = score_of(sample.response, role_);
        if (!scorable) score.cause = "nobody can score this row";
      }
    }
    return scores;
  }

 private:
  cluster::sim::VirtualTime& time_;
  Truth& truth_;
  const std::string role_;
  const core::Duration takes_;
};

class FakeSink final : public actors::data::GroupSink {
 public:
  FakeSink(Truth& truth, DiskView& disk) : truth_(truth), disk_(disk) {}

  core::Result<void> commit(std::uint64_t update,
                            std::uint64_t,
                            const std::vector<actors::data::CommittedGroup>& groups) override {
    if (experience::is_evaluation(update)) {
      truth_.census.count("event", "evaluation committed");
      return {};
    }
    std::string lines;
    for (const actors::data::CommittedGroup& committed : groups) {
      check_scores(*committed.group);
      check_promise(*committed.group);
      lines += line_of(committed).text() + "\n";
    }
    TROUPE_TRY(disk_.append(kLedger, lines));
    return disk_.sync(kLedger);
  }

 private:
  static LedgerLine line_of(const actors::data::CommittedGroup& committed) {
    const actors::data::BookGroup& group = *committed.group;
    experience::Group whole{group.ticket, committed.prompt->tokens, group.samples};
    return {group.ticket.update,   group.ticket.slot, group.ticket.attempt, group.prompt,
            group.rewards->number, hash_of(whole),    group.replaced};
  }
  void check_scores(const actors::data::BookGroup& group) {
    for (const experience::Trajectory& sample : group.samples) {
      double wanted = 0;
      for (const actors::RewardMember& member : group.rewards->members)
        wanted += member.weight * score_of(sample.text, member.peer);
      truth_.expect(sample.score && std::abs(*sample.score - wanted) < 1e-9,
                    name_of(group.ticket) + " has another score than its reward set gives");
    }
  }
  void check_promise(const actors::data::BookGroup& group) {
    const auto& promise = truth_.promise;
    if (!promise || group.ticket.update < promise->from_update) return;
    const auto member = group.rewards->member("guest");
    const double weight = member ? group.rewards->members[*member].weight : 0;
    truth_.expect(weight == promise->weight,
                  name_of(group.ticket) + " is scored by rewards that were changed before it");
  }
  Truth& truth_;
  DiskView& disk_;
};

std::string folder_of(std::uint64_t done) {
  return std::string(kCheckpoints) + "/step_" + padded(done);
}

}  // namespace

std::string padded(std::uint64_t number) {
  std::string text = std::to_string(number);
  text.insert(0, 6 - text.size(), '0');
  return text;
}

core::Result<actors::data::Prompt> FakePrompts::at(std::uint64_t position) {
  const std::uint64_t row = position % kRows;
  actors::data::Prompt prompt;
  prompt.row = row;
  prompt.tokens.assign(1 + row % 20, kTokenOfRow0 + static_cast<std::int32_t>(row));
  prompt.text = "p" + std::to_string(row);
  prompt.label = std::to_string(row);
  prompt.columns = "{}";
  return prompt;
}

double score_of(const std::string& response, const std::string& reward) {
  return static_cast<double>(mix(mix(1, response), reward) % 1000) / 1000;
}

std::unique_ptr<actors::reward::RewardSource> fake_reward(cluster::sim::VirtualTime& time,
                                                          Truth& truth,
                                                          std::string role,
                                                          core::Duration takes) {
  return std::make_unique<FakeReward>(time, truth, std::move(role), takes);
}

std::unique_ptr<actors::data::GroupSink> fake_sink(Truth& truth, DiskView& disk) {
  return std::make_unique<FakeSink>(truth, disk);
}

std::string LedgerLine::text() const {
  std::ostringstream out;
  out << update << ' ' << slot << ' ' << attempt << ' ' << position << ' ' << set << ' ' << hash;
  for (const std::uint64_t one : replaced)
    out << ' ' << one;
  return out.str();
}

LedgerLine LedgerLine::of(const std::string& line) {
  std::istringstream in(line);
  LedgerLine read;
  in >> read.update >> read.slot >> read.attempt >> read.position >> read.set >> read.hash;
  for (std::uint64_t one = 0; in >> one;)
    read.replaced.push_back(one);
  return read;
}

std::vector<LedgerLine> read_ledger(const std::string& text) {
  std::istringstream in(text);
  std::vector<LedgerLine> lines;
  for (std::string line; std::getline(in, line);)
    lines.push_back(LedgerLine::of(line));
  return lines;
}

core::Result<void> FakeListener::on_update(const actors::controller::UpdateReport&) {
  if (progress) progress();
  return {};
}

core::Result<void> FakeListener::on_evaluation(const actors::controller::EvaluationReport& report) {
  truth_.census.count("event",
                      report.sets.at(0).missing > 0 ? "evaluation with gaps" : "evaluation");
  if (progress) progress();
  return {};
}

core::Result<std::filesystem::path> FakeListener::begin_checkpoint(std::uint64_t) {
  if (disk_.works()) disk_.disk().remove(open_folder_);
  open_folder_ = std::string(kCheckpoints) + "/.tmp-" + std::to_string(++truth_.open_folders);
  TROUPE_TRY(disk_.make_folder(open_folder_));
  return std::filesystem::path(open_folder_);
}

async::task<core::Result<std::filesystem::path>> FakeListener::commit_checkpoint(
    std::uint64_t done) {
  co_await async::sleep_for(timers_, std::chrono::milliseconds(20));
  const std::string folder = folder_of(done);
  TROUPE_CO_TRY(disk_.commit(open_folder_, folder));
  truth_.census.count("event", "checkpoint");
  TROUPE_CO_TRY(store::StepLog(kExperience, disk_).remove_up_to(done));
  const auto all = disk_.disk().folders_in(kCheckpoints);
  for (std::size_t i = 0; i + 2 < all.size(); ++i)
    disk_.disk().remove(std::string(kCheckpoints) + "/" + all[i]);
  co_return std::filesystem::path(folder);
}

}  // namespace troupe::sim
