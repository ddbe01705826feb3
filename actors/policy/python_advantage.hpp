// A user's own advantages (docs/write_an_advantage.md): runs the function of a Python file in a
// worker process, checks the numbers that come back, and replaces a worker that hangs or dies. Used
// on the policy's device thread; a call blocks at most for its deadline at each try, and for up to
// 60 s more when it has to start a worker.
#pragma once

#include "runtime/config/key_types.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/advantage/advantage_source.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace troupe::actors::policy {

struct AdvantageOptions {
#define KEYS "actors/policy/advantage_keys.def"
#include "runtime/config/fill.def"
  std::uint64_t seed = 0;  // of the run; the function gets it
  bool has_reference = false, has_teacher = false, has_critic = false;  // what the run has to give
  std::function<void(const std::string& text)> note = {};  // says that a worker is replaced
};

// Starts the worker once, to check that the file loads. Errors: kConfig naming the file, with the
// end of the traceback, or with what the function reads and the run does not have.
core::Result<std::shared_ptr<learn::AdvantageSource>> make_python_advantage(
    AdvantageOptions options);

}  // namespace troupe::actors::policy
