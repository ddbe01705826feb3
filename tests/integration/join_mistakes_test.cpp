// What goes wrong when somebody joins a run, asks it or changes its rewards: each mistake ends
// within seconds with its exit code and one clear error, and the run goes on unharmed.
#include "apps/session/node/join_flags.hpp"
#include "apps/session/node/node_process.hpp"
#include "runtime/cluster/limits.hpp"
#include "tests/integration/join_support.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

namespace troupe::test {
namespace {

// A port of 127.0.0.1 that is taken; who connects hears nothing but a line of plain text.
class PlainServer {
 public:
  PlainServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(socket_, 8);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] {
      for (int peer; (peer = ::accept(socket_, nullptr, nullptr)) >= 0; ::close(peer)) {
        static_cast<void>(::send(peer, "220 hello\r\n", 11, MSG_NOSIGNAL));
      }
    });
  }
  PlainServer(const PlainServer&) = delete;
  PlainServer& operator=(const PlainServer&) = delete;
  ~PlainServer() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  const std::string& address() const { return address_; }

 private:
  int socket_;
  std::string address_;
  std::thread thread_;
};

class JoinMistakes : public Joining {
 protected:
  void expect(const Words& words, int status, const Words& parts) {
    const Ended ended = ends(words);
    std::string command;
    for (const std::string& word : words)
      command += word + " ";
    EXPECT_EQ(ended.status, status) << command << "\n" << ended.text;
    EXPECT_NE(ended.text.find("error: "), std::string::npos) << command << "\n" << ended.text;
    for (const std::string& part : parts) {
      EXPECT_NE(ended.text.find(part), std::string::npos)
          << command << "\nmissing: " << part << "\n"
          << ended.text;
    }
  }
  // Comes in by the run's gateway like `troupe node`; leaves after `once_in`.
  core::Result<session::NodeEnd> visit(
      session::NodeSelf self, std::function<core::Result<bool>(session::NodeGuest)> once_in) {
    session::JoinFlags flags;
    flags.join = (files_ / "run").string();
    TROUPE_TRY_ASSIGN(target, session::find_company(flags));
    async::IoThreads io(1);
    session::NodeCalls calls;
    calls.note = [](const std::string&) {};
    calls.once_in = std::move(once_in);
    return session::live_through_gateway(io, target, std::move(self), calls);
  }
  // Is not taken.
  void expect_unfit(session::NodeSelf self, const std::string& what) {
    self.name = "node/unfit";
    self.kinds = {"generator"};
    const auto end = visit(self, [](session::NodeGuest) -> core::Result<bool> { return false; });
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code, core::ErrorCode::kUnsupported) << end.error().message;
    EXPECT_NE(end.error().message.find(what), std::string::npos) << end.error().message;
    EXPECT_NE(end.error().message.find("this company"), std::string::npos) << end.error().message;
  }
  // A guest whose rewards come and go, each under a name of its own.
  void bring_names(std::uint64_t count) {
    session::NodeSelf self;
    self.name = "node/crowd";
    self.kinds = {"attach"};
    const auto end = visit(self, [count](session::NodeGuest guest) -> core::Result<bool> {
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::string name = "reward/of-the-crowd-" + std::to_string(i);
        TROUPE_TRY_ASSIGN(role, guest.exchange->join({name, core::RunId{guest.run_id}, guest.epoch},
                                                     guest.io->make_strand()));
        guest.io->run(stop_role(std::move(role)));
      }
      return false;
    });
    EXPECT_TRUE(end) << end.error().message;
  }
  static async::task<void> stop_role(std::shared_ptr<cluster::Endpoint> role) {
    co_await role->stop();
  }
  std::string write(const std::string& name, const std::string& text, mode_t mode) {
    const std::string path = (files_ / name).string();
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
};

