// The data role on virtual time, with rewards and a reference that do what a test says, and a
// client in place of controller, generator and policy. Everything is asked through frames.
#pragma once

#include "actors/data/data_role.hpp"
#include "actors/protocol/dispatch.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "tests/sim/sim_device.hpp"
#include "tests/sim/sim_network.hpp"
#include "tests/unit/actors/data/book_support.hpp"
#include "tests/unit/runtime/cluster/support.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::test {

using cluster::testing::kSteps;
using cluster::testing::Later;
using namespace std::chrono_literals;

// The rewards of a stage: with two weights, or as they are.
inline const RewardMember kRight{"right", "reward/right", 2}, kShort{"short", "reward/short", -1};
inline const RewardMember kRightOnce{"right", "reward/right", 1};
inline const RewardMember kShortOnce{"short", "reward/short", 1};

// Prompt p of the stream is the token p and the text "p<p>".
class CountingPrompts final : public data::PromptSource {
 public:
  std::uint64_t size() const override { return 1000; }
  core::Result<data::Prompt> at(std::uint64_t position) override {
    const std::string number = std::to_string(position);
    return data::Prompt{position,
                        {static_cast<std::int32_t>(position)},
                        "p" + number,
                        "l" + number,
                        R"({"level": 3, "tests": ["t)" + number + R"("]})",
                        "",
                        static_cast<std::uint32_t>(position % 2)};
  }
};

// What was committed, by update.
struct Committed {
  std::map<std::uint64_t, std::vector<data::BookGroup>> groups;
};

class KeepingSink final : public data::GroupSink {
 public:
  explicit KeepingSink(Committed* kept) : kept_(kept) {}
  core::Result<void> commit(std::uint64_t update,
                            std::uint64_t,
                            const std::vector<data::CommittedGroup>& groups) override {
    EXPECT_FALSE(kept_->groups.contains(update)) << "update " << update << " committed twice";
    for (const auto& one : groups)
      kept_->groups[update].push_back(*one.group);
    return {};
  }

 private:
  Committed* kept_;
};

// A scorer that answers with what `answer` makes of a request, after `delay`; it can be held back.
template <class Request>
class Scripted {
 public:
  using Reply = typename Request::Reply;
  using Script = std::function<core::Result<Reply>(const Request&)>;

  Scripted(async::Timers* timers, Script script)
      : answer(std::move(script)), timers_(timers), changed_(*timers) {}

  async::task<core::Result<Reply>> on(Request request) {
    calls.push_back(request);
    times.push_back(timers_->now());
    most_inside = std::max(most_inside, ++inside_);
    while (held_)
      co_await changed_.wait(async::Deadline::none());
    if (delay > 0ms) co_await async::sleep_for(*timers_, delay);
    --inside_;
    co_return answer(request);
  }
  void hold() { held_ = true; }
  void release() {
    held_ = false;
    changed_.notify_all();
  }

  Script answer;
  core::Duration delay{};
  std::vector<Request> calls;
  std::vector<core::TimePoint> times;
  int most_inside = 0;

 private:
  async::Timers* timers_;
  async::Notifier changed_;
  bool held_ = false;
  int inside_ = 0;
};

struct ScriptedReward : Scripted<Score> {
  using Scripted<Score>::Scripted;
  using Scripted<Score>::on;
  async::task<core::Result<RewardReads>> on(IntroduceReward) {
    ++introduced;
    co_return reads;
  }
  RewardReads reads;
  int introduced = 0;
};
using ScriptedReference = Scripted<ScoreLogprobs>;

// `factor` times the number that the response's text is.
inline ScriptedReward::Script numbers_times(double factor) {
  return [factor](const Score& request) -> core::Result<Scores> {
    Scores scores;
    for (const RewardSample& sample : request.group.samples) {
      scores.values.emplace_back(factor * std::stod(sample.response));
      scores.causes.emplace_back();
    }
    return scores;
  };
}

inline ScriptedReward::Script failing(core::ErrorCode code, std::string message) {
  return
      [code, message](const Score&) -> core::Result<Scores> { return core::fail(code, message); };
}

// A group of samples "1", "2", ... whose tokens have these versions.
inline PutGroup delivery(const experience::Ticket& ticket,
                         int count,
                         experience::VersionRuns versions = {0, 0}) {
  PutGroup put;
  put.ticket = ticket;
  for (int i = 1; i <= count; ++i) {
    experience::Trajectory sample;
    sample.tokens.assign(versions.size(), i);
    sample.behaviour.assign(versions.size(), -1.0f);
    sample.versions = versions;
    sample.text = std::to_string(i);
    put.samples.push_back(std::move(sample));
  }
  return put;
}

