// What the tests over real actors and processes share: exchanges with their threads, events that
// hooks record and tests wait for, and child processes. Waits are bounded and end at their event.
#pragma once

#include "runtime/async/io_threads.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/caf/exchange.hpp"
#include "tests/unit/runtime/cluster/support.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::cluster::testing {

inline constexpr auto kPatience = 60s;   // of a test with something that must happen
inline constexpr auto kForever = 3600s;  // a deadline that must not be what ends a call

// Serves a role from its own strand, as RoleHost does.
inline void serve_there(const std::shared_ptr<Endpoint>& role, Handler handler) {
  std::promise<void> served;
  async::post(role->strand(), [&] {
    role->serve(std::move(handler));
    served.set_value();
  });
  served.get_future().wait();
}

// Things that happened, in order, as lines.
class Events {
 public:
  void add(std::string event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  // The first event that begins with `prefix`, once it is there; "" after too long a wait.
  std::string wait(const std::string& prefix) {
    std::unique_lock lock(mutex_);
    std::string found;
    changed_.wait_for(lock, kPatience, [&] {
      for (const auto& event : events_) {
        if (event.rfind(prefix, 0) == 0) return found = event, true;
      }
      return false;
    });
    return found;
  }
  // True once there are `count` events.
  bool await(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return events_.size() >= count; });
  }
  // True once `event` has happened.
  bool await(const std::string& event) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience,
                             [&] { return std::ranges::find(events_, event) != events_.end(); });
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  int count(const std::string& prefix) {
    int number = 0;
    for (const auto& event : all())
      number += event.rfind(prefix, 0) == 0 ? 1 : 0;
    return number;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
};

// True as soon as `condition` holds; false when it never does.
inline bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// A coroutine's value, from a thread outside.
template <class T>
std::future<T> start_on(async::Executor executor, async::task<T> body) {
  struct Keep {
    static async::task<void> run(async::task<T> inner, std::shared_ptr<std::promise<T>> done) {
      auto value = co_await std::move(inner);
      done->set_value(std::move(value));
    }
  };
  auto done = std::make_shared<std::promise<T>>();
  auto future = done->get_future();
  boost::asio::co_spawn(std::move(executor), Keep::run(std::move(body), std::move(done)),
                        [](std::exception_ptr error) { EXPECT_FALSE(error); });
  return future;
}

inline std::future<Result<std::string>> start_ask(const std::shared_ptr<Endpoint>& self,
                                                  PeerName peer,
                                                  std::string text,
                                                  core::Duration patience = kForever) {
  return start_on(self->strand(), ask(self, std::move(peer), std::move(text), patience));
}

inline Result<std::string> ask_now(const std::shared_ptr<Endpoint>& self,
                                   PeerName peer,
                                   std::string text,
                                   core::Duration patience = kForever) {
  auto asked = start_ask(self, std::move(peer), std::move(text), patience);
  if (asked.wait_for(kPatience) != std::future_status::ready) {
    return core::fail(ErrorCode::kInternal, "the call did not end");
  }
  return asked.get();
}

// One process's part: an exchange, its threads and its roles.
class Troupe {
 public:
  Troupe() : threads_(2) {
    Exchange::Hooks hooks;
    hooks.admit = [this](const wire::Hello& hello, const std::string& origin) {
      return admit ? admit(hello, origin) : Result<void>();
    };
    hooks.arrived = [this](const wire::Hello& hello, const std::string&) {
      events.add("arrived " + hello.name + " " + std::to_string(hello.epoch));
    };
    hooks.lost = [this](const PeerName& name, std::uint64_t epoch, const core::Error& cause) {
      events.add("lost " + name + " " + std::to_string(epoch) + ": " + cause.message);
    };
    hooks.refused = [this](const std::string& what) { events.add("refused " + what); };
    exchange = std::move(Exchange::create(hooks, timers_)).value();
  }
  ~Troupe() {
    for (const auto& role : roles_)
      stop(role);
    const auto closed = exchange->close(kPatience);
    EXPECT_TRUE(closed) << closed.error().message;
    exchange.reset();
    threads_.join();
  }

  std::shared_ptr<Endpoint> join(const std::string& name, std::uint64_t epoch = 1) {
    auto joined = exchange->join(identity_of(name, epoch), threads_.make_strand());
    EXPECT_TRUE(joined) << joined.error().message;
    roles_.push_back(*joined);
    return *joined;
  }
  std::shared_ptr<Endpoint> join_echo(const std::string& name, std::uint64_t epoch = 1) {
    auto role = join(name, epoch);
    serve_there(role, echo_handler(name));
    return role;
  }
  void stop(const std::shared_ptr<Endpoint>& role) {
    EXPECT_EQ(start_on(role->strand(), stop_endpoint(role)).wait_for(kPatience),
              std::future_status::ready);
  }
  // Connects to another troupe as the role `name`, which has joined.
  Result<void> connect(const std::string& path,
                       const std::string& name,
                       std::uint64_t epoch = 1,
                       core::Duration deadline = kPatience) {
    return exchange->connect(path, {name, core::RunId{42}, epoch, "the pass"}, deadline);
  }
  async::IoThreads& threads() { return threads_; }
  async::Timers& timers() { return timers_; }

  std::function<Result<void>(const wire::Hello&, const std::string&)> admit;
  Events events;
  std::unique_ptr<Exchange> exchange;

 private:
  async::SteadyTimers timers_;
  async::IoThreads threads_;
  std::vector<std::shared_ptr<Endpoint>> roles_;
};

// A child process: bin/exchange_peer with these arguments, by way of another command if that is
// named. It ends with its standard input, so it never outlives the test; its lines are read one by
// one.
class Peer {
 public:
  explicit Peer(std::vector<std::string> arguments, const std::vector<std::string>& by = {}) {
    int to[2], from[2];
    EXPECT_EQ(::pipe2(to, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(from, O_CLOEXEC), 0);
    const auto program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "exchange_peer";
    arguments.insert(arguments.begin(), program.string());
    arguments.insert(arguments.begin(), by.begin(), by.end());
    std::vector<char*> argv;
    for (auto& argument : arguments)
      argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(to[0], 0);
      ::dup2(from[1], 1);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    input_ = to[1];
    output_ = ::fdopen(from[0], "r");
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() {
    if (pid_ > 0) signal(SIGKILL);
    ::close(input_);
    std::fclose(output_);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  void signal(int number) const {
    ::kill(pid_, number);
    // A process goes on for a moment before it is stopped.
    if (number == SIGSTOP) ::waitpid(pid_, nullptr, WUNTRACED);
  }
  // Lets it end by itself; gives its exit status.
  int end() {
    ::close(std::exchange(input_, -1));
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string line() {
    char text[1024];
    if (std::fgets(text, sizeof text, output_) == nullptr) return "";
    std::string line(text);
    while (!line.empty() && line.back() == '\n')
      line.pop_back();
    return line;
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  std::FILE* output_ = nullptr;
};

// Two processes' worth, connected: `home` listens and has "home/0", `away` has "away/0".
class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() {
    home_role_ = home_.join_echo("home/0");
    away_role_ = away_.join_echo("away/0");
    path_ = *home_.exchange->listen();
  }
  void connect() {
    const auto connected = away_.connect(path_, "away/0");
    ASSERT_TRUE(connected) << connected.error().message;
    ASSERT_NE(away_.events.wait("arrived home/0"), "");
    ASSERT_NE(home_.events.wait("arrived away/0"), "");
  }

  Troupe home_, away_;
  std::shared_ptr<Endpoint> home_role_, away_role_;
  std::string path_;
};

}  // namespace troupe::cluster::testing
