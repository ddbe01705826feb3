// An environment that is a user's Python class, run in worker processes (environment_worker.py):
// OpenRLHF's AgentInstance, TRL's environment_factory, or a class of our own plain form
// (docs/write_an_environment.md). A worker runs many episodes at a time: `async def` methods side
// by side, plain ones one after another.
//
// What the class raises costs its episode. A call has its time from when the worker begins with it;
// one that exceeds it is cancelled, and a worker that does not cancel within kCancelWait is killed.
// A worker that ends takes its episodes with it and is replaced, after a pause that doubles from
// kEnvironmentPause_min: the one whose call hung is over, the others are to be run again, those
// that may be the cause among fewer others, and those of a row of which one hung alone. What it
// prints is told line by line, at most kPrintedLines_max a second. Bound: kWorkerEpisodes_max
// episodes a worker.
#pragma once

#include "actors/environment/environment.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace troupe::actors::environment {

struct PythonEnvironmentOptions {
#define KEYS "actors/environment/environment_keys.def"
#define PART python
#include "runtime/config/fill.def"
  // For the log: a line that the file printed, how a worker ended. On the environment's strand.
  std::function<void(const std::string&)> say{};
};

// Starts the first worker, to check that the file loads; blocks for up to 60 s. Errors: kConfig
// naming the file, with the end of the traceback. `open` also has kPeerLost: no worker can be
// started.
core::Result<std::unique_ptr<Environment>> make_python_environment(
    PythonEnvironmentOptions options);

}  // namespace troupe::actors::environment