// Faults of a network without any.
inline cluster::sim::Faults calm() {
  return {10us, 10us, 0, 0, 500ms};
}

class DataStage {
 public:
  explicit DataStage(data::DataRoleOptions options,
                     std::uint64_t seed = 1,
                     cluster::sim::Faults faults = calm())
      : network(time, seed, faults), device_(time, time.make_strand(), "disk") {
    client_ = join("controller/0");
    data_ = join("data/0");
    scope_ = std::make_unique<async::Scope>(data_->strand());
    scope_->on_error([](const core::Error& error) { ADD_FAILURE() << error.message; });
    RoleContext context;
    context.transport = data_;
    context.scope = scope_.get();
    context.timers = &time;
    context.device = &device_;
    role = std::make_shared<data::DataRole>(
        context, std::move(options), std::make_unique<CountingPrompts>(),
        std::make_unique<CountingPrompts>(), std::make_unique<KeepingSink>(&committed));
    data_->serve(handler_of(role, "data/0"));
  }
  DataStage(const DataStage&) = delete;
  DataStage& operator=(const DataStage&) = delete;
  ~DataStage() {
    Later<bool> ended(time.make_strand(), end(this));
    run(1s);
    EXPECT_TRUE(ended.done());
  }

  // A scorer of that name, also again after a crash.
  template <class Role>
  void play(const std::string& name, std::shared_ptr<Role> scorer) {
    auto endpoint = join(name);
    endpoint->serve(handler_of(std::move(scorer), name));
    played_.push_back(std::move(endpoint));
  }
  std::shared_ptr<ScriptedReward> reward(const std::string& name, ScriptedReward::Script script) {
    auto scorer = std::make_shared<ScriptedReward>(&time, std::move(script));
    play(name, scorer);
    return scorer;
  }

  template <class Request>
  Later<core::Result<typename Request::Reply>> begin(Request request) {
    RoleContext context;
    context.transport = client_;
    context.timers = &time;
    return {client_->strand(), actors::ask(context, "data/0", std::move(request))};
  }
  template <class Request>
  core::Result<typename Request::Reply> ask(Request request) {
    auto asked = begin(std::move(request));
    for (int i = 0; i < 1000 && !asked.done(); ++i)
      run(1ms);
    return std::move(asked.value());
  }
  std::vector<experience::Ticket> issue(std::uint64_t update,
                                        std::uint32_t groups,
                                        core::Version min = 0) {
    IssueTickets request;
    request.update = update;
    request.groups = groups;
    request.version_min = min;
    auto tickets = ask(request);
    EXPECT_TRUE(tickets) << tickets.error().message;
    return tickets->tickets;
  }
  core::Result<Tickets> reissue(const experience::Ticket& ticket) {
    ReissueTickets request;
    request.tickets = {ticket};
    return ask(request);
  }
  void run(core::Duration span) { EXPECT_TRUE(time.run_for(span, kSteps)); }
  core::TimePoint now() const { return time.now(); }

  double amount(const std::string& name) const {
    for (const auto& [key, value] : role->amounts()) {
      if (key == name) return value;
    }
    ADD_FAILURE() << "no amount " << name;
    return -1;
  }

  cluster::sim::VirtualTime time;
  cluster::sim::SimNetwork network;
  Committed committed;
  std::shared_ptr<data::DataRole> role;

 private:
  cluster::sim::SimDevice device_;

  std::shared_ptr<cluster::Endpoint> join(const std::string& name) {
    auto joined = network.join(cluster::testing::identity_of(name, ++epoch_));
    EXPECT_TRUE(joined.has_value());
    return *joined;
  }
  static async::task<bool> end(DataStage* stage) {
    co_await stage->client_->stop();
    co_await stage->data_->stop();
    stage->scope_->cancel();
    auto joined = co_await stage->scope_->join();
    EXPECT_TRUE(joined.has_value());
    for (auto& endpoint : stage->played_)
      co_await endpoint->stop();
    co_return true;
  }

  std::uint64_t epoch_ = 0;
  std::shared_ptr<cluster::Endpoint> client_, data_;
  std::unique_ptr<async::Scope> scope_;
  std::vector<std::shared_ptr<cluster::Endpoint>> played_;
};

// A data role, and what it had to say to people.
struct NotedStage {
  explicit NotedStage(data::DataRoleOptions options) : stage(listening(std::move(options))) {}

  std::vector<std::string> notes;
  DataStage stage;

 private:
  data::DataRoleOptions listening(data::DataRoleOptions options) {
    options.scoring.note = [this](const std::string& text) { notes.push_back(text); };
    return options;
  }
};

}  // namespace troupe::actors::test
