// Roles in two exchanges call each other at random while actors are killed, roles stop and come
// back, and peers are given up. Real threads, so the order is not repeatable; the rules are: every
// call ends once and with an outcome that has a reason, an answer never goes to another call, and
// when all is over nothing is pending. A failure prints the seed of the misfortunes.
#include "runtime/core/rng.hpp"
#include "tests/unit/runtime/cluster/caf/support.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>

namespace troupe::cluster {
namespace {

using namespace testing;

constexpr int kRoles = 6;  // even ones at home, odd ones away
constexpr int kCallers = 3;
constexpr int kCalls = 150;
constexpr int kMisfortunes = 40;

PeerName name_of(std::uint64_t role) {
  return "role/" + std::to_string(role);
}

struct Outcomes {
  std::mutex mutex;
  std::map<ErrorCode, int> failures;
  int answered = 0, started = 0;
  std::vector<std::string> wrong;

  void add(const PeerName& peer, const std::string& text, const Result<std::string>& answer) {
    const std::lock_guard lock(mutex);
    if (!answer) {
      ++failures[answer.error().code];
      const bool named = answer.error().message.find("role/") != std::string::npos;
      if (!named) wrong.push_back("no name in: " + answer.error().message);
      return;
    }
    ++answered;
    if (*answer != peer + " heard " + text) wrong.push_back(text + " got " + *answer);
  }
};

// Calls until its role has ended or it has made all its calls.
async::task<int> call_others(std::shared_ptr<Endpoint> self,
                             std::uint64_t seed,
                             Outcomes* outcomes) {
  core::Rng rng(seed, 0);
  for (int i = 0; i < kCalls; ++i) {
    const PeerName peer = name_of(rng.next_below(kRoles));
    const std::string text = self->identity().self + " " + std::to_string(seed) + " " +
                             std::to_string(i) + std::string(rng.next_below(5000), 'x');
    {
      const std::lock_guard lock(outcomes->mutex);
      ++outcomes->started;
    }
    auto answer = co_await ask(self, peer, text, 60s);
    outcomes->add(peer, text, answer);
    if (!answer && answer.error().code == ErrorCode::kClosed) break;
  }
  co_return 0;
}

struct Life {
  std::shared_ptr<Endpoint> endpoint;
  std::vector<std::future<int>> callers;
};

class Company {
 public:
  explicit Company(std::uint64_t seed) : rng_(seed, 1) {
    for (std::uint64_t role = 0; role < kRoles; ++role)
      begin(role);
    const auto path = *sides_[0].exchange->listen();
    EXPECT_TRUE(sides_[1].connect(path, name_of(1)));
  }

  void play() {
    for (int i = 0; i < kMisfortunes; ++i) {
      const int calls = 20 * (i + 1);
      if (!eventually([&] { return ended() >= calls || idle(); })) ADD_FAILURE() << "no progress";
      misfortune();
    }
    for (auto& [role, life] : lives_)
      finish(life);
    for (auto& life : past_)
      finish(life);
    for (auto& life : past_)
      EXPECT_EQ(life.endpoint->pending_calls(), 0u);
    // An endpoint holds a strand, so it goes before the threads of its side.
    past_.clear();
    lives_.clear();
  }
  Outcomes& outcomes() { return outcomes_; }

 private:
  void begin(std::uint64_t role) {
    auto& side = sides_[role % 2];
    Life life{side.join_echo(name_of(role), ++epochs_[role]), {}};
    for (std::uint64_t caller = 0; caller < kCallers; ++caller) {
      life.callers.push_back(
          start_on(life.endpoint->strand(), call_others(life.endpoint, ++seeds_, &outcomes_)));
    }
    lives_[role] = std::move(life);
  }

  void misfortune() {
    const std::uint64_t role = rng_.next_below(kRoles);
    auto& side = sides_[role % 2];
    switch (rng_.next_below(3)) {
      case 0:
        EXPECT_TRUE(side.exchange->kill_actor(name_of(role)));
        break;
      case 1:
        side.stop(lives_[role].endpoint);
        break;
      default:  // as a supervisor does with a role that is frozen
        sides_[1 - role % 2].exchange->forget(name_of(role),
                                              {ErrorCode::kPeerLost, name_of(role) + " given up"});
        side.stop(lives_[role].endpoint);
    }
    // The name is free once its actor is gone.
    EXPECT_TRUE(eventually([&] { return side.exchange->actor_id(name_of(role)) == 0; }));
    past_.push_back(std::move(lives_[role]));
    begin(role);
  }

  int ended() {
    const std::lock_guard lock(outcomes_.mutex);
    int count = outcomes_.answered;
    for (const auto& [code, times] : outcomes_.failures)
      count += times;
    return count;
  }
  bool idle() {
    const int before = ended();
    const std::lock_guard lock(outcomes_.mutex);
    return before == outcomes_.started;
  }
  static void finish(Life& life) {
    for (auto& caller : life.callers) {
      EXPECT_EQ(caller.wait_for(kPatience), std::future_status::ready);
    }
  }

  core::Rng rng_;
  Outcomes outcomes_;
  std::map<std::uint64_t, Life> lives_;
  std::vector<Life> past_;
  std::map<std::uint64_t, std::uint64_t> epochs_;
  std::uint64_t seeds_ = 0;
  std::array<Troupe, 2> sides_;  // ends first, while what its coroutines use is still there
};

TEST(RandomExchange, EveryCallEndsOnceAndNothingIsLeft) {
  std::map<ErrorCode, int> failures;
  int answered = 0;
  for (std::uint64_t seed = 0; seed < 5 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Company company(seed);
    company.play();
    Outcomes& outcomes = company.outcomes();
    int ends = outcomes.answered;
    for (const auto& [code, times] : outcomes.failures) {
      ends += times;
      failures[code] += times;
      EXPECT_TRUE(code == ErrorCode::kPeerLost || code == ErrorCode::kClosed)
          << core::error_name(code) << ", " << times << " times";
    }
    answered += outcomes.answered;
    EXPECT_EQ(ends, outcomes.started);
    EXPECT_TRUE(outcomes.wrong.empty()) << outcomes.wrong.front();
  }
  EXPECT_GT(answered, 1000);
  EXPECT_GT(failures[ErrorCode::kPeerLost], 50);
}

}  // namespace
}  // namespace troupe::cluster
