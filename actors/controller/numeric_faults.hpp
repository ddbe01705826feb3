// Decides who is at fault when samples have log-probs that are not finite: the first time under
// some weights it may be the generator, which is started again. When the same happens on the fresh
// one, for several different prompts and for no other, it is the weights. A pure value. Bound: the
// versions of weights that generators hold, and for each kPrompts_max prompts.
#pragma once

#include "actors/controller/prompt_rows.hpp"
#include "runtime/core/ids.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>

namespace troupe::actors::controller {

class NumericFaults {
 public:
  static constexpr std::size_t kPrompts_max = 3;  // failed prompts; then the weights are blamed

  enum class Verdict {
    kGenerator,  // the generator may be at fault
    kPrompt,     // the prompt or the weights are at fault
    kWeights,
  };
  // The prompt failed at a generator that holds this version. `wanted`: failures of so many
  // different prompts say that it is the weights. `cause`: prompts in one step of an engine
  // with one that overflowed share its cause, and count once.
  Verdict add(const std::string& generator,
              core::Version version,
              const PromptRows::Id& prompt,
              std::size_t wanted,
              const std::string& cause) {
    Faults& faults = by_version_[version];
    if (by_version_.size() > kVersions_max) by_version_.erase(by_version_.begin());
    if (faults.restarted.insert(generator).second) return Verdict::kGenerator;
    faults.prompts.insert(prompt);
    if (faults.causes.size() < kPrompts_max) faults.causes.insert(cause);
    const std::size_t different = std::min(faults.prompts.size(), faults.causes.size());
    return different >= wanted ? Verdict::kWeights : Verdict::kPrompt;
  }
  // Something was sampled with this version.
  void succeeded(core::Version version) {
    const auto found = by_version_.find(version);
    if (found == by_version_.end()) return;
    found->second.prompts.clear();
    found->second.causes.clear();
  }

 private:
  static constexpr std::size_t kVersions_max = 64;
  struct Faults {
    std::set<std::string> restarted;  // generators
    std::set<PromptRows::Id> prompts;
    std::set<std::string> causes;
  };
  std::map<core::Version, Faults> by_version_;
};

}  // namespace troupe::actors::controller
