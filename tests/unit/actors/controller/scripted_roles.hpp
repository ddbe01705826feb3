// A policy and generators that follow a script on virtual time, and a listener.
#pragma once

#include "actors/controller/run_listener.hpp"
#include "actors/protocol/ask.hpp"
#include "tests/unit/actors/controller/script.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace troupe::actors::testing {

class ScriptedPolicy {
 public:
  ScriptedPolicy(RoleContext context, const Script& script, Events& events)
      : context_(std::move(context)),
        script_(script),
        events_(events),
        version_(2 * script.plan.first_update) {}

  async::task<core::Result<Trained>> on(TrainUpdate request) {
    EXPECT_EQ(2 * request.update, version_);
    events_.push_back("train " + std::to_string(request.update));
    co_await async::sleep_for(*context_.timers, script_.train_time);
    if (request.update == script_.train_fails) {
      co_return core::fail(script_.train_code, "the loss is not a number");
    }
    version_ += 2;
    events_.push_back("trained " + std::to_string(request.update));
    Trained reply{version_, {{"async/staleness_mean", 0.0}}};
    co_return reply;
  }
  async::task<core::Result<Published>> on(PublishWeights) {
    events_.push_back("publish " + std::to_string(version_));
    co_return Published{version_, {}};
  }
  async::task<core::Result<Ack>> on(SaveState) {
    if (script_.half_way) {
      co_return core::fail(core::ErrorCode::kInvalidArgument, "the policy stands half-way");
    }
    co_return Ack{};
  }
  async::task<core::Result<Ack>> on(SaveModel) { co_return Ack{}; }

 private:
  RoleContext context_;
  const Script& script_;
  Events& events_;
  core::Version version_;
};

// Saves, and says so.
class ScriptedCritic {
 public:
  ScriptedCritic(const RoleContext&, Events& events) : events_(events) {}
  async::task<core::Result<Ack>> on(SaveState) {
    events_.push_back("critic saves");
    co_return Ack{};
  }
  async::task<core::Result<Ack>> on(LoadState) {
    events_.push_back("critic loads");
    co_return Ack{};
  }
  async::task<core::Result<Ack>> on(SaveModel request) {
    const auto slash = request.folder.rfind('/');
    events_.push_back("critic writes " + request.folder.substr(slash + 1));
    co_return Ack{};
  }

 private:
  Events& events_;
};

// Draws tokens one by one on virtual time; each carries the weights that are there at that moment.
class ScriptedGenerator {
 public:
  ScriptedGenerator(RoleContext context, const Script& script, Events& events, std::string name)
      : context_(std::move(context)),
        script_(script),
        events_(events),
        name_(std::move(name)),
        changed_(*context_.timers) {}

  async::task<core::Result<Generated>> on(Generate request) {
    const experience::Ticket ticket = request.tickets.at(0);
    events_.push_back("generate " + text_of(ticket) + " at " + name_);
    if (const auto code = script_.sick_tickets(name_, tickets_++))
      co_return core::fail(*code, "sick");
    const std::string poison = "poison in slot " + std::to_string(ticket.slot);
    if (script_.poison(ticket)) co_return core::fail(script_.poison_code, poison);
    EXPECT_TRUE(version_.has_value()) << name_ << " got a ticket before its first weights";
    while (*version_ < request.version_min) {
      const bool woken = co_await changed_.wait(async::Deadline::none());
      static_cast<void>(woken);
    }
    const bool evaluation = experience::is_evaluation(ticket.update);
    const auto& plan = script_.plan;
    const auto count =
        static_cast<std::size_t>(evaluation ? plan.evaluation.n_samples_per_prompt : plan.samples);
    std::vector<std::uint64_t> lengths;
    for (std::size_t i = 0; i < count; ++i)
      lengths.push_back(script_.length(ticket, i));
    std::vector<experience::Trajectory> samples(count);
    std::size_t open = count;
    while (open > 0 && !cut_.contains(ticket)) {
      co_await async::sleep_for(*context_.timers, script_.token_time.at(name_));
      for (std::size_t i = 0; i < count; ++i) {
        if (samples[i].versions.size() == lengths[i] && lengths[i] > 0) continue;
        samples[i].tokens.push_back(1);
        samples[i].behaviour.push_back(-1.0f);
        samples[i].versions.add(*version_);
        if (samples[i].versions.size() == lengths[i]) --open;
      }
    }
    PutGroup put;
    put.ticket = ticket;
    put.cut = open > 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (samples[i].versions.size() == lengths[i]) put.samples.push_back(std::move(samples[i]));
    }
    if (put.samples.size() < 2 && put.cut) {
      co_return core::fail(core::ErrorCode::kDeadline, "cut with nothing to deliver");
    }
    Generated reply;
    reply.samples = put.samples.size();
    auto answer = co_await ask(context_, "data/0", std::move(put));
    if (!answer) co_return answer.failure();
    co_return reply;
  }

  async::task<core::Result<Ack>> on(CutGroups request) {
    for (const auto& ticket : request.tickets)
      cut_.insert(ticket);
    co_return Ack{};
  }

  async::task<core::Result<Ack>> on(UpdateWeights request) {
    if (const auto code = script_.sick_weights(name_, weights_++))
      co_return core::fail(*code, "sick");
    co_await async::sleep_for(*context_.timers, script_.push_time);
    if (!version_ || *version_ < request.version) version_ = request.version;
    events_.push_back("weights " + std::to_string(request.version) + " at " + name_);
    changed_.notify_all();
    co_return Ack{};
  }

 private:
  RoleContext context_;
  const Script& script_;
  Events& events_;
  std::string name_;
  async::Notifier changed_;
  std::optional<core::Version> version_;
  std::set<experience::Ticket> cut_;
  std::size_t tickets_ = 0, weights_ = 0;  // calls so far
};

