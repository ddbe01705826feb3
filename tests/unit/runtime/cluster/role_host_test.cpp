// The life of a role: made on its strand, served, asked to end, taken down in order; whatever
// escapes it is reported once and by name.
#include "runtime/cluster/role_host.hpp"

#include "runtime/cluster/loopback/loopback.hpp"
#include "tests/unit/runtime/cluster/support.hpp"

#include <boost/system/system_error.hpp>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace troupe::cluster {
namespace {

using namespace testing;
using Log = std::vector<std::string>;

// Does what the request's text says.
class ScriptedRole final : public Role {
 public:
  ScriptedRole(RoleServices services, Log* log, std::string activity)
      : services_(std::move(services)), log_(log), activity_(std::move(activity)) {
    log_->push_back("made");
  }
  ~ScriptedRole() override { log_->push_back("destroyed"); }

  async::task<Result<wire::Frame>> handle(wire::Frame request) override {
    const std::string text = text_of(request);
    if (text == "throw") throw std::runtime_error("out of ideas");
    if (text == "work") services_.activity.set_busy("step");
    if (text == "rest") services_.activity.set_idle("no tickets");
    if (text == "ask") services_.scope.spawn("asker", ask_back(services_.transport));
    if (text == "spawn") services_.scope.spawn("helper", wait("helper"));
    if (text == "wait") {
      auto waited = co_await wait("handler");
      static_cast<void>(waited);
    }
    auto reply = co_await echo(services_.transport->identity().self, std::move(request));
    co_return reply;
  }

  async::task<Result<void>> run() override {
    if (activity_ == "fail") co_return core::fail(ErrorCode::kNumeric, "the loss is not a number");
    if (activity_ == "wait") co_return co_await wait("activity");
    co_return Result<void>();
  }

  std::string state() const override { return "rehearsing"; }
  wire::Amounts amounts() const override { return {{"version", 7}}; }

 private:
  static async::task<Result<void>> ask_back(std::shared_ptr<Transport> transport) {
    auto answer = co_await ask(transport, "asker/0", "anybody there?");
    static_cast<void>(answer);
    co_return Result<void>();
  }

  async::task<Result<void>> wait(std::string who) {
    auto event = std::make_shared<async::Event>();
    Log* log = log_;
    try {
      co_await async::Event::wait(event);
    } catch (const boost::system::system_error&) {
      log->push_back(who + " unwound");
      throw;
    }
    co_return Result<void>();
  }

  RoleServices services_;
  Log* log_;
  std::string activity_;
};

class RoleHostTest : public ::testing::Test {
 protected:
  RoleHostTest() {
    asker_ = *network_.join(identity_of("asker/0"), time_.make_strand());
    RoleHost::Hooks hooks;
    hooks.failed = [this](const PeerName& who, const core::Error& error) {
      failures_.push_back(who + ": " + error.message);
    };
    hooks.shutdown_asked = [this](const PeerName& who) { log_.push_back(who + " asked to end"); };
    auto endpoint = *network_.join(identity_of("policy/0"), time_.make_strand());
    host_ = std::make_unique<RoleHost>(std::move(endpoint), hooks);
  }
  ~RoleHostTest() override {
    stop();
    Later<bool> stopped(asker_->strand(), stop_endpoint(asker_));
    now();
  }

  Result<void> start(std::string activity = "") {
    Log* log = &log_;
    RoleHost::Factory factory =
        [log, activity](const RoleServices& services) -> Result<std::unique_ptr<Role>> {
      if (activity == "no model") return core::fail(ErrorCode::kData, "no model");
      return std::unique_ptr<Role>(std::make_unique<ScriptedRole>(services, log, activity));
    };
    Later<Result<void>> started(time_.make_strand(), host_->start(std::move(factory)));
    now();
    return started.value();
  }
  void stop() {
    struct Stop {
      static async::task<bool> run(RoleHost* host) {
        co_await host->stop();
        co_return true;
      }
    };
    Later<bool> stopped(time_.make_strand(), Stop::run(host_.get()));
    now();
    EXPECT_TRUE(stopped.done());
  }
  Asked ask_role(const std::string& text) {
    Asked asked(asker_->strand(), ask(asker_, "policy/0", text));
    now();
    return asked;
  }
  void now() { EXPECT_TRUE(time_.run_for(0ms, kSteps)); }
  wire::RoleReport query(std::uint64_t spans_after) {
    const auto deadline = async::Deadline::after(time_, 1s);
    const auto frame = wire::query_role_frame(asker_->new_request(deadline), spans_after);
    Later<Result<wire::Frame>> called(asker_->strand(), asker_->call("policy/0", frame, deadline));
    now();
    EXPECT_TRUE(called.value().has_value());
    const auto report = wire::read_role_report(*called.value());
    EXPECT_TRUE(report.has_value());
    return *report;
  }

