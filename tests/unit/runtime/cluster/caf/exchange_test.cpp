// Two exchanges introduce their roles to each other and carry their calls. A process that may not
// join is refused and told why.
#include "runtime/cluster/caf/exchange.hpp"

#include "runtime/cluster/limits.hpp"
#include "tests/unit/runtime/cluster/caf/support.hpp"

#include <gtest/gtest.h>

namespace troupe::cluster {
namespace {

using namespace testing;

// Answers under the name `self`, and says who answers.
async::task<Result<wire::Frame>> answer_as(std::string self, std::string who, wire::Frame request) {
  co_return text_reply(request, self, who + " heard " + text_of(request));
}
Handler handler_as(std::string self, std::string who) {
  return [self, who](wire::Frame frame) { return answer_as(self, who, std::move(frame)); };
}

using ExchangeIntroductions = ExchangeTest;
using ExchangeCalls = ExchangeTest;

TEST_F(ExchangeIntroductions, RolesOfBothSidesCallEachOther) {
  connect();
  EXPECT_EQ(ask_now(away_role_, "home/0", "hello").value(), "home/0 heard hello");
  EXPECT_EQ(ask_now(home_role_, "away/0", "hello").value(), "away/0 heard hello");
}

TEST_F(ExchangeIntroductions, RolesOfOneProcessUseTheSamePath) {
  auto other = home_.join_echo("other/0");
  EXPECT_EQ(ask_now(home_role_, "other/0", "hello").value(), "other/0 heard hello");
  EXPECT_EQ(home_.exchange->counters().frames_in, 2u);
  EXPECT_TRUE(eventually([&] { return home_.exchange->counters().frames_out == 2; }));
}

TEST_F(ExchangeIntroductions, RolesThatJoinLaterAreAnnouncedBothWays) {
  connect();
  home_.join_echo("late/0");
  away_.join_echo("late/1");
  ASSERT_NE(away_.events.wait("arrived late/0"), "");
  ASSERT_NE(home_.events.wait("arrived late/1"), "");
  EXPECT_EQ(ask_now(away_role_, "late/0", "x").value(), "late/0 heard x");
  EXPECT_EQ(ask_now(home_role_, "late/1", "x").value(), "late/1 heard x");
}

TEST_F(ExchangeIntroductions, ActorIdsAreThoseOfTheProcessThatHasTheRole) {
  connect();
  EXPECT_NE(home_.exchange->actor_id("home/0"), 0u);
  EXPECT_EQ(home_.exchange->actor_id("home/0"), home_role_->actor());
  EXPECT_EQ(away_.exchange->actor_id("home/0"), home_role_->actor());
  EXPECT_EQ(away_.exchange->actor_id("nobody/0"), 0u);
}

TEST_F(ExchangeIntroductions, AStrangerIsRefusedToldWhyAndStaysUnknown) {
  home_.admit = [](const wire::Hello& hello, const std::string& origin) -> Result<void> {
    EXPECT_FALSE(origin.empty());
    if (hello.pass == "the pass") return core::fail(ErrorCode::kConfig, "the pass is wrong");
    return {};
  };
  const auto connected = away_.connect(path_, "away/0");
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, ErrorCode::kConfig);
  EXPECT_EQ(connected.error().message, path_ + ": the pass is wrong");
  EXPECT_NE(home_.events.wait("refused an introduction was refused: the pass is wrong"), "");
  EXPECT_EQ(ask_now(home_role_, "away/0", "x").error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(ask_now(away_role_, "home/0", "x").error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(home_.exchange->counters().refused, 1u);
  EXPECT_EQ(away_.events.count("arrived"), 0);
}

TEST_F(ExchangeIntroductions, ThePassReachesTheHookAndOnlyOnce) {
  std::vector<std::string> asked;
  home_.admit = [&asked](const wire::Hello& hello, const std::string&) -> Result<void> {
    asked.push_back(hello.name + " with '" + hello.pass + "'");
    return {};
  };
  away_.join("away/1");
  connect();
  ASSERT_NE(home_.events.wait("arrived away/1"), "");
  EXPECT_EQ(asked, (std::vector<std::string>{"away/0 with 'the pass'", "away/1 with ''"}));
}

TEST_F(ExchangeIntroductions, AProcessCannotTakeANameOfOurs) {
  connect();
  away_.exchange->forget("home/0", {ErrorCode::kPeerLost, "to be free for the theft"});
  away_.join_echo("home/0", 9);
  ASSERT_NE(home_.events.wait("refused an introduction was refused: home/0 is a role of"), "");
  ASSERT_NE(away_.events.wait("refused another process does not take home/0 in"), "");
  auto other = home_.join("other/0");
  EXPECT_EQ(ask_now(other, "home/0", "x").value(), "home/0 heard x");
  EXPECT_EQ(home_.exchange->actor_id("home/0"), home_role_->actor());
}

TEST_F(ExchangeIntroductions, ANameOfALivingProcessCannotBeTakenByAnother) {
  connect();
  Troupe thief;
  thief.join_echo("away/0", 9);
  const auto connected = thief.connect(path_, "away/0", 9);
  ASSERT_FALSE(connected);
  EXPECT_NE(connected.error().message.find("away/0 belongs to another process"), std::string::npos)
      << connected.error().message;
  EXPECT_EQ(ask_now(home_role_, "away/0", "x").value(), "away/0 heard x");
}

// As when a reward is detached and attached again before its process has gone.
TEST_F(ExchangeIntroductions, ANameThatWasGivenUpIsFreeWhileItsLastProcessStillLives) {
  auto last = std::make_unique<Troupe>();
  last->join_echo("guest/0");
  last->join("guest/1");
  ASSERT_TRUE(last->connect(path_, "guest/0"));
  ASSERT_NE(home_.events.wait("arrived guest/1"), "");
  home_.exchange->forget("guest/0", {ErrorCode::kPeerLost, "guest/0 was told to leave"}, 1);
  serve_there(away_.join("guest/0", 2), handler_as("guest/0", "the next"));
  ASSERT_TRUE(away_.connect(path_, "guest/0", 2));
  ASSERT_NE(home_.events.wait("arrived guest/0 2"), "");
  EXPECT_EQ(ask_now(home_role_, "guest/0", "x").value(), "the next heard x");
  last.reset();  // its end, which is heard of now, is no news of the next one
  ASSERT_NE(home_.events.wait("lost guest/1"), "");
  EXPECT_EQ(home_.events.count("lost guest/0"), 0);
  EXPECT_EQ(ask_now(home_role_, "guest/0", "x").value(), "the next heard x");
  EXPECT_EQ(home_.events.count("refused"), 0);
}

TEST_F(ExchangeIntroductions, OnlyTheLifeThatIsMeantIsGivenUp) {
  away_.stop(away_role_);
  away_.join_echo("away/0", 2);
  ASSERT_TRUE(away_.connect(path_, "away/0", 2));
  ASSERT_NE(home_.events.wait("arrived away/0 2"), "");
  home_.exchange->forget("away/0", {ErrorCode::kPeerLost, "the first one is gone"}, 1);
  EXPECT_EQ(ask_now(home_role_, "away/0", "x").value(), "away/0 heard x");
}

// Whoever was refused for a name asks again, and is told when it is known under it.
TEST_F(ExchangeIntroductions, ARoleIsPresentedUntilItsNameIsFree) {
  connect();
  Troupe next;
  next.join("next/0");
  ASSERT_TRUE(next.connect(path_, "next/0"));
  serve_there(next.join("away/0", 2), handler_as("away/0", "the next"));
  const auto present = [&](const std::string& name) {
    return next.exchange->present(name, "home/0", kPatience);
  };
  const std::string taken = "away/0 belongs to another process";
  ASSERT_NE(home_.events.wait("refused an introduction was refused: " + taken), "");
  for (int i = 0; i < 2; ++i) {
    const auto refused = present("away/0");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().message, taken);
  }
  EXPECT_EQ(ask_now(home_role_, "away/0", "x").value(), "away/0 heard x") << "who lives stays";
  away_.stop(away_role_);
  ASSERT_NE(home_.events.wait("lost away/0 1"), "");
  EXPECT_TRUE(eventually([&] { return present("away/0").has_value(); }));
  EXPECT_EQ(ask_now(home_role_, "away/0", "x").value(), "the next heard x");
  EXPECT_TRUE(present("away/0")) << "again, which changes nothing";
  EXPECT_EQ(home_.events.count("arrived away/0 2"), 1);
  EXPECT_EQ(present("nobody/0").error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(next.exchange->present("away/0", "nobody/0", kPatience).error().code,
            ErrorCode::kPeerLost);
}

TEST_F(ExchangeIntroductions, ALowerEpochIsRefusedAndAHigherOneIsTaken) {
  connect();
  away_.stop(away_role_);
  ASSERT_NE(home_.events.wait("lost away/0 1"), "");
  away_.join_echo("away/0", 0);
  ASSERT_NE(home_.events.wait("refused an introduction was refused: away/0 of epoch 0 comes after"),
            "");
  EXPECT_EQ(ask_now(home_role_, "away/0", "x").error().code, ErrorCode::kPeerLost);
  ASSERT_NE(away_.events.wait("refused another process does not take away/0 in"), "");
}

TEST_F(ExchangeIntroductions, ARoleThatStartsAgainIsKnownAgain) {
  connect();
  away_.stop(away_role_);
  ASSERT_NE(home_.events.wait("lost away/0 1"), "");
  away_.join_echo("away/0", 2);
  ASSERT_NE(home_.events.wait("arrived away/0 2"), "");
  const auto heard = ask_now(home_role_, "away/0", "x");
  ASSERT_TRUE(heard) << heard.error().message;
  EXPECT_EQ(*heard, "away/0 heard x");
}

// The loss of a life is told through actors, and may come after the next life was called.
TEST_F(ExchangeIntroductions, ALossThatIsToldLateLeavesCallsToTheNextLifeAlone) {
  connect();
  const auto silent = away_.join("silent/0", 2);
  serve_there(silent, never);
  ASSERT_NE(home_.events.wait("arrived silent/0 2"), "");
  auto asked = start_ask(home_role_, "silent/0", "x");
  const auto told = [&](std::uint64_t epoch) {
    std::promise<std::size_t> waiting;
    async::post(home_role_->strand(), [&] {
      home_role_->on_peer_lost("silent/0", {ErrorCode::kPeerLost, "silent/0 is lost"}, epoch);
      waiting.set_value(home_role_->pending_calls());
    });
    return waiting.get_future().get();
  };
  EXPECT_EQ(told(1), 1u);
  EXPECT_EQ(asked.wait_for(0s), std::future_status::timeout);
  told(2);
  ASSERT_EQ(asked.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(asked.get().error().code, ErrorCode::kPeerLost);
}

TEST_F(ExchangeIntroductions, ConnectingTwiceChangesNothing) {
  connect();
  connect();
  EXPECT_EQ(home_.events.count("arrived away/0"), 1);
  EXPECT_EQ(away_.events.count("arrived home/0"), 1);
  EXPECT_EQ(ask_now(home_role_, "away/0", "x").value(), "away/0 heard x");
}

TEST_F(ExchangeIntroductions, OneIntroducesOnlyARoleOfItsOwn) {
  const auto connected = away_.connect(path_, "nobody/0");
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(home_.connect(path_, "home/0"));  // to itself
}

// Two processes that only `home` is linked with.
class ExchangeAcquaintances : public ExchangeTest {
 protected:
  ExchangeAcquaintances() {
    third_role_ = third_->join_echo("third/0");
    silent_ = third_->join("silent/0");
    serve_there(silent_, never);
  }
  void introduce() {
    connect();
    const auto connected = third_->connect(path_, "third/0");
    ASSERT_TRUE(connected) << connected.error().message;
    ASSERT_NE(home_.events.wait("arrived third/0"), "");
    EXPECT_EQ(ask_now(third_role_, "away/0", "x").error().code, ErrorCode::kPeerLost);
    ASSERT_NE(home_.events.wait("arrived silent/0"), "");
    home_.exchange->introduce("away/0", "third/0");
    home_.exchange->introduce("silent/0", "away/0");
    ASSERT_NE(third_->events.wait("arrived away/0 1"), "");
    ASSERT_NE(away_.events.wait("arrived third/0 1"), "");
    ASSERT_NE(away_.events.wait("arrived silent/0 1"), "");
  }

  std::unique_ptr<Troupe> third_ = std::make_unique<Troupe>();
  std::shared_ptr<Endpoint> third_role_, silent_;
};

TEST_F(ExchangeAcquaintances, CallEachOtherWithoutAWordToTheOneThatIntroducedThem) {
  introduce();
  EXPECT_TRUE(ask_now(third_role_, "home/0", "x"));  // and so is what was said before
  EXPECT_TRUE(ask_now(away_role_, "home/0", "x"));
  const auto heard = home_.exchange->counters().frames_in;
  EXPECT_EQ(ask_now(third_role_, "away/0", "hello").value(), "away/0 heard hello");
  EXPECT_EQ(ask_now(away_role_, "third/0", "hello").value(), "third/0 heard hello");
  const std::string large(900'000, 'x');
  EXPECT_EQ(ask_now(third_role_, "away/0", large).value(), "away/0 heard " + large);
  EXPECT_EQ(home_.exchange->counters().frames_in, heard);
  EXPECT_EQ(home_.exchange->counters().refused, 0u);
}

TEST_F(ExchangeAcquaintances, AStoppedRoleFailsTheCallsToItAtOnce) {
  introduce();
  auto asked = start_ask(away_role_, "silent/0", "x");
  ASSERT_TRUE(eventually([&] { return silent_->inbox() == 1; }));
  third_->stop(silent_);
  EXPECT_EQ(asked.get().error().code, ErrorCode::kPeerLost);
  ASSERT_NE(away_.events.wait("lost silent/0 1"), "");
  EXPECT_EQ(ask_now(away_role_, "silent/0", "x").error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(ask_now(away_role_, "third/0", "x").value(), "third/0 heard x");
  EXPECT_EQ(away_.events.count("refused"), 0);
}

TEST_F(ExchangeAcquaintances, AProcessThatGoesIsLostToTheOtherAndItsNextLifeIsIntroducedAnew) {
  introduce();
  third_role_ = silent_ = nullptr;
  third_.reset();
  ASSERT_NE(away_.events.wait("lost third/0 1"), "");
  Troupe next;
  auto role = next.join_echo("third/0", 2);
  ASSERT_TRUE(next.connect(path_, "third/0", 2));
  ASSERT_NE(home_.events.wait("arrived third/0 2"), "");
  home_.exchange->introduce("third/0", "away/0");
  ASSERT_NE(away_.events.wait("arrived third/0 2"), "");
  ASSERT_NE(next.events.wait("arrived away/0 1"), "");
  EXPECT_EQ(ask_now(away_role_, "third/0", "again").value(), "third/0 heard again");
}

TEST_F(ExchangeAcquaintances, ARoleThatIsGivenUpIsLostToThoseItWasIntroducedTo) {
  introduce();
  auto asked = start_ask(away_role_, "silent/0", "x");
  ASSERT_TRUE(eventually([&] { return silent_->inbox() == 1; }));
  home_.exchange->forget("silent/0", {ErrorCode::kPeerLost, "silent/0 is frozen"});
  EXPECT_EQ(asked.get().error().message, "silent/0 is frozen");
}

TEST_F(ExchangeCalls, AnUnknownPeerIsLostAtOnce) {
  const auto answer = ask_now(home_role_, "nobody/0", "x");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kPeerLost);
  EXPECT_NE(answer.error().message.find("nobody/0"), std::string::npos);
}

TEST_F(ExchangeCalls, AFullInboxRefusesAtOnce) {
  auto busy = home_.join("busy/0");
  serve_there(busy, never);
  connect();
  ASSERT_NE(away_.events.wait("arrived busy/0"), "");
  std::vector<std::future<Result<std::string>>> waiting;
  for (std::uint64_t i = 0; i < limits::kRoleInbox_frames_max; ++i) {
    waiting.push_back(start_ask(away_role_, "busy/0", "never"));
  }
  const auto refused = ask_now(away_role_, "busy/0", "never");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_NE(refused.error().message.find("inbox of busy/0"), std::string::npos);
  home_.stop(busy);
  for (auto& call : waiting)
    EXPECT_EQ(call.get().error().code, ErrorCode::kPeerLost);
}

TEST_F(ExchangeCalls, AStoppedRoleFailsTheCallsToItAtOnceOnBothSides) {
  auto silent = home_.join("silent/0");
  serve_there(silent, never);
  connect();
  ASSERT_NE(away_.events.wait("arrived silent/0"), "");
  auto far = start_ask(away_role_, "silent/0", "x");
  auto near = start_ask(home_role_, "silent/0", "x");
  ASSERT_TRUE(eventually([&] { return silent->inbox() == 2; }));
  home_.stop(silent);
  EXPECT_EQ(far.get().error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(near.get().error().code, ErrorCode::kPeerLost);
  EXPECT_NE(away_.events.wait("lost silent/0 1: silent/0 is lost: it has stopped"), "");
}

TEST_F(ExchangeCalls, AForgottenPeerIsLostAtOnceAndNotHeardAgain) {
  away_.stop(away_role_);
  away_role_ = away_.join("away/0", 2);
  serve_there(away_role_, never);
  const auto connected = away_.connect(path_, "away/0", 2);
  ASSERT_TRUE(connected);
  ASSERT_NE(home_.events.wait("arrived away/0 2"), "");
  auto call = start_ask(home_role_, "away/0", "x");
  ASSERT_TRUE(eventually([&] { return away_role_->inbox() == 1; }));
  home_.exchange->forget("away/0", {ErrorCode::kDeadline, "away/0 is frozen"});
  const auto ended = call.get();
  EXPECT_EQ(ended.error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(ended.error().message, "away/0 is frozen");
  // What it says from now on is dropped and counted, and it is told so.
  ASSERT_NE(away_.events.wait("arrived home/0"), "");
  EXPECT_EQ(ask_now(away_role_, "home/0", "x").error().message,
            "home/0: away/0 was given up here: it can come back as a later epoch");
  EXPECT_EQ(home_role_->inbox(), 0u);
  EXPECT_EQ(home_.exchange->counters().stray, 1u);
  EXPECT_EQ(home_.events.count("lost"), 0);
  EXPECT_FALSE(away_.connect(path_, "away/0", 2)) << "given up, and not started again";
}

TEST_F(ExchangeCalls, AKilledActorEndsItsRoleAndIsLostToAll) {
  connect();
  std::promise<core::Error> reported;
  auto victim = home_.join("victim/0");
  serve_there(victim, never);
  victim->on_bug([&reported](const core::Error& error) { reported.set_value(error); });
  ASSERT_NE(away_.events.wait("arrived victim/0"), "");
  auto far = start_ask(away_role_, "victim/0", "x");
  auto near = start_ask(home_role_, "victim/0", "x");
  auto own = start_ask(victim, "victim/0", "x");
  ASSERT_TRUE(eventually([&] { return victim->inbox() == 3; }));
  EXPECT_FALSE(away_.exchange->kill_actor("victim/0")) << "not a role of that process";
  EXPECT_TRUE(home_.exchange->kill_actor("victim/0"));
  EXPECT_EQ(far.get().error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(near.get().error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(own.get().error().code, ErrorCode::kClosed);
  const auto error = reported.get_future().get();
  EXPECT_EQ(error.code, ErrorCode::kPeerLost);
  EXPECT_EQ(error.message, "victim/0: its actor was ended");
  EXPECT_NE(away_.events.wait("lost victim/0 1: victim/0 is lost: its actor was killed"), "");
  EXPECT_EQ(ask_now(victim, "home/0", "x").error().code, ErrorCode::kClosed);
}

// As when a head is gone and the next one comes: what is kept back is heard of only when it is
// announced, under its old epoch, and roles that know each other through a head meet again.
TEST_F(ExchangeIntroductions, RolesMoveToAnotherProcessAndMeetThereAgain) {
  auto first = std::make_unique<Troupe>();
  auto second = std::make_unique<Troupe>();
  auto old_head = first->join_echo("head/0");
  auto kept = away_.join_echo("kept/0");
  auto other = home_.join_echo("kept/1");
  const std::string first_path = first->exchange->listen().value();
  ASSERT_TRUE(away_.connect(first_path, "away/0"));
  ASSERT_TRUE(home_.connect(first_path, "home/0"));
  ASSERT_NE(first->events.wait("arrived kept/0"), "");
  ASSERT_NE(first->events.wait("arrived kept/1"), "");
  first->exchange->introduce("kept/0", "kept/1");
  ASSERT_NE(away_.events.wait("arrived kept/1"), "");
  EXPECT_EQ(ask_now(kept, "kept/1", "x").value(), "kept/1 heard x");
  first.reset();
  ASSERT_NE(away_.events.wait("lost head/0"), "");
  ASSERT_NE(home_.events.wait("lost head/0"), "");
  ASSERT_NE(away_.events.wait("lost kept/1"), "");

  auto head = second->join_echo("head/0", 2);
  const std::string path = second->exchange->listen().value();
  away_.exchange->keep_back("kept/0");
  home_.exchange->keep_back("kept/1");
  ASSERT_TRUE(away_.connect(path, "away/0"));
  ASSERT_TRUE(home_.connect(path, "home/0"));
  EXPECT_EQ(ask_now(away_role_, "head/0", "x").value(), "head/0 heard x");
  EXPECT_EQ(second->events.count("arrived kept"), 0);
  EXPECT_EQ(ask_now(kept, "head/0", "x").error().code, ErrorCode::kPeerLost) << "nobody knows it";
  away_.exchange->announce("kept/0");
  home_.exchange->announce("kept/1");
  ASSERT_NE(second->events.wait("arrived kept/0"), "");
  ASSERT_NE(second->events.wait("arrived kept/1"), "");
  EXPECT_EQ(ask_now(head, "kept/0", "x").value(), "kept/0 heard x");
  second->exchange->introduce("kept/0", "kept/1");
  ASSERT_TRUE(eventually([&] { return away_.exchange->actor_id("kept/1") == other->actor(); }));
  EXPECT_EQ(ask_now(kept, "kept/1", "x").value(), "kept/1 heard x");
}

TEST_F(ExchangeIntroductions, AProcessThatWasPartedFromIsNotHeardAnyMore) {
  connect();
  EXPECT_EQ(ask_now(home_role_, "away/0", "x").value(), "away/0 heard x");
  away_.exchange->part_from("home/0");
  ASSERT_NE(away_.events.wait("lost home/0"), "");
  EXPECT_EQ(ask_now(away_role_, "home/0", "x").error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(ask_now(home_role_, "away/0", "x").error().code, ErrorCode::kPeerLost);
  Troupe next;
  next.join_echo("home/0", 2);
  const std::string path = next.exchange->listen().value();
  ASSERT_TRUE(away_.connect(path, "away/0"));
  EXPECT_EQ(ask_now(away_role_, "home/0", "x").value(), "home/0 heard x");
}

}  // namespace
}  // namespace troupe::cluster
