// Walks the table "Ranks" of docs/algorithms.md: every metric in it is made by a training here, on
// three ranks and by one process, and has the same digits on all; and no other metric is made.
#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

namespace troupe::learn {
namespace {

// The metrics of each row, by the row's scope.
std::map<std::string, std::set<std::string>> table_of_ranks() {
  const char* const root = std::getenv("TROUPE_SOURCE_DIR");
  std::istringstream text(
      troupe::test::read_file(std::filesystem::path(root) / "docs" / "algorithms.md"));
  std::map<std::string, std::set<std::string>> by_scope;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("## ")) inside = line == "## Ranks";
    if (!inside || !line.starts_with("| ")) continue;
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, '|');)
      cells.push_back(cell);
    EXPECT_EQ(cells.size(), 6u) << line;
    const std::regex name("`([a-z]+/[a-z_]+)`");
    for (std::sregex_iterator at(cells[2].begin(), cells[2].end(), name), end; at != end; ++at)
      EXPECT_TRUE(by_scope[cells[4]].insert((*at)[1]).second) << line;
  }
  return by_scope;
}

OptimSettings optim_of_table() {
  OptimSettings optim;
  optim.adam.lr = 0.1;
  optim.lanes = 8;
  optim.lr_warmup_ratio = 0;
  return optim;
}

std::vector<test::RankRun> policy_runs() {
  test::PolicyRun run;
  run.settings.optim = optim_of_table();
  run.settings.batch.micro_tokens_max = 64;
  run.settings.batch.max_epochs = 3;
  run.settings.total_steps = 12;
  run.settings.algo.kl.init_coef = 0.1;
  run.settings.algo.teacher_coef = 0.5;
  run.settings.algo.entropy_coef = 0.01;
  run.settings.algo.dual_clip = 1.001;
  run.settings.algo.kl.stop = 1e3;
  run.settings.freezing_steps = 1;
  test::PolicyRun experts = run;
  experts.settings.freezing_steps = 0;
  experts.spec = tiny_moe_spec();
  experts.settings.optim.aux_loss_coef = 0.02;
  auto texts = std::make_shared<PtxTexts>();
  core::Rng rng(4);
  for (int i = 0; i < 7; ++i)
    texts->texts.push_back(random_tokens(rng, 14));
  texts->coef = 2;
  experts.settings.ptx = texts;
  return {run, experts};
}

std::vector<test::RankRun> all_runs() {
  std::vector<test::RankRun> runs = policy_runs();
  test::CriticRun critic;
  critic.settings.optim = optim_of_table();
  critic.settings.batch = {.max_epochs = 2, .micro_tokens_max = 64, .mini_batches = 2};
  critic.settings.total_steps = 12;
  runs.push_back(critic);
  for (const char* method : {"sft", "rm", "dpo", "kto", "bco", "distill", "prm"}) {
    test::SupervisedRun run;
    run.settings.loss.method = Chosen<Method>(method);
    run.settings.loss.nll_coef = std::string(method) == "dpo" ? 0.1 : 0;
    run.settings.optim = optim_of_table();
    run.settings.micro_tokens_max = 48;
    run.settings.total_steps = 10;
    runs.push_back(run);
  }
  return runs;
}

TEST(RankTable, EveryQuantityHasTheDigitsOfOneProcess) {
  std::set<std::string> made;
  for (const test::RankRun& run : all_runs()) {
    const test::Leavings alone = test::run_alone(run);
    for (const test::Leavings& one : test::run_on_ranks(run, 3, 1))
      EXPECT_EQ(one.figures, alone.figures);
    for (const auto& [name, value] : alone.figures)
      if (name.find('/') != name.npos) made.insert(name);
  }
  std::set<std::string> listed;
  for (const auto& [scope, names] : table_of_ranks()) {
    EXPECT_TRUE(scope.find("same") != scope.npos || scope.find("gathered") != scope.npos ||
                scope.find("owner") != scope.npos)
        << scope;
    listed.insert(names.begin(), names.end());
  }
  EXPECT_EQ(made, listed);
}

}  // namespace
}  // namespace troupe::learn
