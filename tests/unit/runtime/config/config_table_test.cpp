// The table itself: names, defaults, what is printed from it.
#include "runtime/config/config_table.hpp"

#include "runtime/config/config_render.hpp"
#include "runtime/config/config_set.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace {

using namespace troupe::config;
using namespace troupe::core;

TEST(ConfigTable, NamesAreUniqueAndSectionsAreAdjacent) {
  std::set<std::string_view> names, closed;
  std::string_view open;
  for (const ConfigRow& row : config_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.help_text.empty()) << row.name;
    if (row.section() != open) {
      EXPECT_TRUE(closed.insert(row.section()).second) << row.name << " stands apart";
      open = row.section();
    }
  }
}

TEST(ConfigTable, EveryRowFillsAMemberOfItsOwn) {
  TrainConfig config;
  std::set<const void*> members;
  for (const ConfigRow& row : config_table()) {
    const void* member = std::visit(
        [&](auto access) { return static_cast<const void*>(&access(config)); }, row.field);
    EXPECT_TRUE(members.insert(member).second) << row.name;
  }
}

TEST(ConfigTable, DefaultsPassTheirOwnRanges) {
  for (const ConfigRow& row : config_table()) {
    if (row.is_list() || row.required) continue;
    std::string text = config_value_yaml(TrainConfig{}, row);
    if (text.starts_with('"')) text = text.substr(1, text.size() - 2);
    const std::string readers = method_names(row.methods);
    ConfigBuilder builder(readers.substr(0, readers.find(',')));
    if (row.name == "method") text = builder.current().method;
    auto done = builder.set({std::string(row.name), {text}, false, "test"});
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
  }
}

TEST(ConfigTable, AMethodHasItsOwnDefaultsAndKeys) {
  EXPECT_EQ(ConfigBuilder("ppo").current().actor.adam.lr, 1e-6);
  EXPECT_EQ(ConfigBuilder("rm").current().actor.adam.lr, 9e-6);
  EXPECT_EQ(ConfigBuilder("cdpo").current().dpo.label_smoothing, 0.1);
  ConfigBuilder dpo("dpo");
  auto refused = dpo.set({"rollout.batch_size", {"4"}, false, "a.yaml:3"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "a.yaml:3: rollout.batch_size is not read by `train dpo` (only by ppo); take it out");
}

TEST(ConfigTable, AFileSaysItsMethodAndMustNotContradictTheCommand) {
  const std::vector<ConfigText> texts = {{"method", {"rm"}, false, "a.yaml:1"}};
  EXPECT_EQ(config_method(texts, "").value(), "rm");
  EXPECT_EQ(config_method({}, "").value(), "ppo");
  EXPECT_EQ(config_method(texts, "sft").error().message,
            "a.yaml:1: this is a configuration of `train rm`, not of `train sft`");
}

TEST(ConfigTable, NearestNameFindsTyposAndShortForms) {
  EXPECT_EQ(nearest_config_name("actor.adam.lrr"), "actor.adam.lr");
  EXPECT_EQ(nearest_config_name("actor.lr"), "actor.adam.lr");
  EXPECT_EQ(nearest_config_name("rollout.n_sample_per_prompt"), "rollout.n_samples_per_prompt");
  EXPECT_EQ(nearest_config_name("rollout.btach_size"), "rollout.batch_size");
  EXPECT_EQ(nearest_config_name("train.batchsize"), "train.batch_size");
  EXPECT_EQ(nearest_config_name("zzzz.qqqqqqqqq"), "");
}

TEST(ConfigTable, OldNamesPointToKeysThatExist) {
  for (const char* old_name : {"pretrain", "actor_learning_rate", "prompt_data", "ckpt.path",
                               "train.async_queue_size", "init_kl_coef"}) {
    const std::string answer = renamed_config_key(old_name);
    ASSERT_FALSE(answer.empty()) << old_name;
    const auto start = answer.find("called '") + 8;
    const std::string name = answer.substr(start, answer.find('\'', start) - start);
    EXPECT_NE(find_config_row(name), nullptr) << answer;
  }
  EXPECT_EQ(renamed_config_key("actor.adam.lr"), "");
}

TEST(ConfigTable, TextsAreQuotedSoThatYamlReadsThemBack) {
  TrainConfig config;
  config.rollout.stop = {"\n", "a\"b\\c\x1b"};
  EXPECT_EQ(config_value_yaml(config, *find_config_row("rollout.stop")),
            R"(["\n", "a\"b\\c\x1B"])");
}

TEST(ConfigTable, DifferencesNameOnlyWhatDiffers) {
  TrainConfig before, after;
  EXPECT_TRUE(config_differences(before, after).empty());
  after.actor.adam.lr = 3e-6;
  after.train.threads = 2;
  const auto differences = config_differences(before, after);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].name, "actor.adam.lr");
  EXPECT_EQ(differences[0].before, "1e-06");
  EXPECT_EQ(differences[0].after, "3e-06");
  EXPECT_FALSE(config_key_may_change("actor.adam.lr"));
  EXPECT_TRUE(config_key_may_change("train.threads"));
}

TEST(ConfigTable, KeysThatMayChangeExist) {
  int free_keys = 0;
  for (const ConfigRow& row : config_table())
    free_keys += config_key_may_change(row.name);
  EXPECT_EQ(free_keys, 32);
}

TEST(ConfigHelp, OverviewIsShortAndNamesEveryKey) {
  const std::string page = config_overview(100);
  std::istringstream in(page);
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines)
    EXPECT_LE(line.size(), 100u) << line;
  EXPECT_LE(lines, 34);
  for (const ConfigRow& row : config_table()) {
    const auto dot = row.name.find('.');
    EXPECT_NE(page.find(row.name.substr(dot == row.name.npos ? 0 : dot + 1)), std::string::npos);
  }
}

TEST(ConfigHelp, SectionsDescribeTypeRangeAndDefault) {
  const std::string page = config_section_help("rollout", 100);
  EXPECT_NE(page.find("--rollout.batch_size  (int, 1 to 1048576 prompts, default 32)"),
            std::string::npos)
      << page;
  EXPECT_EQ(config_section_help("nothing", 100), "");
}

TEST(ConfigHelp, AMethodShowsOnlyItsKeysAndDefaults) {
  const std::string page = config_overview(100, kDpo);
  EXPECT_NE(page.find("chosen_key"), std::string::npos);
  EXPECT_EQ(page.find("rollout"), std::string::npos) << page;
  EXPECT_EQ(config_section_help("rollout", 100, kDpo), "");
  const std::string actor = config_section_help("actor", 100, kDpo);
  EXPECT_NE(actor.find("--actor.adam.lr  (float, above 0, at most 1, default 5e-07)"),
            std::string::npos)
      << actor;
  EXPECT_EQ(actor.find("eps_clip"), std::string::npos);
}

TEST(ConfigHelp, ReferencePageIsCurrent) {
  const char* root = std::getenv("TROUPE_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "run by ctest";
  std::ifstream in(std::string(root) + "/docs/configuration.md");
  std::stringstream page;
  page << in.rdbuf();
  EXPECT_EQ(page.str(), config_markdown())
      << "run: build/troupe config docs > docs/configuration.md";
}

}  // namespace
