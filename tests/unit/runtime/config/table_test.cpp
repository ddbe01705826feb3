// The table itself: names, defaults, what rooms hand to it and what is printed from it.
#include "runtime/config/table.hpp"

#include "runtime/config/builder.hpp"
#include "runtime/config/first_keys.hpp"
#include "runtime/config/render.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

namespace {

using namespace troupe::config;
using namespace troupe::core;

TEST(Table, NamesAreUniqueAndSectionsAreAdjacent) {
  std::set<std::string_view> names, closed;
  std::string_view open;
  for (const Row& row : keys().rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.help.empty()) << row.name;
    if (row.section() != open) {
      EXPECT_TRUE(closed.insert(row.section()).second) << row.name << " stands apart";
      open = row.section();
    }
  }
}

TEST(Table, EveryRowFillsAMemberOfItsOwn) {
  TrainConfig config;
  std::set<const void*> members;
  for (const Row& row : keys().rows()) {
    const void* member = std::visit(
        [&](auto access) -> const void* {
          if constexpr (std::is_same_v<decltype(access), ChoiceAccess>) {
            return &row;  // ChoicesFillTheirMembers
          } else {
            return &access(config);
          }
        },
        row.field);
    EXPECT_TRUE(members.insert(member).second) << row.name;
  }
}

TEST(Table, ChoicesFillTheirMembers) {
  Builder builder(keys());
  for (const auto& [name, word] : {std::pair{"actor.param_dtype", "bf16-compute"},
                                   {"rollout.kv_on_update", "recompute"},
                                   {"reward.normalize", "stored"},
                                   {"cluster.transport", "loopback"}}) {
    ASSERT_TRUE(builder.set({name, {word}, false, "test"})) << name;
    EXPECT_EQ(keys().find(name)->yaml(builder.current()), "\"" + std::string(word) + "\"");
  }
  EXPECT_EQ(builder.current().actor.param_dtype, ParamDtype::kBf16Compute);
  EXPECT_EQ(builder.current().rollout.kv_on_update, KvOnUpdate::kRecompute);
  EXPECT_EQ(builder.current().reward.normalize, Normalize::kStored);
  EXPECT_EQ(builder.current().cluster.transport, Transport::kLoopback);
  ASSERT_TRUE(builder.set({"actor.device", {"cuda"}, false, "test"}));
  EXPECT_EQ(builder.current().actor.device, Devices({{true, 0}})) << "as before lists";
  EXPECT_EQ(keys().find("actor.device")->yaml(builder.current()), "[\"cuda:0\"]");
  const Row& engines = *keys().find("rollout.device");
  EXPECT_EQ(engines.yaml(builder.current()), "[\"cpu\"]");
  ASSERT_TRUE(builder.set({"rollout.device", {"cuda"}, false, "test"})) << "as before lists";
  EXPECT_EQ(builder.current().rollout.device, Devices({{true, 0}}));
  ASSERT_TRUE(builder.set({"rollout.device", {"cuda:1", "cpu", "cuda"}, true, "test"}));
  EXPECT_EQ(engines.yaml(builder.current()), "[\"cuda:1\", \"cpu\", \"cuda:0\"]");
  EXPECT_EQ(engines.type_name(), "devices");
}

TEST(Table, HandedWordsAndRulesHoldForTheirKey) {
  HandedTables handed;
  handed.choices.push_back({"algo.objective", {{"ppo", "grpo", "the ratio"}, {"topr", "", ""}}});
  handed.rules.push_back([](const TrainConfig& c) -> std::optional<Refusal> {
    if (c.algo.objective != "topr" || c.train.seed != 7) return std::nullopt;
    return Refusal{"train.seed", "topr dislikes 7"};
  });
  const Table table(std::move(handed));
  EXPECT_EQ(table.find("algo.objective")->type_name(), "choice");
  EXPECT_EQ(keys().find("algo.objective")->type_name(), "text");
  Builder builder(table);
  EXPECT_EQ(builder.set({"algo.objective", {"pop"}, false, "a.yaml:1"}).error().message,
            "a.yaml:1: algo.objective = pop: expected one of ppo (= grpo) | topr; did you mean "
            "'ppo'?");
  ASSERT_TRUE(builder.set({"algo.objective", {"grpo"}, false, "a.yaml:1"}));
  EXPECT_EQ(builder.current().algo.objective, "ppo") << "an alias becomes the main name";
  ASSERT_TRUE(builder.set({"algo.objective", {"topr"}, false, "a.yaml:1"}));
  ASSERT_TRUE(builder.set({"train.seed", {"7"}, false, "a.yaml:2"}));
  EXPECT_NE(builder.finish().error().message.find("a.yaml:2: train.seed: topr dislikes 7"),
            std::string::npos);
  ASSERT_TRUE(builder.set({"train.seed", {"8"}, false, "a.yaml:2"}));
  EXPECT_EQ(builder.finish().error().message.find("dislikes"), std::string::npos);
}

TEST(Table, DefaultsPassTheirOwnRanges) {
  for (const Row& row : keys().rows()) {
    if (row.is_list() || row.needed) continue;
    std::string text = row.yaml(default_config());
    if (text.starts_with('"')) text = text.substr(1, text.size() - 2);
    const std::string readers = method_names(row.only);
    Builder builder(keys(), method_named(readers.substr(0, readers.find(','))));
    auto done = builder.set({std::string(row.name), {text}, false, "test"});
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
  }
}

