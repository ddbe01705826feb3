// A session whose roles cannot be had ends with the cause, and takes down what there is.
#include "apps/session/run_session.hpp"

#include "apps/session/session_news.hpp"

#include <gtest/gtest.h>

namespace troupe::session {
namespace {

using core::ErrorCode;
using core::Result;
using Events = std::vector<std::string>;

// Without any role.
class BarePlane final : public ControlPlane {
 public:
  BarePlane(Result<void> started, Events& events)
      : started_(std::move(started)), events_(events), io_(1) {}

  async::IoThreads& io() override { return io_; }
  Result<std::shared_ptr<cluster::Endpoint>> join(const std::string& name) override {
    events_.push_back("join " + name);
    return core::fail(ErrorCode::kClosed, "no place for " + name);
  }
  Result<void> start_roles() override {
    events_.push_back("start");
    return started_;
  }
  std::string arithmetic() const override { return "f32/v1/0"; }
  void prepare(actors::controller::Controller&) override { events_.push_back("prepare"); }
  void attach(RunSession&) override { events_.push_back("attach"); }
  void write_report() override { events_.push_back("report"); }
  void stop_roles(bool over) override { events_.push_back(over ? "stop, over" : "stop"); }

 private:
  const Result<void> started_;
  Events& events_;
  async::IoThreads io_;
};

Result<void> run_on(BarePlane& plane, bool folder_here) {
  SessionParts parts;
  parts.check_place = [folder_here]() -> Result<void> {
    if (folder_here) return {};
    return core::fail(core::ErrorCode::kResources, "the folder is gone");
  };
  RunSession session(plane, std::move(parts));
  return session.run();
}

TEST(RunSession, WithoutItsRolesItEndsWithTheCauseAndMakesNoneOfItsOwn) {
  Events events;
  BarePlane plane(core::fail(ErrorCode::kConfig, "reward/0: no such file"), events);
  const auto ended = run_on(plane, true);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kConfig);
  EXPECT_EQ(ended.error().message, "reward/0: no such file");
  EXPECT_EQ(events, (Events{"start", "report", "stop"}));
}

TEST(RunSession, WithoutAPlaceItEndsAndLeavesAFolderThatIsGoneAlone) {
  Events events;
  BarePlane plane({}, events);
  const auto ended = run_on(plane, false);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "no place for data/0");
  EXPECT_EQ(events, (Events{"start", "join data/0", "stop"}));
}

TEST(RunSession, AnErrorBeforeThereIsAControllerIsTheOutcome) {
  Events events;
  BarePlane plane({}, events);
  SessionParts parts;
  parts.check_place = []() -> Result<void> {
    return core::fail(core::ErrorCode::kResources, "the folder is gone");
  };
  RunSession session(plane, std::move(parts));
  session.end({ErrorCode::kPeerLost, "policy/0 stayed away"});
  const auto ended = session.run();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kDeadline) << "it is not played again";
  EXPECT_EQ(ended.error().message, "policy/0 stayed away");
}

TEST(SessionNews, ASessionIsEndedByWhatCameBeforeIt) {
  Events events;
  BarePlane plane({}, events);
  SessionParts parts;
  parts.check_place = [] { return Result<void>(); };
  RunSession session(plane, std::move(parts));
  SessionNews news;
  news.give_up({ErrorCode::kResources, "no memory"});
  news.give_up({ErrorCode::kInternal, "and then this"});
  EXPECT_FALSE(news.attach(session));
  EXPECT_EQ(news.hopeless()->message, "no memory");
  EXPECT_EQ(session.run().error().message, "no memory");
}

TEST(SessionNews, OnlyASessionThatIsAttachedIsTold) {
  Events events;
  BarePlane plane({}, events);
  SessionParts parts;
  parts.check_place = [] { return Result<void>(); };
  RunSession told(plane, parts), gone(plane, parts);
  SessionNews news;
  EXPECT_TRUE(news.attach(gone));
  news.detach();
  EXPECT_TRUE(news.attach(told));
  news.give_up({ErrorCode::kNumeric, "NaN"});
  EXPECT_EQ(told.run().error().message, "NaN");
  EXPECT_EQ(gone.run().error().message, "no place for data/0");
}

}  // namespace
}  // namespace troupe::session
