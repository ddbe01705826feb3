// Injects faults, for tests of the whole program: the environment variable TROUPE_FAULTS makes the
// engine of a generator, or its fetches of weights, fail as a broken device or a broken link would.
// Without the variable there is no plan and nothing is wrapped.
//
//   TROUPE_FAULTS="generator/1 step resources 40, generator/1 fetch deadline 2"
//
// makes the 40th step of generator/1's engine fail and its second fetch of weights, counted over
// all starts of the role in a process. Errors have the names that messages show, with "_" for a
// space; `wedge` in the place of an error makes the call never return. Owned by the process's role
// loader; thread-safe.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/engine/driver.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::session {

class FaultPlan {
 public:
  // Parses the variable; null without it. Error: kConfig naming the part that cannot be parsed.
  static core::Result<std::unique_ptr<FaultPlan>> from_environment();

  // Counts a call; returns the error that it must fail with, if any.
  std::optional<core::Error> at_call(const std::string& role, const std::string& what);

  // Wraps a maker of engines, or a subscriber, so that the plan's faults occur. The plan outlives
  // what is made.
  engine::EngineMaker around(const std::string& role, engine::EngineMaker maker);
  std::shared_ptr<weights::WeightSubscriber> around(
      const std::string& role, std::shared_ptr<weights::WeightSubscriber> subscriber);

 private:
  struct Fault {
    std::string role, what;
    core::ErrorCode code = core::ErrorCode::kInternal;
    std::uint64_t call = 0;
    bool wedges = false;  // in place of failing, the call never returns
  };
  std::mutex mutex_;
  std::vector<Fault> faults_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> calls_;
};

}  // namespace troupe::session