TEST_F(JoinMistakes, OfTheAddressAndTheProofAreNamed) {
  const PlainServer plain;
  const std::string token = write("token", std::string(64, 'a') + "\n", 0600);
  const std::string open_token = write("open", std::string(64, 'a') + "\n", 0644);
  const std::string short_token = write("short", "abc\n", 0600);
  const Words status = {"status", "--token-file", token, "--join"};
  for (const char* malformed : {"nowhere", "host:", ":7000", "host:70000", "host:seven"}) {
    expect(status + Words{malformed}, 2, {"--join", malformed});
  }
  expect(status + Words{files_.model()}, 2, {"--join", "company.json"});
  expect(status + Words{"127.0.0.1:1"}, 5, {"127.0.0.1:1", "refused"});
  expect(status + Words{plain.address()}, 5, {plain.address(), "no gateway of this run"});
  expect({"status", "--join", plain.address()}, 2, {"--token-file", "--ca"});
  expect({"status", "--join", plain.address(), "--token-file", "/no/such"}, 2, {"/no/such"});
  expect({"status", "--join", plain.address(), "--token-file", open_token}, 2,
         {"chmod 600", open_token});
  expect({"status", "--join", plain.address(), "--token-file", short_token}, 2, {short_token});
  expect({"status", "--join", plain.address(), "--ca", token}, 2, {"certificate"});
  expect({"node", "--join", plain.address(), "--roles", "juggler"}, 2, {"--roles", "juggler"});
  expect({"node", "--join", plain.address(), "--ranks", "0"}, 2, {"--ranks"});
  expect({"node", "--join", plain.address(), "--ranks", "2", "--relay", "127.0.0.1:0"}, 2,
         {"--relay", "node of its own"});
  expect({"node"}, 2, {"--join"});
}

TEST_F(JoinMistakes, OfTheHeadsAddressesAreNamed) {
  const PlainServer taken;
  const auto head_with = [&](const std::string& key, const std::string& value) {
    return files_.words("run") + Words{key, value};
  };
  const std::string open_token = write("open", std::string(64, 'a') + "\n", 0644);
  expect(head_with("--cluster.listen", taken.address()), 3, {"cluster.listen", taken.address()});
  expect(head_with("--cluster.status_listen", taken.address()), 3,
         {"cluster.status_listen", taken.address()});
  expect(head_with("--cluster.listen", "nowhere"), 2, {"cluster.listen"});
  expect(head_with("--cluster.token_file", open_token), 2, {open_token, "chmod 600"});
  expect(head_with("--cluster.ca", "/no/such/ca.crt"), 2, {"cluster.ca"});
}

