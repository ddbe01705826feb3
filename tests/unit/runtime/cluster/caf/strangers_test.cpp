// What a process that speaks CAF but not our protocol can do to an exchange: nothing but be
// counted. Its actors send garbage, oversized frames, frames in another's name, and messages of
// other types.
#include "runtime/cluster/caf/exchange.hpp"
#include "runtime/cluster/caf/local_middleman.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/net/socket_folder.hpp"
#include "runtime/wire/hello.hpp"
#include "runtime/wire/limits.hpp"
#include "tests/unit/runtime/cluster/caf/support.hpp"

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <gtest/gtest.h>

namespace troupe::cluster::testing {

// Any bytes, under the name of our frames.
struct RawBytes {
  std::vector<char> bytes;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, RawBytes& raw) {
  return f(caf::meta::type_name("troupe.frame"), raw.bytes);
}

inline RawBytes raw(const wire::Frame& frame) {
  const auto* begin = reinterpret_cast<const char*>(frame.bytes().data());
  return {{begin, begin + frame.size_bytes()}};
}

struct RawSettings : caf::actor_system_config {
  explicit RawSettings(const std::string& application) {
    add_message_type<RawBytes>("troupe.frame");
    load<caf::io::middleman>();
    set("scheduler.max-threads", std::size_t{1});
    set("scheduler.policy", caf::atom("sharing"));
    set("middleman.app-identifiers", std::vector<std::string>{application});
  }
};

// A process of its own kind, with one actor that collects the roles it is told of.
class RawProcess {
 public:
  explicit RawProcess(const std::string& application = "troupe/1")
      : settings_(application),
        system_(settings_),
        middleman_(exchange::make_local_middleman(system_)) {
    actor_ = system_.spawn(
        [this](caf::event_based_actor* self, int) -> caf::behavior {
          self->set_default_handler(caf::drop);
          return {[this](const RawBytes& bytes, const caf::actor& who) {
                    const auto frame = wire::Frame::copy_of(std::as_bytes(std::span(bytes.bytes)));
                    const auto hello = wire::read_hello(*frame);
                    const std::lock_guard lock(mutex_);
                    roles_.emplace(hello->name, who);
                    changed_.notify_all();
                  },
                  [this](const RawBytes&) {
                    const std::lock_guard lock(mutex_);
                    ++answers_;
                    changed_.notify_all();
                  }};
        },
        0);
  }
  ~RawProcess() {
    caf::anon_send_exit(actor_, caf::exit_reason::kill);
    actor_ = nullptr;
    introducer_ = nullptr;
    roles_.clear();
    caf::scoped_actor self(system_, true);
    self->send_exit(middleman_, caf::exit_reason::kill);
    self->wait_for(middleman_);
    middleman_ = nullptr;
  }

  bool reach(const std::string& path) {
    caf::scoped_actor self(system_);
    self->request(middleman_, kPatience, caf::connect_atom::value, path, std::uint16_t{0})
        .receive(
            [this](const caf::node_id&, const caf::strong_actor_ptr& introducer,
                   const std::set<std::string>&) {
              introducer_ = caf::actor_cast<caf::actor>(introducer);
            },
            [](const caf::error&) {});
    return static_cast<bool>(introducer_);
  }
  bool listen(const std::string& path) {
    caf::scoped_actor self(system_);
    bool listens = false;
    self->request(middleman_, kPatience, caf::publish_atom::value, std::uint16_t{7},
                  caf::actor_cast<caf::strong_actor_ptr>(actor_), std::set<std::string>(), path,
                  false)
        .receive([&](std::uint16_t) { listens = true; }, [](const caf::error&) {});
    return listens;
  }
  caf::actor role(const std::string& name) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return roles_.contains(name); });
    return roles_[name];
  }
  int wait_for_answers(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return answers_ >= count; });
    return answers_;
  }
  caf::actor& self() { return actor_; }
  caf::actor& introducer() { return introducer_; }

 private:
  RawSettings settings_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, caf::actor> roles_;
  int answers_ = 0;
  caf::actor_system system_;
  caf::io::middleman_actor middleman_;
  caf::actor actor_, introducer_;
};

class StrangersTest : public ::testing::Test {
 protected:
  StrangersTest() {
    role_ = home_.join_echo("home/0");
    other_ = home_.join_echo("home/1");
    path_ = *home_.exchange->listen();
  }
  // The stranger is let in under this name, and knows our roles.
  void let_in(const std::string& name) {
    ASSERT_TRUE(stranger_.reach(path_));
    const auto hello = wire::hello_frame({name, core::RunId{42}, 1, "the pass"});
    caf::send_as(stranger_.self(), stranger_.introducer(), raw(hello), stranger_.self());
    ASSERT_NE(home_.events.wait("arrived " + name), "");
    ASSERT_TRUE(stranger_.role("home/0"));
  }
  wire::Frame request_of(const std::string& sender) {
    wire::Header header;
    header.run = core::RunId{42};
    header.epoch = 1;
    header.request = core::RequestId{++requests_};
    header.sender = sender;
    header.budget_ms = 60'000;
    return text_frame(header, "x");
  }
  bool refused(std::uint64_t count) {
    return eventually([&] { return home_.exchange->counters().refused >= count; });
  }
  void expect_all_well() {
    EXPECT_EQ(ask_now(other_, "home/0", "x").value(), "home/0 heard x");
    EXPECT_EQ(home_.events.count("lost"), 0);
  }

  Troupe home_;
  std::shared_ptr<Endpoint> role_, other_;
  std::string path_;
  std::uint64_t requests_ = 0;
  RawProcess stranger_;
};

using ExchangeStrangers = StrangersTest;

