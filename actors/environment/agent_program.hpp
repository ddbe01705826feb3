// Runs an agent's command once an episode, many at a time, each with the URL and the key of its own
// session: any program that speaks OpenAI's or Anthropic's API by their usual variables learns so,
// unedited. Programs are started by one worker process (agent_worker.py). They are confined by the
// kernel as programs of the rule `code` are (ADR 0032): they can read the interpreter and the
// folder of the run, write in a folder in memory, and reach nothing but the run's server, on
// 127.0.0.1. Not confined, a program does what its user may do.
//
// A program, and all that it started, ends with its episode: when it ends by itself, at its time
// limit, when the coroutine that runs it is cancelled, when our process is killed. Used on one
// strand. Bound: kAgents_max programs at a time.
#pragma once

#include "actors/environment/environment.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::environment {

struct AgentProgramOptions {
  // The words of `command` are split as a shell does; no shell runs it.
#define KEYS "actors/environment/environment_keys.def"
#define PART program
#include "runtime/config/fill.def"
  std::filesystem::path folder;  // where it runs, and what it can read; empty: the current folder
  std::int64_t memory_mb = 2048;      // of a program with all that it started
  core::Duration time_limit{};        // of a program; zero: the deadline of `run` alone
  std::vector<std::string> readable;  // more files and folders that a confined program can read
  // For the log: how the worker ended. On the strand that the programs run on.
  std::function<void(const std::string&)> say;
};

// What a program is started with. Its environment has OPENAI_BASE_URL (URL/v1), ANTHROPIC_BASE_URL
// (URL), OPENAI_API_KEY, ANTHROPIC_API_KEY, TROUPE_TASK (the row as JSON) and TROUPE_PROMPT. One of
// the last two that is longer than kAgentTask_bytes_max is in a file, whose path is
// TROUPE_TASK_FILE or TROUPE_PROMPT_FILE.
struct AgentTask {
  std::string url;  // of the run's server, http://HOST:PORT with or without a path; no TLS
  std::string key;  // opens the episode's own session only
  EpisodeStart start;
};

struct AgentOutcome {
  // What it printed, on both streams: the first and the last kAgentOutput_bytes_max.
  std::string output;
  std::uint64_t output_bytes = 0;  // of all that it printed
};

class AgentProgram {
 public:
  virtual ~AgentProgram() = default;
  // Called once, before the first `run`, with what it runs on: scope, timers, device queue.
  virtual void begin(const RoleContext& context) = 0;
  // Runs the program to its end. Errors: kData (a status that is not 0, with the last lines of its
  // standard error; more memory or processes than it may have; it could not be started), kDeadline
  // (the time limit), kClosed (the worker ended), kPeerLost (none can be started), kOverloaded
  // (kAgents_max run already), kConfig (the URL).
  virtual async::task<core::Result<AgentOutcome>> run(AgentTask task, async::Deadline deadline) = 0;
  virtual std::string name() const = 0;  // for messages: "the agent python my_agent.py"
  virtual wire::Amounts amounts() const = 0;
};

// Starts the worker, to check that the command is there and that programs can be confined; blocks
// for up to 60 s. Errors: kConfig, with the remedy.
core::Result<std::unique_ptr<AgentProgram>> make_agent_program(AgentProgramOptions options);

}  // namespace troupe::actors::environment