TEST(Table, AMethodHasItsOwnDefaultsAndKeys) {
  EXPECT_EQ(Builder(keys(), kPpo).current().actor.adam.lr, 1e-6);
  EXPECT_EQ(Builder(keys(), kRm).current().actor.adam.lr, 9e-6);
  EXPECT_EQ(Builder(keys(), kCdpo).current().dpo.label_smoothing, 0.1);
  Builder dpo(keys(), kDpo);
  auto refused = dpo.set({"rollout.batch_size", {"4"}, false, "a.yaml:3"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "a.yaml:3: rollout.batch_size is not read by `train dpo` (only by ppo); take it out");
}

TEST(Table, AFileSaysItsMethodAndMustNotContradictTheCommand) {
  const std::vector<Setting> settings = {{"method", {"rm"}, false, "a.yaml:1"}};
  EXPECT_EQ(method_of(settings).value(), kRm);
  EXPECT_EQ(method_of({}).value(), kPpo);
  EXPECT_EQ(method_of(settings, kSft).error().message,
            "a.yaml:1: this is a configuration of `train rm`, not of `train sft`");
}

TEST(Table, NearestNameFindsTyposAndShortForms) {
  EXPECT_EQ(nearest_name("actor.adam.lrr"), "actor.adam.lr");
  EXPECT_EQ(nearest_name("actor.lr"), "actor.adam.lr");
  EXPECT_EQ(nearest_name("rollout.n_sample_per_prompt"), "rollout.n_samples_per_prompt");
  EXPECT_EQ(nearest_name("rollout.btach_size"), "rollout.batch_size");
  EXPECT_EQ(nearest_name("train.batchsize"), "train.batch_size");
  EXPECT_EQ(nearest_name("zzzz.qqqqqqqqq"), "");
}

TEST(Table, OldNamesPointToKeysThatExist) {
  for (const char* old_name : {"pretrain", "actor_learning_rate", "prompt_data", "save_path",
                               "train.async_queue_size", "init_kl_coef"}) {
    const std::string answer = answer_to_name(old_name);
    ASSERT_FALSE(answer.empty()) << old_name;
    const auto start = answer.find("called '") + 8;
    const std::string name = answer.substr(start, answer.find('\'', start) - start);
    EXPECT_NE(keys().find(name), nullptr) << answer;
  }
  EXPECT_EQ(answer_to_name("actor.adam.lr"), "");
}

TEST(Table, TextsAreQuotedSoThatYamlReadsThemBack) {
  TrainConfig config;
  config.rollout.stop = {"\n", "a\"b\\c\x1b"};
  EXPECT_EQ(keys().find("rollout.stop")->yaml(config), R"(["\n", "a\"b\\c\x1B"])");
}

TEST(Table, DifferencesNameOnlyWhatDiffers) {
  TrainConfig before, after;
  EXPECT_TRUE(differences(before, after).empty());
  after.actor.adam.lr = 3e-6;
  after.train.threads = 2;
  const auto found = differences(before, after);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "actor.adam.lr");
  EXPECT_EQ(found[0].before, "1e-06");
  EXPECT_EQ(found[0].after, "3e-06");
  EXPECT_FALSE(may_change("actor.adam.lr"));
  EXPECT_TRUE(may_change("train.threads"));
}

TEST(Table, KeysThatMayChangeExist) {
  int free_keys = 0;
  for (const Row& row : keys().rows())
    free_keys += may_change(row.name);
  EXPECT_EQ(free_keys, 70);
}

TEST(Help, GroupsCountEveryKey) {
  std::istringstream in(groups(keys()));
  std::size_t lines = 0, count = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    EXPECT_LE(line.size(), 100u) << line;
    const auto bracket = line.rfind('(');
    ASSERT_NE(bracket, line.npos) << line;
    count += std::stoul(line.substr(bracket + 1));
  }
  EXPECT_LE(lines, 40u);
  EXPECT_EQ(count, keys().rows().size());
}

TEST(Help, EachMethodReadsItsTenFirstKeys) {
  for (const MethodRow& method : kMethodRows) {
    const FirstKeys first = first_keys(method.bit);
    EXPECT_EQ(std::set<std::string_view>(first.begin(), first.end()).size(), 10u) << method.name;
    for (const std::string_view name : first) {
      const Row* const row = keys().find(name);
      ASSERT_NE(row, nullptr) << method.name << ": " << name;
      EXPECT_TRUE(row->is_read_by(method.bit)) << method.name << ": " << name;
    }
    const std::string page = keys_help(keys(), first, 100, method.bit);
    EXPECT_LE(std::ranges::count(page, '\n'), 40) << page;
    // A method's default, not the key's: of dpo the rate is 5e-7.
    if (method.bit == kDpo) {
      EXPECT_NE(page.find("(default 5e-07)"), page.npos) << page;
    }
  }
}

TEST(Help, SectionsDescribeTypeRangeAndDefault) {
  const std::string page = section_help(keys(), "rollout", 100);
  EXPECT_NE(page.find("--rollout.batch_size  (int, 1 to 1048576 prompts, default 32)"),
            std::string::npos)
      << page;
  EXPECT_EQ(section_help(keys(), "nothing", 100), "");
}

TEST(Help, AMethodShowsOnlyItsKeysAndDefaults) {
  const std::string page = groups(keys(), kDpo);
  EXPECT_NE(page.find("  dpo "), std::string::npos) << page;
  EXPECT_EQ(page.find("rollout"), std::string::npos) << page;
  EXPECT_EQ(section_help(keys(), "rollout", 100, kDpo), "");
  const std::string actor = section_help(keys(), "actor", 100, kDpo);
  EXPECT_NE(actor.find("--actor.adam.lr  (float, above 0, at most 1, default 5e-07)"),
            std::string::npos)
      << actor;
  EXPECT_EQ(actor.find("eps_clip"), std::string::npos);
}

}  // namespace
