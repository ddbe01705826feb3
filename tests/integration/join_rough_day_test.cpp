// One run on which everything that may be strange comes at once: its reward server goes away for a
// minute, an engine and its fetches of weights answer with every error once, a node samples over a
// link of 1 Mbit, a spare has no model, garbage and wrong proofs come from a node's address, and
// 5,000 visitors ask for the status. It ends well, with the bits of a calm run. Takes minutes:
// label `full`.
#include "apps/troupe/ask_company.hpp"
#include "runtime/net/tunnel.hpp"
#include "tests/integration/join_support.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <atomic>

namespace troupe::test {
namespace {

constexpr int kSteps = 30;
constexpr int kVisitors = 5000;
constexpr double kAway_s = 60;

// A reward server in OpenRLHF's JSON that takes its time: the score depends on the text alone.
const char* const kServer = R"PY(
import http.server, json, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(float(sys.argv[2]))
        scores = [sum(map(ord, q)) % 7 / 7 for q in request["query"]]
        body = json.dumps({"rewards": scores}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
print("listening", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
)PY";

// Every error that a part can answer with, as TROUPE_FAULTS spells it.
const Words kErrors = {"invalid_argument", "configuration", "resources", "data",   "peer_lost",
                       "numeric",          "interrupted",   "deadline",  "closed", "overloaded",
                       "unsupported",      "not_found",     "internal"};

class JoinRoughDay : public Joining {
 protected:
  void SetUp() override {
    if (!hosts_.why_not().empty()) GTEST_SKIP() << hosts_.why_not();
    std::ofstream(files_ / "server.py") << kServer;
  }
  Background server(const char* delay_s) {
    Background process({"python3", (files_ / "server.py").string(), "18090", delay_s},
                       files_ / "server.log", hosts_.a());
    EXPECT_TRUE(within(20, [&] { return process.says("listening"); })) << process.text();
    return process;
  }
  // The model is named by a relative path, so it is found from one folder alone.
  Words words_of(const std::string& name) const {
    Words words = files_.words(name);
    std::replace(words.begin(), words.end(), files_.model(),
                 std::filesystem::path(files_.model()).filename().string());
    return words + Words{"--cluster.listen",      TwoHosts::address_a() + ":0",
                         "--reward.rule",         "",
                         "--reward.rule_pattern", "",
                         "--reward.http",         "http://127.0.0.1:18090/get_reward",
                         "--reward.away_s",       "3000",
                         "--train.max_steps",     std::to_string(kSteps)};
  }
  Background in(const std::filesystem::path& folder,
                const Words& words,
                const std::string& log,
                int network) {
    const Words where = {"env", "-C", folder.string(),
                         std::filesystem::absolute(troupe_program()).string()};
    return Background(where + words, files_ / (log + ".log"), network);
  }
  Words node(const std::string& run, const std::string& roles, const std::string& name) {
    return {"node",   "--join", address_of(run), "--token-file", token_of(run), "--roles", roles,
            "--name", name};
  }

  // In the second host, as any user there could.
  void garbage(std::uint16_t port) {
    std::thread([&] {
      ASSERT_EQ(::setns(hosts_.b(), CLONE_NEWNET), 0);
      for (int i = 0; i < 200; ++i) {
        const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr.s_addr = ::inet_addr(TwoHosts::address_a().c_str());
        to.sin_port = htons(port);
        if (::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
          ::send(socket, "no TLS\n", 7, MSG_NOSIGNAL);
        }
        ::close(socket);
      }
    }).join();
  }

  // One program that asks and asks, from the head's own host. How often it was answered.
  int visit(const std::string& run, int visits) {
    int answered = 0;
    std::thread([&] {
      ASSERT_EQ(::setns(hosts_.a(), CLONE_NEWNET), 0);
      session::JoinFlags flags;
      flags.join = (files_ / run).string();
      for (int i = 0; i < visits; ++i) {
        const auto status =
            app::ask_company(flags, actors::QueryStatus{}, std::chrono::seconds(30));
        if (status) ++answered;
        if (!status && i < 3) ADD_FAILURE() << status.error().message;
      }
    }).join();
    return answered;
  }

  TwoHosts hosts_;
};

TEST_F(JoinRoughDay, EndsWellWithTheBitsOfACalmRun) {
  const std::filesystem::path folder = std::filesystem::path(files_.model()).parent_path();
  {
    Background rewards = server("0");
    Background calm = in(folder, words_of("calm"), "calm.head", hosts_.a());
    ASSERT_EQ(calm.wait(120), 0) << calm.text();
  }
  std::string plan;
  for (std::size_t i = 0; i < kErrors.size(); ++i) {
    plan +=
        (i > 0 ? "," : "") + ("generator/0 step " + kErrors[i]) + " " + std::to_string(15 * i + 3);
    plan += ",generator/0 fetch " + kErrors[i] + " " + std::to_string(i + 2);
  }
  Background rewards = server("0.3");
  ::setenv("TROUPE_FAULTS", plan.c_str(), 1);
  Background run = in(folder, words_of("rough"), "rough.head", hosts_.a());
  ::unsetenv("TROUPE_FAULTS");
  ASSERT_FALSE(company_of("rough").empty()) << run.text();
  const auto port = static_cast<std::uint16_t>(company_of("rough").value("port", 0));

  ASSERT_TRUE(hosts_.slow("1mbit"));
  Background far = in(folder, node("rough", "generator", "far"), "far", hosts_.b());
  Background spare = in("/", node("rough", "reference", "spare"), "spare", hosts_.b());
  ASSERT_TRUE(within(60, [&] { return updates_of("rough") >= 3; })) << run.text();

  std::atomic<bool> over = false;
  int asked = 0, told = 0;  // a status call a second, by the real command
  std::thread watcher([&] {
    while (!over) {
      ++asked;
      const Ended status = ends({"status", "--join", (files_ / "rough").string()}, 60, hosts_.a());
      told += status.status == 0 ? 1 : 0;
      within(1, [&] { return over.load(); });
    }
  });
  rewards.kill();
  const auto since = std::chrono::steady_clock::now();
  garbage(port);
  const int answered = visit("rough", kVisitors);
  within(kAway_s,
         [&] { return Seconds(std::chrono::steady_clock::now() - since).count() >= kAway_s; });
  EXPECT_TRUE(run.running()) << run.text();
  rewards = server("0.3");
  garbage(port);
  const auto status = run.wait(400);
  over = true;
  watcher.join();
  EXPECT_EQ(status, 0) << run.text() << far.text();
  EXPECT_EQ(answered, kVisitors);
  EXPECT_GE(told, asked - 1) << "only a call while the run ends may fail";
  EXPECT_TRUE(run.says("is back")) << run.text();
  EXPECT_TRUE(log_says("rough", "node/far joined"));
  EXPECT_TRUE(log_says("rough", "generator/0 is started again")) << "the errors came";
  expect_same_bits("rough", "calm", "async/generators");
  expect_clean_ledger("rough");
}

}  // namespace
}  // namespace troupe::test
