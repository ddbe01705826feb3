// The prompts, rewards and files of a world's run. The ledger has a line a group, on the world's
// disk; scores are hashes of texts, so that anybody can check them.
#pragma once

#include "actors/controller/run_listener.hpp"
#include "actors/data/group_sink.hpp"
#include "actors/data/prompt_source.hpp"
#include "actors/protocol/role_shell.hpp"
#include "actors/reward/reward_source.hpp"
#include "tests/sim/world/plan.hpp"
#include "tests/sim/world/sim_disk.hpp"
#include "tests/sim/world/truth.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::sim {

inline constexpr std::uint64_t kRows = 50;  // of the dataset
inline constexpr const char* kRunFolder = "/run";
inline constexpr const char* kLedger = "/run/ledger.log";
inline constexpr const char* kCheckpoints = "/run/ckpt";
inline constexpr const char* kExperience = "/run/experience";

// Prompt p is row p of the dataset, again and again.
class FakePrompts final : public actors::data::PromptSource {
 public:
  std::uint64_t size() const override { return kRows; }
  core::Result<actors::data::Prompt> at(std::uint64_t position) override;
};
// Rows whose responses nobody can score.
inline bool cannot_be_scored(std::uint64_t row) {
  return row % 17 == 5;
}

// Six digits, as in the names of checkpoints.
std::string padded(std::uint64_t number);

double score_of(const std::string& response, const std::string& reward);

std::unique_ptr<actors::reward::RewardSource> fake_reward(cluster::sim::VirtualTime& time,
                                                          Truth& truth,
                                                          std::string role,
                                                          core::Duration takes);

// A line of the ledger.
struct LedgerLine {
  std::uint64_t update = 0;
  std::uint32_t slot = 0, attempt = 0;
  std::uint64_t position = 0;
  std::uint64_t set = 0;
  std::uint64_t hash = 0;
  std::vector<std::uint64_t> replaced;
  std::string text() const;
  static LedgerLine of(const std::string& line);
};
std::vector<LedgerLine> read_ledger(const std::string& text);

std::unique_ptr<actors::data::GroupSink> fake_sink(Truth& truth, DiskView& disk);

// Writes checkpoints as folders that appear whole, keeps the newest two, and tells the world what
// goes on.
class FakeListener : public actors::controller::RunListener {
 public:
  FakeListener(async::Timers& timers, Truth& truth, DiskView& disk)
      : truth_(truth), disk_(disk), timers_(timers) {}
  std::function<void()> progress;  // an update was done
  std::function<void(const std::string&)> note;
  std::function<void(const actors::SetRewards&)> rewards;
  std::function<void(const actors::controller::FailedUpdate&)> failed_update;

  void on_phase(const std::string&) override {}
  void on_failed_group(const actors::controller::FailedGroup&) override {
    truth_.census.count("event", "group replaced");
  }
  void on_note(const std::string& text) override {
    if (note) note(text);
  }
  void on_failed_update(const actors::controller::FailedUpdate& failed) override {
    truth_.census.count("event", "update failed");
    if (failed_update) failed_update(failed);
  }
  void on_rewards(const actors::SetRewards& set) override {
    truth_.census.count("event", "reward set");
    if (rewards) rewards(set);
  }
  core::Result<void> on_update(const actors::controller::UpdateReport& report) override;
  core::Result<void> on_evaluation(const actors::controller::EvaluationReport& report) override;
  core::Result<std::filesystem::path> begin_checkpoint(std::uint64_t done) override;
  async::task<core::Result<std::filesystem::path>> commit_checkpoint(std::uint64_t done) override;
  bool stop_requested() const override { return false; }

 protected:
  Truth& truth_;
  DiskView& disk_;

 private:
  async::Timers& timers_;
  std::string open_folder_ = "/run/ckpt/.tmp-0";
};

}  // namespace troupe::sim
