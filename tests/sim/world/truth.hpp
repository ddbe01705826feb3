// What the fakes of a world know and the roles do not: the errors that they are to give, the
// weights that were published, and what was seen to be wrong. Owned by the world; one thread.
#pragma once

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "tests/sim/world/census.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::sim {

inline constexpr std::uint64_t kStepsOfUpdate = 2;  // versions of one update
inline constexpr std::int32_t kTokenOfRow0 = 3;     // prompts of row r are this plus r, repeated

class Truth {
 public:
  // ---- errors of living roles: the next `times` calls of `what` at `role` fail with this code.
  void arm(const std::string& role,
           const std::string& what,
           core::ErrorCode code,
           std::uint64_t times) {
    errors_[{role, what}] = {code, times};
  }
  // From now on all calls of `what` at `role` fail, until the role is made again, which must be
  // after at most `calls` of them.
  void sicken(const std::string& role,
              const std::string& what,
              core::ErrorCode code,
              std::uint64_t calls) {
    sick_[{role, what}] = {code, calls};
  }
  void made(const std::string& role) {
    std::erase_if(sick_, [&role](const auto& one) { return one.first.first == role; });
  }
  std::optional<core::Error> error(const std::string& role, const std::string& what) {
    if (const auto sick = sick_.find({role, what}); sick != sick_.end()) {
      census.count("given error", what + " sick");
      expect(sick->second.second-- > 0, role + " is sick and still gets tickets");
      return core::Error{sick->second.first, what + " of " + role + " fails until it starts again"};
    }
    const auto found = errors_.find({role, what});
    if (found == errors_.end() || found->second.second == 0) return std::nullopt;
    --found->second.second;
    census.count("given error", what + " " + std::string(core::error_name(found->second.first)));
    return core::Error{found->second.first, what + " of " + role + " fails as the world says"};
  }

  // From now on every engine fails at prompts of this row.
  void poison(std::uint64_t row, core::ErrorCode code) { poison_ = {row, code}; }
  std::optional<core::Error> poison_of(std::int32_t row) {
    if (!poison_ || poison_->first != static_cast<std::uint64_t>(row)) return std::nullopt;
    census.count("given error", "poison " + std::string(core::error_name(poison_->second)));
    ++poisonings_;
    return core::Error{poison_->second, "row " + std::to_string(row) + " is poison"};
  }

  std::uint64_t poisonings() const noexcept { return poisonings_; }  // so far

  // ---- violations of what must hold; the first is what the test shows
  void expect(bool holds, const std::string& what) {
    if (!holds) wrong_.push_back(what);
  }
  const std::vector<std::string>& wrong() const noexcept { return wrong_; }

  // The newest weights of each process that has a policy, by its number.
  std::map<std::uint64_t, core::Version> published;
  // What the last change of the attached reward promised: from this update on it counts with this
  // weight, 0 once it is detached. None while it is not certain.
  struct Promise {
    std::uint64_t from_update = 0;
    double weight = 0;
  };
  std::optional<Promise> promise;

  std::uint64_t open_folders = 0;                  // checkpoints begun
  std::map<std::uint64_t, std::uint64_t> learned;  // by update, a hash of its groups or rows
  // Of a supervised run, by the steps done: what was told of a step, and of an evaluation.
  std::map<std::uint64_t, std::uint64_t> step_figures, evaluation_figures;
  // Version at the start of update u is kStepsOfUpdate * u; no token may be older than this.
  static core::Version oldest_for(std::uint64_t update, std::uint64_t staleness_max) {
    return kStepsOfUpdate * (update - std::min(update, staleness_max));
  }

  // Another run begins: what the last one has learned is not known to it, nor the reward that was
  // attached to it.
  void begin_run() {
    open_folders = 0;
    learned.clear();
    step_figures.clear();
    evaluation_figures.clear();
    promise = Promise{};
  }

  Census census;

 private:
  using Calls =
      std::map<std::pair<std::string, std::string>, std::pair<core::ErrorCode, std::uint64_t>>;
  Calls errors_;  // still to be given
  Calls sick_;    // may still be given
  std::optional<std::pair<std::uint64_t, core::ErrorCode>> poison_;
  std::uint64_t poisonings_ = 0;
  std::vector<std::string> wrong_;
};

// A number that is made of the texts' and numbers' bits alone.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + 0x9E3779B97F4A7C15u + (b << 6) + (b >> 2) + b * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
inline std::uint64_t mix(std::uint64_t a, const std::string& text) {
  for (const char c : text)
    a = mix(a, static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  return a;
}

}  // namespace troupe::sim
