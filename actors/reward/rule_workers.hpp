// The rules that Python workers of our own judge: `math` (rule_math.py, with the math-verify
// package) and `code` (rule_code.py, which runs programs confined by confinement.py). A pool of
// workers as for a user's function (python_reward.hpp).
#pragma once

#include "actors/reward/reward_calls.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::reward {

// Whether the rule of that name runs in workers.
bool in_workers(const std::string& rule);

// A folder with the packages of `math`, pinned in runtime/cmake/requirements/math.txt, below
// $TROUPE_HOME or ~/.cache/troupe. The first call on a machine installs them there with the pip of
// the PATH's python3, which blocks for up to ten minutes; others wait for it. `say` is told before.
// Error kConfig: pip failed, with its last lines and the remedy.
core::Result<std::filesystem::path> math_packages(
    const std::function<void(const std::string&)>& say);

// 1 where the answer in a response equals the label as mathematics, else 0; an answer that cannot
// be read, or that takes more than `seconds` of processor time, is 0 and counted (`math_unparsed`,
// `math_stuck` besides the scores). A label that cannot be read has no score. Errors: those of
// math_packages; kConfig.
core::Result<std::unique_ptr<RewardCalls>> make_math_reward(
    std::size_t workers, const std::function<void(const std::string&)>& say, double seconds = 5);

struct CodeRewardOptions {
#define KEYS "actors/reward/code_keys.def"
#include "runtime/config/fill.def"
  std::size_t workers = 1;
};

// The share of the label's tests (docs/write_a_reward.md) that the program in a response passes. A
// label without tests has no score; `code_stopped` besides the score tells that a limit ended a
// program. Error kConfig: programs cannot be confined here.
core::Result<std::unique_ptr<RewardCalls>> make_code_reward(const CodeRewardOptions& options);

}  // namespace troupe::actors::reward
