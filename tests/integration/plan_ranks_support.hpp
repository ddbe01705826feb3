// Runs whose policy is trained by several ranks, and the memory of each rank against what
// `troupe plan` says of it.
#pragma once

#include "company_support.hpp"
#include "plan_memory_support.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace troupe::test {

// Most memory of its own that each rank of the policy had until so many steps were recorded. By
// name: "policy", "policy-1". What comes after the last step, such as a checkpoint, is not in it.
inline std::map<std::string, double> most_memory_of_ranks(CompanyRun& run, std::size_t steps) {
  std::map<std::string, double> most;
  within(CompanyRun::kLimit_s, [&] {
    for (const auto& [name, pid] : run.nodes()) {
      if (!name.starts_with("policy")) continue;
      double& of_rank = most[name];
      of_rank = std::max(of_rank, own_memory(pid));
    }
    return run.steps() >= steps || run.wait(0).has_value();
  });
  EXPECT_GE(run.steps(), steps) << run.output() << run.log();
  return most;
}

// A drawn run whose model is trained by 2 or 4 ranks at a stage of ZeRO, with a lane for each or
// four in all.
inline DrawnRun draw_ranks(const std::string& method, std::uint64_t seed, int ranks, int stage) {
  DrawnRun run = draw_run(method, seed);
  run.ranks = ranks;
  const std::int64_t lanes = seed % 2 == 0 ? 4 : ranks;
  run.settings =
      run.settings + std::vector<std::string>{"--actor.ranks",      std::to_string(ranks),
                                              "--train.lanes",      std::to_string(lanes),
                                              "--train.zero_stage", std::to_string(stage)};
  return run;
}

// Runs it and expects the plan of a rank to be within a tenth of what was measured of each.
inline void expect_plan_of_ranks_holds(const DrawnRun& run) {
  const ScratchFolder scratch;
  write_inputs(run, scratch);
  const std::filesystem::path folder = scratch / "";
  const std::vector<std::string> words = words_of(run, folder);
  const double planned = planned_memory(words, "policy");
  CompanyRun program(folder / "run", std::vector<std::string>{"train", run.method} + words +
                                         std::vector<std::string>{"--train.max_steps", "100"});
  const auto most = most_memory_of_ranks(program, 2);
  EXPECT_EQ(most.size(), static_cast<std::size_t>(run.ranks)) << run.text();
  for (const auto& [name, bytes] : most) {
    EXPECT_NEAR(planned / bytes, 1, 0.1) << name << ": " << run.text();
    std::printf("%s: planned %.1f MB, measured %.1f MB (%.3f): %s\n", name.c_str(), planned / 1e6,
                bytes / 1e6, planned / bytes, run.text().c_str());
  }
}

}  // namespace troupe::test
