// Who comes to the port of a rank while its gang forms: strangers, ranks of other gangs and second
// processes are refused and logged once, and the right ranks go on.
#include "runtime/net/gateway_auth.hpp"
#include "tests/unit/runtime/collective/gang.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>

namespace troupe::collective::test {
namespace {

constexpr std::chrono::seconds kPatience{60};

core::TimePoint soon() {
  return core::steady_clock().now() + kPatience;
}

// Passes on what is known already.
class Known final : public Rendezvous {
 public:
  explicit Known(Meeting meeting) : meeting_(std::move(meeting)) {}
  core::Result<Meeting> meet(int, int, const RankAddress&, const std::atomic<bool>&) override {
    return meeting_;
  }

 private:
  const Meeting meeting_;
};

// Rank 0 of 2 in a process, which listens by TCP and says its log lines.
class Strangers : public ::testing::Test {
 protected:
  Strangers()
      : rank_0_([this](const Line& line) {
          RankOptions options = options_of(0, 2, Ways::kStream);
          options.log = [&line](const std::string& text) { line.say(text); };
          Collectives ranks(options);
          FolderRendezvous rendezvous(folder_.path());
          auto done = ranks.connect(rendezvous);
          char byte = 'x';
          if (done) done = ranks.recv(1, {&byte, 1});
          line.say(done ? std::string("got ") + byte : words_of(done.error()));
          line.hear();
        }) {
    // Rank 0 learns an address of rank 1 and listens to who comes; the right one brings its own.
    troupe::test::put_file(folder_ / "rank-1", "host-1\n\n\n0\n");
    const std::filesystem::path file = folder_ / "rank-0";
    while (!std::filesystem::exists(file))
      ::poll(nullptr, 0, 1);
    std::ifstream in(file);
    for (std::string* line : {&address_.host_id, &address_.socket, &address_.tcp_host})
      std::getline(in, *line);
    in >> address_.tcp_port;
    key_ = *net::read_token_file(folder_ / "key");
  }

