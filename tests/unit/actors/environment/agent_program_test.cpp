// Agent programs in real processes: what they are given, that they reach the run's server and
// nothing else, and that they end, with all that they started, however their episode ends.
#include "actors/environment/agent_program.hpp"

#include "runtime/core/owned_fd.hpp"
#include "runtime/net/http_server.hpp"
#include "runtime/net/socket.hpp"
#include "tests/unit/actors/environment/environment_stage.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

namespace troupe::actors::environment {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Outcome = core::Result<AgentOutcome>;

// What every program here begins with: a call of the run's server, and a lock that it and all that
// it starts hold until they have ended.
constexpr const char* kAgentHead = R"(
import fcntl, json, os, signal, socket, sys, time, urllib.request
held = open(sys.argv[1]) if len(sys.argv) > 1 else None
if held: fcntl.flock(held, fcntl.LOCK_SH)
def ask(text):
    request = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', data=text.encode(),
                                     headers={'Authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']})
    return urllib.request.urlopen(request).read().decode()
def tried(name, attempt):
    try: print(name, 'done', attempt())
    except Exception as error: print(name, 'refused', type(error).__name__)
)";

class AgentProgramTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "agent_XXXXXX").string();
    top_ = ::mkdtemp(pattern.data());
    fs::create_directory(top_ / "agent");
    std::ofstream(top_ / "outside.txt") << "not for you";
    std::ofstream(lock_path()) << "";
    net::HttpServerOptions options;
    auto server = net::HttpServer::open(
        io_, options, [this](net::HttpRequest request) { return answer(std::move(request)); });
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void TearDown() override {
    stage_.reset();
    program_.reset();
    server_.reset();
    io_.join();
    fs::remove_all(top_);
  }

  fs::path lock_path() const { return top_ / "agent" / "lock"; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

  core::Result<std::unique_ptr<AgentProgram>> made(const std::string& code, bool confined) {
    std::ofstream(top_ / "agent" / "my_agent.py") << kAgentHead << code;
    options_.command = "python3 my_agent.py lock";
    options_.folder = top_ / "agent";
    options_.confined = confined;
    options_.say = said_.hook();
    return make_agent_program(options_);
  }
  // False, after a skip, where the kernel refuses namespaces.
  bool load(const std::string& code, bool confined = true) {
    auto program = made(code, confined);
    if (!program && confined) {
      EXPECT_NE(program.error().message.find("env.confined false"), std::string::npos)
          << program.error().message;
      return false;
    }
    EXPECT_TRUE(program) << program.error().message;
    program_ = std::move(*program);
    stage_.emplace(nullptr);
    stage_->run(begin(program_.get(), stage_->context()));
    return true;
  }
  Outcome run(AgentTask task = {}, core::Duration time = kAmpleTime) {
    return std::move(run_all({std::move(task)}, time).front());
  }
  std::vector<Outcome> run_all(std::vector<AgentTask> tasks, core::Duration time = kAmpleTime) {
    std::vector<Outcome> out(tasks.size(), core::fail(core::ErrorCode::kInternal, "not run"));
    for (AgentTask& task : tasks) {
      if (task.url.empty()) task.url = url();
    }
    stage_->run(run_each(this, std::move(tasks), time, &out));
    return out;
  }
  // Whether nothing that a program started holds its lock. Waits for that if `waits`.
  bool all_gone(bool waits = false) const {
    const core::OwnedFd file(::open(lock_path().c_str(), O_RDONLY | O_CLOEXEC));
    return ::flock(file.get(), LOCK_EX | (waits ? 0 : LOCK_NB)) == 0;
  }

  static async::task<void> begin(AgentProgram* program, RoleContext context) {
    program->begin(context);
    co_return;
  }
  static async::task<void> run_each(AgentProgramTest* self,
                                    std::vector<AgentTask> tasks,
                                    core::Duration time,
                                    std::vector<Outcome>* out) {
    std::vector<async::task<core::Result<void>>> all;
    for (std::size_t i = 0; i < tasks.size(); ++i)
      all.push_back(run_one(self, tasks[i], time, &(*out)[i]));
    (void)co_await async::all(std::move(all));
  }
  static async::task<core::Result<void>> run_one(AgentProgramTest* self,
                                                 AgentTask task,
                                                 core::Duration time,
                                                 Outcome* out) {
    const auto until = async::Deadline::after(*self->stage_->context().timers, time);
    auto outcome = co_await self->program_->run(std::move(task), until);
    *out = std::move(outcome);
    co_return core::Result<void>();
  }
  // Fails when a request has come, which cancels what runs beside it.
  static async::task<core::Result<void>> fail_when_asked(AgentProgramTest* self) {
    auto asked = async::Oneshot<bool>::take(self->asked_);
    const bool is = co_await std::move(asked);
    co_return core::fail(core::ErrorCode::kInternal, is ? "asked" : "");
  }
  // For another thread: until a program has asked.
  static async::task<void> wait_for_request(AgentProgramTest* self) {
    auto asked = wait_here(self);
    co_await async::run_on(self->stage_->context().scope->executor(), std::move(asked));
  }
  static async::task<void> wait_here(AgentProgramTest* self) {
    co_await async::Event::wait(self->asked_);
  }
  static async::task<void> run_until_asked(AgentProgramTest* self, AgentTask task) {
    std::vector<async::task<core::Result<void>>> all;
    all.push_back(run_one(self, task, kAmpleTime, &self->dropped_));
    all.push_back(fail_when_asked(self));
    (void)co_await async::all(std::move(all));
  }

  async::task<net::HttpResponse> answer(net::HttpRequest request) {
    const std::string key(net::find_header(request.headers, "authorization"));
    ++asked_by_[key + " " + request.path];
    if (asked_) {
      async::post(stage_->context().scope->executor(), [asked = asked_] { asked->set(true); });
    }
    net::HttpResponse response;
    response.body = "answer to " + request.body;
    co_return response;
  }

  async::IoThreads io_{1};
  std::unique_ptr<net::HttpServer> server_;
  std::map<std::string, int> asked_by_;  // on the server's strand, or when it has nothing to do
  std::shared_ptr<async::Oneshot<bool>> asked_;
  Outcome dropped_ = core::fail(core::ErrorCode::kInternal, "not run");
  fs::path top_;
  AgentProgramOptions options_;
  SaidLines said_;
  std::unique_ptr<AgentProgram> program_;
  std::optional<EnvironmentStage> stage_;
};

