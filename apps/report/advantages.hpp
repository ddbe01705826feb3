// The advantages with which an update learned, computed again from its rollout file by the
// trainer's own function. A run does not keep them. Not every run's can be computed: those of a
// critic need its values. Pure.
#pragma once

#include "runtime/experience/group.hpp"
#include "runtime/learn/settings.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::report {

using AdvantageTable = std::vector<std::vector<std::vector<double>>>;  // [group][sample][token]

class Advantages {
 public:
  // From RUN/resolved_config.yaml.
  static Advantages of_run(const std::filesystem::path& config_file);
  explicit Advantages(learn::AlgoSettings algo, bool synchronous);

  // Why a report shows none; empty if it does.
  const std::string& why_not() const { return why_not_; }
  // True if they depend on the tokens' log-probs, which only the experience log has.
  bool need_logprobs() const { return algo_.kl_in_reward() || algo_.needs_teacher(); }

  // Advantages of all groups of one update. Reads of each sample its number of tokens, its score,
  // how it ended and, with need_logprobs, its log-probs, the reference's and the teacher's.
  // nullopt: the groups cannot be learned from.
  std::optional<AdvantageTable> of(const std::vector<experience::Group>& groups) const;

 private:
  Advantages() = default;

  learn::AlgoSettings algo_;
  std::string why_not_;
};

}  // namespace troupe::report
