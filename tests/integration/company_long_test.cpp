// Groups that are longer than a frame, over processes: 16 samples of 4,096 tokens with a column of
// 64 KB, a Python reward and a reference model.
#include "long_support.hpp"

namespace troupe::test {

TEST(CompanyLong, SixteenSamplesOf4096TokensWithALongColumnAreLearnedFrom) {
  const LongRun run(4096);
  CompanyRun company(run.files, "run", {"--algo.kl.init_coef", "0.01"});
  ASSERT_EQ(company.wait(110), 0) << company.output();
  expect_clean_ledger(company.folder());
  run.expect_full_lengths(company.folder(), 2);
  EXPECT_EQ(metrics_of(company.folder()).size(), 2u);
}

TEST(CompanyLong, WhatCannotFitIsRefusedBeforeAnythingIsSampled) {
  const LongRun run(4096);
  const auto refused = [&](std::vector<std::string> more, int status, const char* words) {
    CompanyRun company(run.files, "refused", std::move(more));
    EXPECT_EQ(company.wait(), status) << company.output();
    EXPECT_NE(company.output().find(words), std::string::npos) << company.output();
    EXPECT_FALSE(std::filesystem::exists(company.folder() / "rollouts"));
  };
  refused({"--rollout.n_samples_per_prompt", "1024", "--rollout.max_num_seqs", "1024"}, 2,
          "1024 samples of 4096 tokens are a group of");
  refused({"--train.micro_tokens_max", "4096"}, 2,
          "--train.micro_tokens_max 4096 has no room for the longest sample");
  std::ofstream(run.files / "train.jsonl", std::ios::app)
      << nlohmann::json(
             {{"prompt", "9+1="}, {"answer", "10"}, {"tests", std::string(9u << 20, 'x')}})
      << '\n';
  refused({}, 4, "and a row may have 8388608");
}

}  // namespace troupe::test
