#include "actors/environment/agent_program.hpp"

#include "actors/environment/agent_worker_source.hpp"
#include "actors/environment/limits.hpp"
#include "actors/environment/printed_lines.hpp"
#include "actors/reward/worker_slots.hpp"
#include "actors/reward/worker_words.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/net/url.hpp"

#include <algorithm>

namespace troupe::actors::environment {
namespace {

using Json = nlohmann::json;

// At least this long before the deadline a program is ended, so that its end is known by then.
constexpr core::Duration kEndOfAgent = std::chrono::milliseconds(500);

std::string as_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string seconds_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.resize(text.find('.') + 2);
  return text + " s";
}

std::string text_of(const Json& reply, const char* name) {
  const auto found = reply.find(name);
  return found != reply.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string agent_name(const std::string& command) {
  return "the agent " + command;
}

core::Result<void> read_agent_greeting(const Json& line) {
  if (line.value("ready", false)) return {};
  const std::string said = core::foreign(text_of(line, "error"));
  return core::fail(ErrorCode::kConfig, said.starts_with(' ')
                                            ? said.substr(1)
                                            : "the worker of agent programs ended:" + said);
}

class AgentProgramOfWorker final : public AgentProgram {
 public:
  AgentProgramOfWorker(AgentProgramOptions options,
                       std::vector<std::string> command,
                       std::unique_ptr<reward::WorkerProcess> first)
      : options_(std::move(options)),
        first_(std::move(first)),
        printed_(name(), options_.say),
        slots_(slots_of(std::move(command))) {}

  std::string name() const override { return agent_name(options_.command); }

  void begin(const RoleContext& context) override {
    context_ = context;
    notifier_.emplace(*context_.timers);
    slots_.begin(context_, std::move(first_));
  }

  async::task<core::Result<AgentOutcome>> run(AgentTask task, async::Deadline deadline) override {
    if (running_ == limits::kAgents_max) {
      co_return core::fail(ErrorCode::kOverloaded,
                           std::to_string(running_) + " agent programs run already");
    }
    const Counted counted(running_);
    TROUPE_CO_TRY_ASSIGN(url, net::parse_url(task.url));
    if (url.tls) {
      co_return core::fail(ErrorCode::kConfig, "agents reach the run by http, not " + task.url);
    }
    TROUPE_CO_TRY_ASSIGN(worker, co_await a_worker(deadline));
    const std::uint64_t id = ++next_id_;
    const double seconds = seconds_of(deadline);
    const auto batch = worker->give(id, request(id, task, url, seconds), limits::kAgents_max);
    const Killer killer(worker, id);
    const core::Error late{ErrorCode::kDeadline, name() + " did not end in time"};
    auto reply = co_await async::take_until(*context_.timers, batch->answer, deadline, late);
    if (reply) co_return outcome_of(*reply, seconds);
    co_return reply.failure();
  }

  wire::Amounts amounts() const override {
    return {{"programs", static_cast<double>(running_)},
            {"run", static_cast<double>(run_)},
            {"failed", static_cast<double>(failed_)},
            {"starts", static_cast<double>(slots_.starts())},
            {"restart_pause_s", slots_.longest_pause_s()}};
  }

 private:
  struct Counted {
    explicit Counted(std::size_t& count) : count_(count) { ++count_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --count_; }
    std::size_t& count_;
  };
  // Ends the program with the coroutine that waits for it; one that has ended is not known there.
  struct Killer {
    Killer(std::shared_ptr<reward::PythonWorker> worker, std::uint64_t id)
        : worker_(std::move(worker)), id_(id) {}
    Killer(const Killer&) = delete;
    Killer& operator=(const Killer&) = delete;
    ~Killer() {
      if (worker_->alive()) worker_->tell(as_line({{"kill", id_}}));
    }
    const std::shared_ptr<reward::PythonWorker> worker_;
    const std::uint64_t id_;
  };

  reward::WorkerSlots::Options slots_of(std::vector<std::string> command) {
    reward::WorkerSlots::Options slots;
    slots.name = "worker of agent programs";
    slots.where = name();
    slots.command = std::move(command);
    slots.pause_min = limits::kEnvironmentPause_min;
    slots.pause_max = limits::kEnvironmentPause_max;
    slots.pause_forget = limits::kEnvironmentPause_forget;
    slots.prints = reward::WorkerProcess::Prints::kTaken;
    slots.greeted = read_agent_greeting;
    slots.changed = [this] {
      if (notifier_) notifier_->notify_all();
    };
    slots.lost = [this](const std::string& how) {
      if (options_.say) options_.say(how + "; it is started again");
    };
    slots.printed = [this](std::string line) { printed_(line, context_.timers->now()); };
    return slots;
  }

  async::task<core::Result<std::shared_ptr<reward::PythonWorker>>> a_worker(
      async::Deadline deadline) {
    const std::uint64_t failed_before = slots_.failed_starts();
    for (;;) {
      slots_.fill();
      if (auto worker = slots_.least([](const reward::PythonWorker&) { return true; }))
        co_return worker;
      if (slots_.failed_starts() > failed_before) {
        co_return core::fail(ErrorCode::kPeerLost, slots_.start_error());
      }
      const bool woken = co_await notifier_->wait(deadline);
      if (!woken) {
        co_return core::fail(ErrorCode::kDeadline, name() + ": its worker did not start in time");
      }
    }
  }

  double seconds_of(async::Deadline deadline) const {
    core::Duration least = deadline.remaining(*context_.timers);
    if (!deadline.is_none()) least = std::max(least - kEndOfAgent, least / 2);
    if (options_.time_limit > core::Duration::zero()) least = std::min(least, options_.time_limit);
    return std::min(std::chrono::duration<double>(least).count(), 1e8);
  }

  std::string request(std::uint64_t id,
                      const AgentTask& task,
                      const net::Url& url,
                      double seconds) const {
    const std::string inside = "127.0.0.1:" + std::to_string(url.port);
    std::string base = "http://" + (options_.confined ? inside : url.host_header) + url.target;
    while (base.back() == '/')
      base.pop_back();
    const Json environment = {{"OPENAI_BASE_URL", base + "/v1"},
                              {"OPENAI_API_KEY", task.key},
                              {"ANTHROPIC_BASE_URL", base},
                              {"ANTHROPIC_API_KEY", task.key}};
    const std::string row = task.start.columns.empty() ? "{}" : task.start.columns;
    const Json texts = {{"TROUPE_TASK", row}, {"TROUPE_PROMPT", task.start.prompt}};
    return as_line({{"id", id},
                    {"run",
                     {{"environment", environment},
                      {"texts", texts},
                      {"host", url.host},
                      {"port", url.port},
                      {"seconds", seconds}}}});
  }

  core::Result<AgentOutcome> outcome_of(const Json& reply, double seconds) {
    ++run_;
    const std::string how = text_of(reply, "how"), errors = text_of(reply, "errors");
    const auto status = reply.find("status"), bytes = reply.find("bytes");
    const bool well = status != reply.end() && status->is_number_integer() && *status == 0;
    if (how == "ended" && well) {
      AgentOutcome outcome;
      outcome.output = text_of(reply, "output");
      if (bytes != reply.end() && bytes->is_number_unsigned())
        outcome.output_bytes = bytes->get<std::uint64_t>();
      return outcome;
    }
    ++failed_;
    if (how == "late") {
      return core::fail(ErrorCode::kDeadline,
                        name() + " ran for more than " + seconds_text(seconds),
                        "raise env.episode_timeout_s");
    }
    if (how == "cannot") {
      return core::fail(ErrorCode::kData,
                        name() + " could not be started:" + core::foreign(errors));
    }
    if (how == "too large" || how == "too many") {
      const bool many = how == "too many";
      return core::fail(
          ErrorCode::kData,
          name() + " was ended: " +
              (many ? "it had too many processes"
                    : "it used more than " + std::to_string(options_.memory_mb) + " MB"),
          many ? "" : "raise env.memory_mb");
    }
    const std::string ended = status != reply.end() ? status->dump() : "none";
    const std::string program = text_of(reply, "program");
    return core::fail(ErrorCode::kData, name() + " ended with status " + ended +
                                            (program.empty() ? "" : " (run by " + program + ")") +
                                            (errors.empty() ? "" : ":" + core::foreign(errors)));
  }

  const AgentProgramOptions options_;
  RoleContext context_;
  std::unique_ptr<reward::WorkerProcess> first_;  // until `begin`
  PrintedLines printed_;
  reward::WorkerSlots slots_;
  std::optional<async::Notifier> notifier_;
  std::size_t running_ = 0;
  std::uint64_t next_id_ = 0, run_ = 0, failed_ = 0;
};

}  // namespace

core::Result<std::unique_ptr<AgentProgram>> make_agent_program(AgentProgramOptions options) {
  std::error_code unknown;
  if (options.folder.empty()) options.folder = std::filesystem::current_path(unknown);
  const auto folder = std::filesystem::canonical(options.folder, unknown);
  if (unknown) {
    return core::fail(ErrorCode::kConfig,
                      "env.command: there is no folder " + options.folder.string());
  }
  const Json settings = {{"command", options.command},
                         {"confined", options.confined},
                         {"folder", folder.string()},
                         {"memory_mb", options.memory_mb},
                         {"readable", options.readable},
                         {"output_bytes", limits::kAgentOutput_bytes_max},
                         {"task_bytes", limits::kAgentTask_bytes_max}};
  const std::vector<std::string> command = {"python3", "-c", kAgentWorkerSource, as_line(settings),
                                            "3"};
  auto process = std::make_unique<reward::WorkerProcess>("worker of agent programs");
  if (auto started = process->start(command, reward::WorkerProcess::Prints::kTaken); !started) {
    return core::fail(ErrorCode::kConfig, started.error().message);
  }
  auto line = process->read_line(reward::kWorkerStart);
  if (!line) {
    return core::fail(ErrorCode::kConfig, line.error().within(agent_name(options.command)).message);
  }
  TROUPE_TRY(read_agent_greeting(reward::first_words(*line)));
  return {std::make_unique<AgentProgramOfWorker>(std::move(options), command, std::move(process))};
}

}  // namespace troupe::actors::environment
