// A model that one process may not hold is trained by several at ZeRO stage 3: under a limit on the
// memory of each process, from the first byte that is read, with the figures of one process.
#include "plan_ranks_support.hpp"

#include <csignal>

namespace troupe::test {
namespace {

using Words = std::vector<std::string>;

// Runs the model until `steps` steps are recorded, and ends the run; but the process that takes
// more than `limit` bytes of its own is killed. Says whether one was; `metrics`: of the steps.
bool exceeds(const DrawnRun& run,
             const std::filesystem::path& folder,
             const std::string& name,
             const Words& more,
             double limit,
             std::map<std::uint64_t, nlohmann::json>* metrics) {
  constexpr std::size_t kRecorded = 2;
  CompanyRun program(folder / name,
                     Words{"train", run.method} + words_of(run, folder) + more +
                         Words{"--run.path", (folder / name).string(), "--train.max_steps", "100"});
  bool killed = false;
  within(CompanyRun::kLimit_s, [&] {
    for (const auto& [node, pid] : program.nodes()) {
      if (!node.starts_with("policy") || own_memory(pid) <= limit) continue;
      ::kill(pid, SIGKILL);
      killed = true;
    }
    return killed || program.steps() >= kRecorded || program.wait(0).has_value();
  });
  EXPECT_TRUE(killed || program.steps() >= kRecorded) << program.output() << program.log();
  *metrics = metrics_of(folder / name);
  metrics->erase(metrics->upper_bound(kRecorded), metrics->end());
  return killed;
}

// About 11 M weights: 44 MB, of which the largest part is a tenth.
DrawnRun deep_model() {
  DrawnRun run = draw_run("pretrain", 1);
  run.spec.layers = 10;
  run.spec.hidden = 256;
  run.spec.heads = 4;
  run.spec.ffn = 1024;
  run.spec.vocab = 4096;
  run.spec.tied = true;
  run.rows = 128;
  run.settings = {"--train.micro_tokens_max",
                  "128",
                  "--actor.gradient_checkpointing_enable",
                  "true",
                  "--train.lanes",
                  "4"};
  return run;
}

}  // namespace

TEST(DividedModel, TrainsWhereNoProcessMayHoldIt) {
  const DrawnRun run = deep_model();
  const ScratchFolder scratch;
  write_inputs(run, scratch);
  const std::filesystem::path folder = scratch / "";
  const double one = planned_memory(words_of(run, folder), "policy");
  const double limit = 0.6 * one;
  std::map<std::uint64_t, nlohmann::json> metrics, whole;
  EXPECT_TRUE(exceeds(run, folder, "killed", {"--cluster.transport", "caf"}, limit, &metrics));
  const Words ranks = {"--actor.ranks", "4", "--train.zero_stage", "3"};
  EXPECT_FALSE(exceeds(run, folder, "divided", ranks, limit, &metrics));
  EXPECT_FALSE(exceeds(run, folder, "whole", {"--cluster.transport", "caf"}, 2 * one, &whole));
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics, whole);
}

}  // namespace troupe::test