TEST_F(ExchangeStrangers, AProperFrameOfAnAdmittedAddressIsServed) {
  let_in("raw/0");
  const int before = stranger_.wait_for_answers(1);  // the welcome
  caf::send_as(stranger_.self(), stranger_.role("home/0"), raw(request_of("raw/0")));
  EXPECT_EQ(stranger_.wait_for_answers(before + 1), before + 1);
  EXPECT_EQ(home_.exchange->counters().refused, 0u);
}

TEST_F(ExchangeStrangers, GarbageIsCountedAndNothingElse) {
  let_in("raw/0");
  const auto target = stranger_.role("home/0");
  core::Rng rng(5, 0);
  constexpr std::uint64_t kFrames = 500;
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    RawBytes bytes;
    if (i % 2 == 0) {  // noise
      bytes.bytes.resize(rng.next_below(3000));
      for (char& c : bytes.bytes)
        c = static_cast<char>(rng.next_below(256));
    } else {  // a frame cut short
      bytes = raw(request_of("raw/0"));
      bytes.bytes.resize(rng.next_below(bytes.bytes.size()));
    }
    caf::send_as(stranger_.self(), target, bytes);
  }
  EXPECT_TRUE(refused(kFrames));
  EXPECT_EQ(home_.exchange->counters().refused, kFrames);
  EXPECT_NE(home_.events.wait("refused home/0 got garbage: malformed frame"), "");
  expect_all_well();
}

TEST_F(ExchangeStrangers, AnOversizedFrameIsNotEvenRead) {
  let_in("raw/0");
  const RawBytes big{std::vector<char>(wire::limits::kFrame_bytes_max + 8)};
  caf::send_as(stranger_.self(), stranger_.role("home/0"), big);
  caf::send_as(stranger_.self(), stranger_.introducer(), big);
  caf::send_as(stranger_.self(), stranger_.introducer(), big, stranger_.self());
  EXPECT_TRUE(refused(2));
  EXPECT_NE(home_.events.wait("refused home/0 got garbage: 1048584 bytes, more than"), "");
  expect_all_well();
}

TEST_F(ExchangeStrangers, NobodySpeaksInAnothersName) {
  let_in("raw/0");
  const auto target = stranger_.role("home/0");
  caf::send_as(stranger_.self(), target, raw(request_of("home/1")));
  caf::send_as(stranger_.self(), target, raw(request_of("unknown/0")));
  caf::anon_send(target, raw(request_of("raw/0")));
  EXPECT_TRUE(refused(3));
  EXPECT_NE(home_.events.wait("refused home/0 got a frame that says it is from home/1"), "");
  EXPECT_NE(home_.events.wait("refused home/0 got a frame without a sender"), "");
  EXPECT_EQ(role_->frames_in(), 0u);
  expect_all_well();
}

TEST_F(ExchangeStrangers, MessagesOfOtherTypesNeitherEndNorConfuseAnActor) {
  let_in("raw/0");
  for (const auto& target : {stranger_.role("home/0"), stranger_.introducer()}) {
    caf::send_as(stranger_.self(), target, std::string("hello"));
    caf::send_as(stranger_.self(), target, 42);
    caf::send_as(stranger_.self(), target, caf::make_error(caf::sec::runtime_error, "boo"));
    caf::send_as(stranger_.self(), target,
                 caf::exit_msg{stranger_.self().address(), caf::exit_reason::user_shutdown});
  }
  EXPECT_TRUE(refused(8));
  EXPECT_EQ(home_.exchange->counters().refused, 8u);
  expect_all_well();
  auto late = home_.join_echo("late/0");
  EXPECT_TRUE(stranger_.role("late/0")) << "the introducer still introduces";
}

TEST_F(ExchangeStrangers, AnIntroductionMustBeOneAndBeOfItsOwnActor) {
  let_in("raw/0");
  const auto introduce = [&](const wire::Frame& frame, const caf::actor& who) {
    caf::send_as(stranger_.self(), stranger_.introducer(), raw(frame), who);
  };
  introduce(request_of("raw/0"), stranger_.self());  // no hello
  introduce(wire::hello_frame({"raw/1", core::RunId{42}, 1, ""}), stranger_.role("home/1"));
  introduce(wire::hello_frame({"raw/2", core::RunId{42}, 1, ""}), caf::actor());
  introduce(wire::hello_frame({"raw/3", core::RunId{42}, 1, ""}), stranger_.self());
  introduce(wire::hello_frame({std::string(5000, 'n'), core::RunId{42}, 1, ""}), stranger_.self());
  introduce(wire::hello_frame({"", core::RunId{42}, 1, ""}), stranger_.self());
  EXPECT_TRUE(refused(6));
  EXPECT_NE(home_.events.wait("refused an introduction was refused: raw/1 is not an actor of"), "");
  EXPECT_NE(home_.events.wait("refused an introduction was refused: raw/3 cannot be a second name"),
            "");
  EXPECT_EQ(home_.events.count("arrived"), 1);
  expect_all_well();
}

TEST_F(ExchangeStrangers, AnotherProtocolIsTurnedAwayByTheGreeting) {
  RawProcess foreign("somebody/7");
  EXPECT_FALSE(foreign.reach(path_));
  const auto folder = net::SocketFolder::make();
  ASSERT_TRUE(folder);
  ASSERT_TRUE(foreign.listen(folder->socket("foreign")));
  const auto connected = home_.connect(folder->socket("foreign"), "home/0");
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, ErrorCode::kPeerLost);
  EXPECT_NE(connected.error().message.find(folder->socket("foreign")), std::string::npos);
}

}  // namespace troupe::cluster::testing