AgentTask task_of(const std::string& key, const std::string& row = "{}") {
  AgentTask task;
  task.key = key;
  task.start.columns = row;
  task.start.prompt = "the prompt\nof " + key;
  return task;
}

#define LOAD_OR_SKIP(...) \
  if (!load(__VA_ARGS__)) GTEST_SKIP() << "LOUD SKIP: programs cannot be confined here"

}  // namespace

// Both confined (true) and not.
INSTANTIATE_TEST_SUITE_P(Both, AgentProgramTest, testing::Bool(), [](const auto& made) {
  return made.param ? "Confined" : "Free";
});

TEST_P(AgentProgramTest, AnUneditedProgramReachesTheRunWithItsKey) {
  LOAD_OR_SKIP(R"(
task = os.environ.get('TROUPE_TASK') or open(os.environ['TROUPE_TASK_FILE']).read()
print(ask('hello'), json.loads(task)['n'], len(task), os.environ['TROUPE_PROMPT'])
print(os.environ['ANTHROPIC_BASE_URL'] + '/v1' == os.environ['OPENAI_BASE_URL'], os.environ['ANTHROPIC_API_KEY'])
)",
               GetParam());
  const std::string long_row = json{{"n", 4}, {"text", std::string(300000, 'x')}}.dump();
  const auto outcomes = run_all({task_of("key-1", R"({"n":3})"), task_of("key-2", long_row)});
  ASSERT_TRUE(outcomes[0]) << outcomes[0].error().message;
  EXPECT_EQ(outcomes[0]->output, "answer to hello 3 7 the prompt\nof key-1\nTrue key-1\n");
  ASSERT_TRUE(outcomes[1]) << outcomes[1].error().message;
  EXPECT_NE(outcomes[1]->output.find(" 4 " + std::to_string(long_row.size()) + " "),
            std::string::npos)
      << outcomes[1]->output;
  EXPECT_EQ(asked_by_["Bearer key-1 /v1/chat/completions"], 1);
  EXPECT_EQ(asked_by_["Bearer key-2 /v1/chat/completions"], 1);
}

TEST_P(AgentProgramTest, WhatItStartedEndsWithIt) {
  LOAD_OR_SKIP(R"(
for i in range(3):
    if os.fork() == 0:
        if i: os.setsid()
        if i == 2 and os.fork() != 0: os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True: time.sleep(1000)
print('ended')
)",
               GetParam());
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->output, "ended\n");
  EXPECT_TRUE(all_gone());
}