TEST_F(JoinMistakes, OfGuestsLeaveTheRunUnharmed) {
  Background run = head("run", {"--train.max_steps", "100000", "--ckpt.save_steps", "100000"});
  ASSERT_TRUE(within(30, [&] { return updates_of("run") > 1; })) << run.text();
  const std::string folder = (files_ / "run").string();
  const Words attach = {"attach", "reward", "--join", folder, "--name"};
  const Words detach = {"detach", "reward", "--join", folder, "--name"};
  const Words reweight = {"re-weight", "reward", "--join", folder, "--name"};
  expect({"attach", "critic", "--join", folder}, 2, {"attach critic", "attach reward"});
  expect(attach + Words{"x", "--rule", "nonsense"}, 2, {"--rule", "nonsense"});
  expect(attach + Words{"x", "--python", "/no/such.py"}, 2, {"/no/such.py"});
  expect(attach + Words{"x", "--rule", "exact", "--weight", "nan"}, 2, {"--weight"});
  expect(attach + Words{"x", "--rule", "exact", "--formula", "min(x"}, 2, {"--formula", "')'"});
  expect(attach + Words{"x", "--rule", "exact", "--formula", "min(x, y)"}, 2,
         {"'y'", "rewards are"});
  expect(attach + Words{"x", "--rule", "exact", "--workers", "2"}, 2, {"--workers", "--python"});
  expect(attach + Words{"x", "--http", "http://a/", "--http-format", "xml"}, 2, {"xml", "sample"});
  expect(attach + Words{"x", "--http", "http://a/", "--http", "http://a/"}, 2, {"given twice"});
  expect(attach + Words{"x", "--http", "http://a/,http://b/,b"}, 2, {"'b'"});
  const Words combine = {"re-weight", "reward", "--join", folder};
  expect(combine, 2, {"--name is not set"});
  expect(combine + Words{"--weight", "2", "--formula", "rest"}, 2, {"belong together"});
  expect(combine + Words{"--name", "x", "--formula", "rest"}, 2, {"belong together"});
  expect(combine + Words{"--formula", "gate(rest, 1, x)"}, 2, {"'rest'"});
  expect(attach + Words{"regex", "--rule", "exact"}, 2, {"regex"});
  expect(detach + Words{"nobody"}, 2, {"nobody"});
  expect(detach + Words{"regex"}, 2, {"regex"});
  expect(reweight + Words{"nobody", "--weight", "2"}, 2, {"nobody"});
  expect(reweight + Words{"regex", "--weight", "0"}, 2, {"weight"});
  expect(reweight + Words{"regex", "--weight", "nan"}, 2, {"weight"});

  // A second node of one name.
  const Words node = {"node", "--join", folder, "--roles", "reference", "--name", "twin"};
  Background first = start(node, "first");
  ASSERT_TRUE(within(20, [&] { return run.says("node/twin joined"); })) << first.text();
  expect(node, 2, {"twin", "--name"});
  EXPECT_TRUE(first.running()) << first.text();

  // One whose clock was an hour ahead, and is right when it comes back.
  const Words clocked = {"node", "--join", folder, "--roles", "reference", "--name", "clocked"};
  {
    const std::string late = std::string("LD_PRELOAD=") + TROUPE_LATE_CLOCK;
    Background ahead(Words{"env", late, troupe_program()} + clocked, files_ / "ahead.log");
    ASSERT_TRUE(within(20, [&] { return run.says("node/clocked joined"); })) << ahead.text();
  }
  ASSERT_TRUE(within(20, [&] { return run.says("node/clocked is lost"); })) << run.text();
  Background right = start(clocked, "right");
  ASSERT_TRUE(within(20, [&] { return right.says("is in the company"); })) << right.text();

  // Nodes of another program or another arithmetic.
  session::NodeSelf older, coarser;
  older.build = "0.0.1";
  coarser.arithmetic = "bf16-compute";
  expect_unfit(older, "0.0.1");
  expect_unfit(coarser, "bf16-compute");
  EXPECT_TRUE(within(30, [&] { return run.says("troupe 0.0.1"); })) << run.text();

  // As many names as a process may know at once, and some, have come and gone: others still may.
  const auto began = std::chrono::steady_clock::now();
  bring_names(cluster::limits::kPeerNames_max + 50);
  const Seconds crowd = std::chrono::steady_clock::now() - began;
  std::printf("a crowd of names came and went within %.2f s\n", crowd.count());
  const Ended after = ends({"status", "--join", folder});
  EXPECT_EQ(after.status, 0) << after.text;
  EXPECT_EQ(after.text.find("of-the-crowd"), std::string::npos) << after.text;

  // A stranger is refused and named.
  const std::string wrong = write("wrong", std::string(64, 'b') + "\n", 0600);
  const Words stranger = {"status", "--join", address_of("run"), "--token-file", wrong};
  const auto before = std::chrono::steady_clock::now();
  expect(stranger, 2, {"token"});
  const Seconds took = std::chrono::steady_clock::now() - before;
  EXPECT_TRUE(within(30, [&] { return run.says("refused at the gateway: 127.0.0.1:"); }));
  EXPECT_TRUE(run.says("wrong join token")) << run.text();
  RecordProperty("stranger_refused_s", std::to_string(took.count()));
  std::printf("a stranger was refused within %.2f s\n", took.count());

  const std::size_t done = updates_of("run");
  EXPECT_TRUE(within(20, [&] { return updates_of("run") > done; })) << run.text();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.text();
  EXPECT_EQ(first.wait(10), 0) << first.text();
  EXPECT_EQ(right.wait(10), 0) << right.text();
  expect_clean_ledger("run");
}

