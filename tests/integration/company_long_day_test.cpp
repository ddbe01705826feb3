// The same at length: 16 samples of 16,384 tokens through the loss of a generator, and DAPO's
// recipe with its own lengths.
#include "long_support.hpp"

namespace troupe::test {

TEST(CompanyLongDay, SixteenSamplesOf16384TokensOutliveTheirGenerator) {
  const LongRun run(16384);
  CompanyRun company(run.files, "run", {"--algo.kl.init_coef", "0", "--train.max_steps", "3"});
  pid_t generator = 0;
  ASSERT_TRUE(within(600, [&] {
    const auto nodes = company.nodes();
    const auto found = nodes.find("generator-0");
    if (found != nodes.end()) generator = found->second;
    return company.steps() >= 1 && generator > 0;
  })) << company.output();
  ASSERT_EQ(::kill(generator, SIGKILL), 0);
  ASSERT_EQ(company.wait(900), 0) << company.output();
  EXPECT_NE(company.log().find("node/generator-0 is lost"), std::string::npos) << company.log();
  expect_clean_ledger(company.folder());
  run.expect_full_lengths(company.folder(), 3);
}

TEST(CompanyLongDay, DaposRecipeRunsWithItsOwnLengths) {
  const TinyRun files;
  write_endless_model(files.model(), 5120);
  std::ofstream rows(files / "train.jsonl");
  for (int i = 0; i < 40; ++i) {
    // The last digit of a long random text is right once in ten.
    rows << nlohmann::json(
                {{"prompt", std::to_string(i) + "+1="}, {"answer", std::to_string(i % 10)}})
         << '\n';
  }
  rows.close();
  const char* source = std::getenv("TROUPE_SOURCE_DIR");
  std::filesystem::copy_file(
      std::filesystem::path(source != nullptr ? source : ".") / "configs" / "dapo.yaml",
      files / "tiny.yaml", std::filesystem::copy_options::overwrite_existing);
  CompanyRun company(files, "run",
                     {"--rollout.batch_size", "4", "--train.batch_size", "4", "--train.max_steps",
                      "2", "--train.threads", "2"});
  ASSERT_EQ(company.wait(900), 0) << company.output();
  expect_clean_ledger(company.folder());
  EXPECT_EQ(metrics_of(company.folder()).size(), 2u);
  for (const auto& entry : std::filesystem::directory_iterator(company.folder() / "rollouts")) {
    std::ifstream in(entry.path());
    std::size_t samples = 0;
    for (std::string text; std::getline(in, text); ++samples)
      EXPECT_EQ(nlohmann::json::parse(text)["tokens"], 4096);
    EXPECT_EQ(samples, 64u);
  }
}

}  // namespace troupe::test