TEST_P(AgentProgramTest, OneThatHangsIsEndedAtItsLimit) {
  options_.time_limit = std::chrono::milliseconds(300);
  LOAD_OR_SKIP(R"(
if os.fork() == 0: os.setsid()
while True: time.sleep(1000)
)",
               GetParam());
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, core::ErrorCode::kDeadline);
  EXPECT_NE(outcome.error().message.find("the agent python3 my_agent.py lock ran for more than 0.3 "
                                         "s; raise env.episode_timeout_s"),
            std::string::npos)
      << outcome.error().message;
  EXPECT_TRUE(all_gone());
}

TEST_P(AgentProgramTest, OneWhoseEpisodeIsDroppedIsEnded) {
  LOAD_OR_SKIP("ask('here')\nif os.fork() == 0: os.setsid()\ntime.sleep(1000)", GetParam());
  asked_ = std::make_shared<async::Oneshot<bool>>();
  AgentTask task;
  task.url = url();
  stage_->run(run_until_asked(this, task));
  EXPECT_FALSE(dropped_) << "its coroutine was cancelled";
  EXPECT_TRUE(all_gone(true));
}

TEST_P(AgentProgramTest, WhenTheWorkerDiesItsProgramsDieAndTheNextRunWorks) {
  LOAD_OR_SKIP(R"(
if 'fatal' in ask('here' + os.environ['TROUPE_TASK']):
    if os.fork() == 0: os.setsid()
    time.sleep(1000)
print('fine')
)",
               GetParam());
  asked_ = std::make_shared<async::Oneshot<bool>>();
  const auto kill_children = [](const std::string& of) {
    for (const auto& thread : fs::directory_iterator("/proc/" + of + "/task")) {
      std::ifstream in(thread.path() / "children");
      for (pid_t child = 0; in >> child;)
        ::kill(child, SIGKILL);
    }
  };
  AgentTask task = task_of("key", R"({"kind":"fatal"})");
  task.url = url();
  // When the program has asked, all children of this process, its worker, are killed.
  std::thread killer([&] {
    async::IoThreads io(1);
    io.run(wait_for_request(this));
    kill_children("self");
    io.join();
  });
  const auto outcome = run(task);
  killer.join();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, core::ErrorCode::kClosed) << outcome.error().message;
  EXPECT_TRUE(all_gone(true));
  const auto next = run(task_of("key", R"({"kind":"mild"})"));
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->output, "fine\n");
  EXPECT_EQ(said_.holding("was ended by signal 9 (Killed); it is started again"), 1u);
}

TEST_P(AgentProgramTest, AStatusThatIsNotZeroHasItsLastLines) {
  LOAD_OR_SKIP("print('a' * 9000, file=sys.stderr)\nraise KeyError('no such tool')", GetParam());
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, core::ErrorCode::kData);
  EXPECT_NE(outcome.error().message.find("ended with status 1"), std::string::npos)
      << outcome.error().message;
  EXPECT_NE(outcome.error().message.find("KeyError: 'no such tool'"), std::string::npos);
  EXPECT_LT(outcome.error().message.size(), 1500u);
}

TEST_P(AgentProgramTest, OfAnEndlessOutputTheBeginningAndTheEndAreKept) {
  LOAD_OR_SKIP(R"(
os.write(1, b'first ')
for i in range(1024): os.write(1, b'x' * (1 << 20))
os.write(1, b' last')
)",
               GetParam());
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->output_bytes, (1u << 30) + 11u);
  EXPECT_TRUE(outcome->output.starts_with("first x"));
  EXPECT_TRUE(outcome->output.ends_with("x last"));
  EXPECT_LT(outcome->output.size(), 140000u);
}

TEST_P(AgentProgramTest, MemoryAndProcessesHaveTheirLimits) {
  options_.memory_mb = 256;
  LOAD_OR_SKIP(R"(
if 'memory' in os.environ['TROUPE_TASK']:
    for i in range(4):
        if os.fork() == 0: break
    kept = b'x' * (150 << 20)
    time.sleep(1000)
while True:
    try:
        if os.fork() == 0: break
    except OSError: pass
time.sleep(1000)
)",
               GetParam());
  const auto outcomes = run_all({task_of("a", R"({"a":"memory"})"), task_of("b")});
  ASSERT_FALSE(outcomes[0]);
  EXPECT_NE(outcomes[0].error().message.find("more than 256 MB; raise env.memory_mb"),
            std::string::npos)
      << outcomes[0].error().message;
  ASSERT_FALSE(outcomes[1]);
  EXPECT_NE(outcomes[1].error().message.find("too many processes"), std::string::npos)
      << outcomes[1].error().message;
  EXPECT_TRUE(all_gone());
}