  sim::VirtualTime time_;
  LoopbackNetwork network_{time_};
  Log log_, failures_;
  std::shared_ptr<Endpoint> asker_;
  std::unique_ptr<RoleHost> host_;
};

using RoleHostLife = RoleHostTest;

TEST_F(RoleHostLife, ServesFromStartToStop) {
  ASSERT_TRUE(start());
  EXPECT_EQ(ask_role("hello").value().value(), "policy/0 heard hello");
  stop();
  EXPECT_EQ(log_, (Log{"made", "destroyed"}));
  EXPECT_EQ(ask_role("hello").value().error().code, ErrorCode::kPeerLost);
}

TEST_F(RoleHostLife, StopUnwindsHandlersThenTheScopeThenTheRole) {
  ASSERT_TRUE(start("wait"));
  ask_role("spawn");
  Asked waiting = ask_role("wait");
  EXPECT_FALSE(waiting.done());
  stop();
  EXPECT_EQ(log_,
            (Log{"made", "handler unwound", "activity unwound", "helper unwound", "destroyed"}));
  EXPECT_EQ(waiting.value().error().code, ErrorCode::kPeerLost);
  EXPECT_TRUE(failures_.empty());
}

TEST_F(RoleHostLife, AnErrorOfTheActivityIsReportedByName) {
  ASSERT_TRUE(start("fail"));
  EXPECT_EQ(failures_, (Log{"policy/0: policy/0: the loss is not a number"}));
}

TEST_F(RoleHostLife, AnExceptionOfAHandlerIsReportedOnceAndAnswered) {
  ASSERT_TRUE(start());
  Asked first = ask_role("throw");
  EXPECT_EQ(first.value().error().message, "policy/0: out of ideas");
  ask_role("throw");
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_NE(failures_[0].find("out of ideas"), std::string::npos);
}

TEST_F(RoleHostLife, ARoleThatCannotBeMadeIsNamed) {
  const auto started = start("no model");
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "policy/0: no model");
  EXPECT_EQ(ask_role("hello").value().error().message, "policy/0: the role does not serve yet");
}

TEST_F(RoleHostLife, TheHostAnswersPings) {
  ASSERT_TRUE(start());
  const auto deadline = async::Deadline::after(time_, 1s);
  const auto ping = wire::ping_frame(asker_->new_request(deadline));
  Later<Result<wire::Frame>> called(asker_->strand(), asker_->call("policy/0", ping, deadline));
  now();
  const auto pong = wire::read_pong(*called.value());
  ASSERT_TRUE(pong);
  EXPECT_EQ(pong->role, "policy/0");
  EXPECT_EQ(pong->state, "rehearsing");
}

TEST_F(RoleHostLife, AShutdownIsAcknowledgedAndPassedOn) {
  ASSERT_TRUE(start());
  const auto deadline = async::Deadline::after(time_, 1s);
  const auto frame = wire::shutdown_frame(asker_->new_request(deadline));
  Later<Result<wire::Frame>> called(asker_->strand(), asker_->call("policy/0", frame, deadline));
  now();
  ASSERT_TRUE(called.value().has_value());
  EXPECT_EQ(wire::frame_kind(*called.value()), "ack");
  EXPECT_EQ(log_, (Log{"made", "policy/0 asked to end"}));
}

TEST_F(RoleHostLife, TheHostReportsWhatTheRoleDoes) {
  ASSERT_TRUE(start());
  EXPECT_TRUE(time_.run_for(3s, kSteps));
  ask_role("work");
  EXPECT_TRUE(time_.run_for(2s, kSteps));
  ask_role("rest");
  EXPECT_TRUE(time_.run_for(1s, kSteps));
  const auto report = query(0);
  EXPECT_EQ(report.name, "policy/0");
  EXPECT_EQ(report.state, "rehearsing");
  EXPECT_EQ(report.epoch, 1u);
  EXPECT_EQ(report.actor, 0u);
  EXPECT_EQ(report.inbox, 0u);
  EXPECT_EQ(report.pending, 0u);
  EXPECT_EQ(report.frames_in, 3u);
  EXPECT_EQ(report.frames_out, 2u);
  EXPECT_EQ(report.busy_s, 2);
  EXPECT_EQ(report.wall_s, 6);
  EXPECT_EQ(report.idle_s, (wire::Amounts{{"no tickets", 1}, {"nothing asked", 3}}));
  EXPECT_EQ(report.amounts, (wire::Amounts{{"version", 7}}));
  ASSERT_EQ(report.spans.size(), 1u);
  EXPECT_EQ(report.spans[0].cause, "nothing asked");
  EXPECT_EQ(report.spans[0].state, "idle");
  EXPECT_EQ(report.spans[0].end - report.spans[0].begin, 3'000'000'000u);
  EXPECT_TRUE(query(report.next_span).spans.empty());
}

TEST_F(RoleHostLife, TheReportNamesWhomTheRoleWaitsFor) {
  asker_->serve(never);
  ASSERT_TRUE(start());
  EXPECT_EQ(query(0).waits_for, "");
  ask_role("ask");
  const auto report = query(0);
  EXPECT_EQ(report.waits_for, "asker/0");
  EXPECT_EQ(report.pending, 1u);
}

}  // namespace
}  // namespace troupe::cluster
