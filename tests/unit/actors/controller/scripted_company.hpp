// A company on virtual time: the real controller, and scripted data, policy and generator roles
// over the simulated network. What reaches them is written down in order.
#pragma once

#include "actors/controller/controller.hpp"
#include "actors/protocol/dispatch.hpp"
#include "tests/unit/actors/controller/scripted_data.hpp"
#include "tests/unit/actors/controller/scripted_roles.hpp"
#include "tests/unit/runtime/cluster/support.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace troupe::actors::testing {

using cluster::testing::Later;

inline constexpr std::uint64_t kSteps = 40'000'000;

// Everybody, from the first frame to silence.
class ScriptedCompany {
 public:
  explicit ScriptedCompany(Script script)
      : script_(std::move(script)),
        network_(time_, script_.seed, script_.faults),
        hearer_(events_) {
    data_ = std::make_shared<ScriptedData>(begin("data/0"), script_, events_);
    serve("data/0", data_);
    auto policy = std::make_shared<ScriptedPolicy>(begin("policy/0"), script_, events_);
    serve("policy/0", policy);
    controller::RunPlan plan = script_.plan;
    plan.has_critic = script_.critic;
    if (script_.critic) {
      auto critic = std::make_shared<ScriptedCritic>(begin(controller::kCriticRole), events_);
      serve(controller::kCriticRole, critic);
    }
    std::vector<std::string> up;
    for (const auto& [name, speed] : script_.token_time) {
      if (late_.contains(name)) continue;
      start_generator(name);
      up.push_back(name);
    }
    controller_ =
        std::make_unique<controller::Controller>(begin("controller/0"), std::move(plan), hearer_);
    for (const std::string& name : up)
      controller_->peer_up(name);
  }

  ~ScriptedCompany() {
    for (auto& [name, life] : lives_)
      end(*life);
    EXPECT_TRUE(time_.run_until_quiet(kSteps));
    for (auto& life : past_)
      EXPECT_TRUE(life->over);
    for (auto& [name, life] : lives_)
      EXPECT_TRUE(life->over) << name;
  }

  // The whole run, and whatever still happens after it (the clock then stands at the last
  // deadline).
  core::Result<void> play() {
    Later<core::Result<void>> outcome(lives_.at("controller/0")->endpoint->strand(),
                                      run_and_note());
    EXPECT_TRUE(time_.run_until_quiet(kSteps));
    if (!outcome.done()) return core::fail(core::ErrorCode::kInternal, "the run hangs");
    return outcome.value();
  }

  void start_generator(const std::string& name) {
    auto role = std::make_shared<ScriptedGenerator>(begin(name), script_, events_, name);
    serve(name, role);
  }

  void crash(const std::string& name) {
    if (!lives_.contains(name)) return;
    events_.push_back(name + " crashes");
    network_.crash(name);
    end(*lives_.at(name));
    past_.push_back(std::move(lives_.at(name)));
    lives_.erase(name);
  }

  // Does something on the controller's strand after a while.
  void at(core::Duration after, std::function<void()> what) {
    time_.schedule(time_.now() + after, std::move(what));
  }
  void note(const std::string& event) { events_.push_back(event); }
  bool alive(const std::string& name) const { return lives_.contains(name); }
  void tell_up(const std::string& name) { controller_->peer_up(name); }
  void tell_lost(const std::string& name) {
    controller_->peer_lost(name, {core::ErrorCode::kPeerLost, "it crashed"});
  }

  // Sick generators are started again by a company that takes `away` for it; its orders are written
  // down.
  void restart_sick_after(core::Duration away) {
    controller_->when_cleared([this](const std::string& name) { note("clear " + name); });
    controller_->when_sick([this, away](const std::string& name, std::uint64_t epoch,
                                        const core::Error& cause) {
      events_.push_back("restart " + name + " of " + std::to_string(epoch) + ": " + cause.message);
      if (!lives_.contains(name)) return;  // it crashed: nobody starts it
      at(away, [this, name, epoch] { controller_->peer_up(name, epoch + 1); });
    });
  }