TEST_F(AgentProgramTest, SixtyFourAtOnceReachTheirOwnSessions) {
  LOAD_OR_SKIP("print(ask('a'), ask('b'))");
  std::vector<AgentTask> tasks;
  for (int i = 0; i < 64; ++i)
    tasks.push_back(task_of("key" + std::to_string(i)));
  for (const auto& outcome : run_all(tasks)) {
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->output, "answer to a answer to b\n");
  }
  EXPECT_EQ(asked_by_.size(), 64u);
  for (const auto& [who, times] : asked_by_)
    EXPECT_EQ(times, 2) << who;
}

TEST_F(AgentProgramTest, AConfinedOneReachesNothingElse) {
  std::uint32_t other = 0;
  const auto listener = net::listen_tcp("127.0.0.1", other);
  ASSERT_TRUE(listener);
  std::ofstream(top_ / "agent" / "data.txt") << "to be read";
  const std::string outside = (top_ / "outside.txt").string();
  LOAD_OR_SKIP("other, outside = " + std::to_string(other) + ", '" + outside + "'\n" + R"(
tried('own file', lambda: open('data.txt').read())
tried('own note', lambda: open('/tmp/note', 'w').write('abc'))
tried('localhost', lambda: socket.gethostbyname('localhost'))
tried('other port', lambda: socket.create_connection(('127.0.0.1', other), 5))
tried('other host', lambda: socket.create_connection(('192.0.2.1', 80), 5))
tried('unix socket', lambda: socket.socket(socket.AF_UNIX))
tried('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
tried('packets', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
tried('outside', lambda: open(outside).read())
tried('beside', lambda: os.listdir(os.path.dirname(os.getcwd())))
tried('shadow', lambda: open('/etc/shadow').read())
tried('processes', lambda: os.listdir('/proc'))
tried('folder', lambda: open('data.txt', 'w'))
tried('system', lambda: open('/usr/troupe-was-here', 'w'))
tried('root', lambda: open('/troupe-was-here', 'w'))
tried('signal', lambda: os.kill(2, 9))
)");
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message;
  const std::string beside = "beside done ['agent']\n";
  EXPECT_EQ(outcome->output,
            "own file done to be read\nown note done 3\nlocalhost done 127.0.0.1\n"
            "other port refused ConnectionRefusedError\nother host refused OSError\n"
            "unix socket refused PermissionError\nnetlink refused PermissionError\n"
            "packets refused PermissionError\noutside refused FileNotFoundError\n" +
                beside +
                "shadow refused FileNotFoundError\nprocesses refused FileNotFoundError\n"
                "folder refused OSError\nsystem refused OSError\nroot refused OSError\n"
                "signal refused ProcessLookupError\n");
  EXPECT_FALSE(fs::exists("/troupe-was-here"));
}

TEST_F(AgentProgramTest, FoldersOfProgramsThatAreNotConfinedGoWithThem) {
  LOAD_OR_SKIP(
      "here = os.environ['TMPDIR']\nopen(here + '/mine', 'w').close()\nprint(here, end='')", false);
  for (const Outcome& outcome : run_all({{}, {}})) {
    ASSERT_TRUE(outcome) << outcome.error().message;
    const fs::path folder = outcome->output, place = folder.parent_path();
    EXPECT_TRUE(place.filename().string().starts_with("troupe-agent-")) << folder;
    EXPECT_FALSE(fs::exists(folder)) << folder;
    EXPECT_FALSE(fs::exists(place)) << place;
  }
}

TEST_F(AgentProgramTest, WhatCannotRunIsRefusedWithTheRemedy) {
  const auto refusal = [&](const std::string& command, const fs::path& folder) {
    AgentProgramOptions options;
    options.command = command;
    options.folder = folder;
    const auto program = make_agent_program(options);
    EXPECT_FALSE(program);
    return program ? "" : program.error().message;
  };
  EXPECT_EQ(refusal("", top_), "env.command is empty");
  EXPECT_EQ(refusal("no-such-program x", top_),
            "env.command: there is no program `no-such-program` on the PATH");
  EXPECT_NE(refusal("python3 x", top_ / "none").find("there is no folder"), std::string::npos);
  EXPECT_NE(refusal("python3 x", "/").find("a confined program can read all of its folder"),
            std::string::npos);
  LOAD_OR_SKIP("print('fine')", false);
  AgentTask task;
  task.url = "https://127.0.0.1:1";
  const auto tls = run(task);
  ASSERT_FALSE(tls);
  EXPECT_EQ(tls.error().code, core::ErrorCode::kConfig);
}

}  // namespace troupe::actors::environment