class Hearer final : public controller::RunListener {
 public:
  explicit Hearer(Events& events) : events_(events) {}
  void on_phase(const std::string&) override {}
  void on_failed_group(const controller::FailedGroup& group) override {
    ++failed;
    faults.push_back(group.fault);
  }
  core::Result<void> on_update(const controller::UpdateReport& report) override {
    if (updates_full > 0 && updates_full-- > 0) return disk_full();
    reports.push_back(report);
    return {};
  }
  void on_failed_update(const controller::FailedUpdate& update) override { failed_update = update; }
  std::string on_diverged(std::uint64_t updates) override {
    diverged.push_back(updates);
    return "/good";
  }
  core::Result<void> on_evaluation(const controller::EvaluationReport& report) override {
    events_.push_back("evaluated " + std::to_string(report.done));
    evaluations.push_back(report);
    return {};
  }
  core::Result<std::filesystem::path> begin_checkpoint(std::uint64_t) override {
    if (checkpoints_full > 0 && checkpoints_full-- > 0) return disk_full();
    return std::filesystem::path("/nowhere");
  }
  async::task<core::Result<std::filesystem::path>> commit_checkpoint(std::uint64_t done) override {
    if (moves_at_save && !std::exchange(gone, true)) {
      co_return core::fail(core::ErrorCode::kNotFound, "no such folder");
    }
    events_.push_back("checkpoint " + std::to_string(done));
    co_return std::filesystem::path("/saved");
  }
  bool stop_requested() const override { return stop; }
  std::optional<core::TimePoint> stop_deadline() const override { return deadline; }
  void on_given_up(const std::string& said) override { given_up.push_back(said); }
  void on_peer(const std::string& name, bool up, const std::string&) override {
    events_.push_back(name + (up ? " up" : " lost"));
  }

  void on_awaited_rewards(const std::set<std::string>& names) override { awaited = names; }
  void on_note(const std::string& what) override { troubles.push_back(what); }

  std::vector<controller::UpdateReport> reports;
  std::vector<controller::EvaluationReport> evaluations;
  core::Result<void> check_place() const override {
    if (!gone) return {};
    return core::fail(core::ErrorCode::kResources, "the run folder was moved");
  }

  static core::Failure disk_full() { return core::fail(core::ErrorCode::kNoRoom, "no room"); }
  int updates_full = 0, checkpoints_full = 0;  // first ones for which the disk is full
  controller::FailedUpdate failed_update;
  std::vector<std::uint64_t> diverged;

  std::set<std::string> awaited;
  bool moves_at_save = false;  // the run folder is renamed in the middle of the first checkpoint
  bool gone = false;
  std::vector<std::string> troubles;
  int failed = 0;
  std::vector<std::uint32_t> faults;  // numbers of the failed groups of a slot, as they came
  bool stop = false;
  std::optional<core::TimePoint> deadline;  // of the stop
  std::vector<std::string> given_up;

 private:
  Events& events_;
};

}  // namespace troupe::actors::testing