  // Asks the controller as a command would; the answer is written down.
  template <class Request>
  void ask_controller(Request request, std::string what) {
    boost::asio::co_spawn(lives_.at("controller/0")->endpoint->strand(),
                          asked(std::move(request), std::move(what)),
                          [](std::exception_ptr error) { EXPECT_FALSE(error); });
  }

  // Place of the first event with this text; fails the test when it is missing.
  std::size_t place(const std::string& event) const {
    const auto found = std::find(events_.begin(), events_.end(), event);
    EXPECT_NE(found, events_.end()) << event;
    return static_cast<std::size_t>(found - events_.begin());
  }
  std::size_t count(const std::string& prefix) const {
    return static_cast<std::size_t>(
        std::count_if(events_.begin(), events_.end(),
                      [&](const std::string& event) { return event.starts_with(prefix); }));
  }
  bool has(const std::string& event) const {
    return std::find(events_.begin(), events_.end(), event) != events_.end();
  }

  controller::Controller& controller() { return *controller_; }
  ScriptedData& data() { return *data_; }
  Hearer& hearer() { return hearer_; }
  const Events& events() const { return events_; }
  cluster::sim::VirtualTime& time() { return time_; }
  core::Duration took() const { return took_; }  // from the start to the end of the run

 private:
  struct Life {
    explicit Life(std::shared_ptr<cluster::Endpoint> joined)
        : endpoint(std::move(joined)), scope(endpoint->strand()) {}
    std::shared_ptr<cluster::Endpoint> endpoint;
    async::Scope scope;
    bool over = false;
  };

  RoleContext begin(const std::string& name) {
    auto joined = network_.join(cluster::testing::identity_of(name, ++epochs_[name]));
    EXPECT_TRUE(joined.has_value());
    auto life = std::make_unique<Life>(*joined);
    RoleContext context;
    context.transport = life->endpoint;
    context.scope = &life->scope;
    context.timers = &time_;
    lives_[name] = std::move(life);
    return context;
  }

  template <class Role>
  void serve(const std::string& name, std::shared_ptr<Role> role) {
    lives_.at(name)->endpoint->serve(handler_of(std::move(role), name));
  }

  void end(Life& life) {
    boost::asio::co_spawn(life.endpoint->strand(), reap(&life),
                          [](std::exception_ptr error) { EXPECT_FALSE(error); });
  }
  static async::task<void> reap(Life* life) {
    co_await life->endpoint->stop();
    life->scope.cancel();
    auto joined = co_await life->scope.join();
    EXPECT_TRUE(joined.has_value());
    life->over = true;
  }

  async::task<core::Result<void>> run_and_note() {
    auto outcome = co_await controller_->run();
    took_ = time_.now().time_since_epoch();
    co_return outcome;
  }

  template <class Request>
  async::task<void> asked(Request request, std::string what) {
    auto reply = co_await controller_->on(std::move(request));
    events_.push_back(what + (reply ? words_of(*reply) : ": " + reply.error().message));
  }
  static std::string words_of(const Ack&) { return ""; }
  static std::string words_of(const RewardsChanged& changed) {
    return " holds from u" + std::to_string(changed.from_update);
  }
  static std::string words_of(const Published& published) {
    return " is version " + std::to_string(published.version);
  }

  const Script script_;
  const std::set<std::string> late_ = script_.late;
  Events events_;
  cluster::sim::VirtualTime time_;
  cluster::sim::SimNetwork network_;
  Hearer hearer_;
  std::map<std::string, std::uint64_t> epochs_;
  std::map<std::string, std::unique_ptr<Life>> lives_;
  std::vector<std::unique_ptr<Life>> past_;
  std::shared_ptr<ScriptedData> data_;
  std::unique_ptr<controller::Controller> controller_;
  core::Duration took_{};
};

}  // namespace troupe::actors::testing