// Its log-probs would be those of another objective, and nobody would see it.
TEST_F(JoinMistakes, AReferenceWithOtherWeightsIsRefusedByName) {
  const std::filesystem::path elsewhere = files_ / "elsewhere";
  std::filesystem::create_directories(elsewhere);
  std::filesystem::copy(files_.model(), elsewhere / "tiny",
                        std::filesystem::copy_options::recursive);
  {
    const std::filesystem::path weights = elsewhere / "tiny" / "model.safetensors";
    std::fstream bytes(weights, std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(std::filesystem::file_size(weights) - 9);
    bytes.seekg(at);
    const char was = static_cast<char>(bytes.get());
    bytes.seekp(at);
    bytes.put(static_cast<char>(was ^ 1));
  }
  const std::string at_home = std::filesystem::path(files_.model()).parent_path().string();
  Background run(Words{"env", "-C", at_home, troupe_program()} + files_.words("run") +
                     Words{"--actor.model_name_or_path", "tiny", "--cluster.local_roles",
                           "policy,generator,reward", "--train.max_steps", "2"},
                 files_ / "run.log");
  ASSERT_TRUE(within(20, [&] { return company_of("run").contains("port"); })) << run.text();
  const auto node = [&](const std::string& folder, const std::string& name) {
    return Background(Words{"env", "-C", folder, troupe_program(), "node", "--join",
                            (files_ / "run").string(), "--roles", "reference", "--name", name},
                      files_ / (name + ".log"));
  };
  Background other = node(elsewhere.string(), "other");
  EXPECT_TRUE(within(20,
                     [&] {
                       return run.says(
                           "node/other cannot run reference/0: the SHA-256 of the weights of "
                           "actor.model_name_or_path (tiny) is ");
                     }))
      << run.text() << other.text();
  EXPECT_EQ(updates_of("run"), 0u);
  Background right = node(at_home, "right");
  EXPECT_EQ(run.wait(30), 0) << run.text() << right.text();
  EXPECT_EQ(metrics_of(files_ / "run").at(1)["kl/ref"], 0.0) << "the policy as it was";
}

TEST_F(JoinMistakes, ANodeThatLacksTheModelCostsTheRunNothing) {
  // Each host looks for the model where it stands: "tiny" is there for the head alone.
  const Words here = {"env", "-C", std::filesystem::path(files_.model()).parent_path().string()};
  const Words train = Words{troupe_program()} + files_.words("run") +
                      Words{"--actor.model_name_or_path", "tiny",  "--train.max_steps", "100000",
                            "--ckpt.save_steps",          "100000"};
  Background run(here + train, files_ / "run.log");
  ASSERT_TRUE(within(30, [&] { return updates_of("run") > 1; })) << run.text();
  Background node = start({"node", "--join", (files_ / "run").string(), "--name", "bare"}, "node");
  EXPECT_TRUE(within(20, [&] { return run.says("node/bare cannot run generator/1"); }))
      << run.text() << node.text();
  // Another has a folder of that name, with another tokenizer.
  const std::filesystem::path elsewhere = files_ / "elsewhere";
  std::filesystem::create_directories(elsewhere);
  std::filesystem::copy(files_.model(), elsewhere / "tiny",
                        std::filesystem::copy_options::recursive);
  std::ofstream(elsewhere / "tiny" / "tokenizer.json", std::ios::app) << "\n";
  const Words there = {"env", "-C", elsewhere.string(), troupe_program()};
  Background other(there + Words{"node", "--join", (files_ / "run").string(), "--name", "other"},
                   files_ / "other.log");
  EXPECT_TRUE(within(20,
                     [&] {
                       return run.says(
                           "node/other cannot run generator/2: the SHA-256 of the tokenizer of "
                           "actor.model_name_or_path (tiny) is ");
                     }))
      << run.text() << other.text();
  EXPECT_TRUE(run.says("... here and ")) << run.text();
  const std::size_t done = updates_of("run");
  EXPECT_TRUE(within(20, [&] { return updates_of("run") > done; })) << run.text();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.text();
  expect_clean_ledger("run");
}

}  // namespace
}  // namespace troupe::test