  net::OwnedFd dial() {
    auto socket = net::connect_tcp(address_.tcp_host, address_.tcp_port, soon());
    TROUPE_CHECK(socket, "the rank listens");
    return std::move(*socket);
  }
  // Greets as `hello` says; what the rank thinks of it.
  Admitted greet(Hello hello, const std::string& key) {
    net::OwnedFd socket;
    return greet(hello, key, socket);
  }
  Admitted greet(Hello hello, const std::string& key, net::OwnedFd& socket) {
    socket = dial();
    Challenge challenge;
    Verdict verdict;
    const net::Patience patience{kPatience};
    TROUPE_CHECK(net::receive_all(socket, &challenge, sizeof challenge, patience, ""), "challenge");
    dialler_proof(key, challenge, hello)->copy(hello.proof, sizeof hello.proof);
    TROUPE_CHECK(net::send_all(socket, &hello, sizeof hello, patience, ""), "hello");
    TROUPE_CHECK(net::receive_all(socket, &verdict, sizeof verdict, patience, ""), "verdict");
    return verdict.admitted;
  }
  static Hello hello(GangId gang = {core::RunId{7}, "policy", 2}, int from = 1, int size = 2) {
    return hello_of(gang, from, 0, size, Channel::kControl);
  }
  // Sends bytes and waits until the rank closes.
  void send_garbage(const std::string& bytes) {
    const net::OwnedFd socket = dial();
    ASSERT_TRUE(net::send_all(socket, bytes.data(), bytes.size(), {kPatience}, ""));
    char answer[4096];
    pollfd entry{socket.get(), POLLIN, 0};
    do {
      ASSERT_EQ(::poll(&entry, 1, 60'000), 1);
    } while (::recv(socket.get(), answer, sizeof answer, 0) > 0);
  }
  // The right rank 1 comes and sends a byte.
  void expect_that_the_right_one_goes_on() {
    Process right([this](const Line& line) {
      Collectives ranks(options_of(1, 2, Ways::kStream));
      FolderRendezvous rendezvous(folder_.path());
      auto done = ranks.connect(rendezvous);
      if (done) done = ranks.send(0, {"r", 1});
      line.say(done ? "well" : words_of(done.error()));
    });
    EXPECT_EQ(right.line().hear(), "well");
    EXPECT_EQ(rank_0_.line().hear(), "got r");
  }
  std::string log_line() { return rank_0_.line().hear(); }
  static std::string refusal(const std::string& why) {
    return "rank 0 of policy refuses 127.0.0.1: " + why;
  }

  troupe::test::TempFolder folder_;
  Process rank_0_;
  RankAddress address_;
  std::string key_;
};

TEST_F(Strangers, GarbageIsRefusedAndLoggedOnce) {
  for (int i = 0; i < 3; ++i) {
    send_garbage("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    send_garbage(std::string(100'000, '\xff'));
    send_garbage(std::string("\1\0\0\0\0\0\0\0", 8));
  }
  EXPECT_EQ(log_line(), refusal("it does not speak the protocol of ranks"));
  expect_that_the_right_one_goes_on();
}

TEST_F(Strangers, SilentOnesDoNotKeepTheRightOneOut) {
  std::vector<net::OwnedFd> silent;
  for (std::uint64_t i = 0; i < limits::kRankStrangers_max + 10; ++i)
    silent.push_back(dial());
  expect_that_the_right_one_goes_on();
}

TEST_F(Strangers, AWrongKeyIsRefused) {
  ASSERT_NE(key_, kKey);
  EXPECT_EQ(greet(hello(), kKey), Admitted::kNotProven);
  EXPECT_EQ(greet(hello({core::RunId{8}, "policy", 2}), kKey), Admitted::kNotProven);
  EXPECT_EQ(log_line(), refusal("no proof of the gang's key"));
  expect_that_the_right_one_goes_on();
}

TEST_F(Strangers, RanksOfOtherGangsAreRefused) {
  const auto expect = [&](const Hello& claims, Admitted wanted, const std::string& line) {
    EXPECT_EQ(greet(claims, key_), wanted) << line;
    EXPECT_EQ(log_line(), refusal(line));
  };
  expect(hello({core::RunId{8}, "policy", 2}), Admitted::kOtherRun,
         "rank 1 of 2 of policy, run 8, generation 2: another run");
  expect(hello({core::RunId{7}, "critic", 2}), Admitted::kOtherRole,
         "rank 1 of 2 of critic, run 7, generation 2: another role");
  expect(hello({core::RunId{7}, "policy", 1}), Admitted::kOtherGeneration,
         "rank 1 of 2 of policy, run 7, generation 1: another generation of the gang");
  expect(hello({core::RunId{7}, "policy", 2}, 1, 3), Admitted::kOtherSize,
         "rank 1 of 3 of policy, run 7, generation 2: another number of ranks");
  expect(hello({core::RunId{7}, "policy", 2}, 0), Admitted::kWrongRank,
         "rank 0 of 2 of policy, run 7, generation 2: not a rank that connects here");
  expect(hello({core::RunId{7}, "policy", 2}, 2), Admitted::kWrongRank,
         "rank 2 of 2 of policy, run 7, generation 2: not a rank that connects here");
  Hello shares = hello();
  shares.shares_memory = 1;  // by TCP
  expect(shares, Admitted::kWrongRank,
         "rank 1 of 2 of policy, run 7, generation 2: not a rank that connects here");
  expect_that_the_right_one_goes_on();
}

// A proof that was heard on another connection proves nothing.
TEST_F(Strangers, AProofIsOfNoUseOnAnotherConnection) {
  const net::OwnedFd first = dial(), second = dial();
  Challenge challenge, other;
  const net::Patience patience{kPatience};
  ASSERT_TRUE(net::receive_all(first, &challenge, sizeof challenge, patience, ""));
  ASSERT_TRUE(net::receive_all(second, &other, sizeof other, patience, ""));
  Hello heard = hello();
  dialler_proof(key_, challenge, heard)->copy(heard.proof, sizeof heard.proof);
  ASSERT_TRUE(net::send_all(second, &heard, sizeof heard, patience, ""));
  Verdict verdict;
  ASSERT_TRUE(net::receive_all(second, &verdict, sizeof verdict, patience, ""));
  EXPECT_EQ(verdict.admitted, Admitted::kNotProven);
  EXPECT_EQ(log_line(), refusal("no proof of the gang's key"));
  expect_that_the_right_one_goes_on();
}

TEST_F(Strangers, ASecondProcessForARankIsRefused) {
  // The first has its place by the control connection, and is not done yet.
  net::OwnedFd first;
  EXPECT_EQ(greet(hello(), key_, first), Admitted::kWelcome);
  EXPECT_EQ(greet(hello(), key_), Admitted::kTaken);
  EXPECT_EQ(log_line(), refusal("rank 1 of 2 of policy, run 7, generation 2: this rank is here "
                                "already"));
  first.close();  // the process is gone before the gang is complete
  EXPECT_EQ(log_line(), "peer lost: rank 1 of policy went away while the gang formed");
}

// A way through proxies can break for the bytes alone. Both sides then end the control connection,
// so that neither waits.
TEST_F(Strangers, ARankWhoseBytesBreakOffIsLost) {
  net::OwnedFd control, bytes;
  ASSERT_EQ(greet(hello(), key_, control), Admitted::kWelcome);
  Hello second = hello();
  second.channel = Channel::kBytes;
  ASSERT_EQ(greet(second, key_, bytes), Admitted::kWelcome);
  bytes.close();
  char byte = 0;
  const auto ended = net::receive_all(control, &byte, 1, {kPatience}, "");
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, core::ErrorCode::kPeerLost);
  control.close();
  EXPECT_EQ(log_line(), "peer lost: rank 1 of policy is gone");
}

TEST_F(Strangers, AGangAtWorkHasNoPort) {
  expect_that_the_right_one_goes_on();
  const auto socket = net::connect_tcp(address_.tcp_host, address_.tcp_port, soon());
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, core::ErrorCode::kPeerLost);
  EXPECT_FALSE(std::filesystem::exists(address_.socket));
}

TEST_F(Strangers, ARankWithAnotherSizeHearsWhy) {
  Meeting meeting{key_, {address_, {}, {}}};
  RankOptions options = options_of(2, 3, Ways::kStream);
  Known rendezvous(meeting);
  Collectives ranks(options);
  const auto done = ranks.connect(rendezvous);
  ASSERT_FALSE(done);
  EXPECT_EQ(words_of(done.error()),
            "configuration: rank 0 of policy refuses rank 2 of 3 of policy, run 7, generation 2: "
            "another number of ranks");
  EXPECT_EQ(log_line(),
            refusal("rank 2 of 3 of policy, run 7, generation 2: another number of ranks"));
  expect_that_the_right_one_goes_on();
}

// A program at the address of rank 0 that welcomes everybody: rank 1 finds out.
TEST(Impostor, IsNotBelieved) {
  std::uint32_t port = 0;
  auto listener = net::listen_tcp("127.0.0.1", port);
  ASSERT_TRUE(listener);
  const Process impostor([&](const Line&) {
    pollfd entry{listener->get(), POLLIN, 0};
    ::poll(&entry, 1, -1);
    const net::OwnedFd socket = net::accept_one(*listener);
    Challenge challenge;
    Hello hello;
    Verdict verdict;
    const net::Patience patience{kPatience};
    (void)net::send_all(socket, &challenge, sizeof challenge, patience, "");
    (void)net::receive_all(socket, &hello, sizeof hello, patience, "");
    std::memcpy(verdict.proof, hello.proof, sizeof verdict.proof);  // the best that it has
    (void)net::send_all(socket, &verdict, sizeof verdict, patience, "");
    ::poll(nullptr, 0, -1);
  });
  Known rendezvous({kKey, {{"elsewhere", "", "127.0.0.1", port}, {}}});
  Collectives ranks(options_of(1, 2, Ways::kStream));
  const auto done = ranks.connect(rendezvous);
  ASSERT_FALSE(done);
  EXPECT_EQ(
      words_of(done.error()),
      "configuration: the process at the address of rank 0 of policy does not know the gang's "
      "key");
}

TEST(Meetings, BadOnesSayWhatIsWrong) {
  const auto error_with = [](RankOptions options, Rendezvous& rendezvous) {
    Collectives ranks(std::move(options));
    const auto done = ranks.connect(rendezvous);
    return done ? "well" : words_of(done.error());
  };
  const troupe::test::TempFolder folder;
  FolderRendezvous missing(folder / "missing"), used(folder.path());
  const RankOptions rank_0 = options_of(0, 2, Ways::kWindow);
  EXPECT_EQ(error_with(rank_0, missing),
            "configuration: the folder " + (folder / "missing").string() +
                " in which ranks meet is missing or open to other users; make it mode 0700");
  ASSERT_TRUE(net::create_token_file(folder / "key"));
  EXPECT_NE(error_with(rank_0, used).find("cannot create the token file"), std::string::npos);
  troupe::test::put_file(folder / "rank-0", "host\n");
  EXPECT_EQ(error_with(options_of(1, 2, Ways::kWindow), used),
            "data: " + (folder / "rank-0").string() + " is not the address of a rank");
  Known far({kKey, {{"elsewhere", "", "", 0}, {}}});
  EXPECT_NE(error_with(options_of(1, 2, Ways::kWindow), far)
                .find("configuration: rank 0 of policy: it is on another host"),
            std::string::npos);
  Known nobody({kKey, {{"h", (folder / "nobody").string(), "", 0}, {}}});
  RankOptions rank_1 = options_of(1, 2, Ways::kWindow);
  rank_1.host_id = "h";
  EXPECT_NE(error_with(rank_1, nobody).find("peer lost: rank 0 of policy: cannot reach"),
            std::string::npos);
  EXPECT_NE(error_with(options_of(2, 2, Ways::kWindow), used).find("invalid argument: rank 2 of 2"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe::collective::test
