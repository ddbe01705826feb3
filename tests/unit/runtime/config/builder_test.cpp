// Values from text: what is taken, and what each refusal says.
#include "runtime/config/builder.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe::config;
using namespace troupe::core;

Result<void> set(Builder& builder, const std::string& name, const std::string& value) {
  return builder.set({name, {value}, false, "demo.yaml:4"});
}

std::string setting_refusal(const std::string& name, const std::string& value) {
  Builder builder(keys());
  auto done = set(builder, name, value);
  if (done) return "accepted";
  EXPECT_EQ(done.error().code, ErrorCode::kConfig);
  return done.error().message;
}

Builder minimal() {
  Builder builder(keys());
  for (const auto& [name, value] : {std::pair{"actor.model_name_or_path", "m"},
                                    {"data.prompt_dataset", "p.jsonl"},
                                    {"data.label_key", "answer"},
                                    {"reward.rule", "exact"}}) {
    EXPECT_TRUE(set(builder, name, value));
  }
  return builder;
}

std::string final_refusal(Builder builder) {
  auto done = builder.finish();
  if (done) return "accepted";
  EXPECT_EQ(done.error().code, ErrorCode::kConfig);
  return done.error().message;
}

TEST(Builder, ScientificNotationIsANumber) {
  Builder builder(keys());
  ASSERT_TRUE(set(builder, "actor.adam.lr", "1e-6"));
  EXPECT_EQ(builder.current().actor.adam.lr, 1e-6);
  ASSERT_TRUE(set(builder, "actor.adam.lr", "+2.5E-5"));
  EXPECT_EQ(builder.current().actor.adam.lr, 2.5e-5);
}

TEST(Builder, LaterValuesWinAndOriginsFollow) {
  Builder builder(keys());
  ASSERT_TRUE(set(builder, "train.seed", "1"));
  ASSERT_TRUE(builder.set({"train.seed", {"2"}, false, "the command line"}));
  EXPECT_EQ(builder.current().train.seed, 2);
  EXPECT_EQ(builder.origins().at("train.seed"), "the command line");
}

TEST(Builder, UnknownKeyNamesTheNearestAndThePlace) {
  EXPECT_EQ(setting_refusal("actor.adam.lrr", "1"),
            "demo.yaml:4: unknown key 'actor.adam.lrr'; did you mean 'actor.adam.lr'?");
}

TEST(Builder, OldNameIsAnsweredWithTheNewOne) {
  EXPECT_EQ(setting_refusal("max_ckpt_mem", "x"),
            "demo.yaml:4: 'max_ckpt_mem' has no counterpart: 'ckpt.max_num' bounds what is kept");
}

TEST(Builder, WrongTypesSayWhatIsExpected) {
  EXPECT_EQ(setting_refusal("train.seed", "abc"),
            "demo.yaml:4: train.seed = abc: expected a whole number, 0 to 1e+18");
  EXPECT_EQ(setting_refusal("train.seed", "1.5"),
            "demo.yaml:4: train.seed = 1.5: expected a whole number, 0 to 1e+18");
  EXPECT_EQ(setting_refusal("logger.tensorboard", "maybe"),
            "demo.yaml:4: logger.tensorboard = maybe: expected true or false");
  EXPECT_EQ(setting_refusal("reward.normalize", "stord"),
            "demo.yaml:4: reward.normalize = stord: expected one of none | stored | running; did "
            "you mean 'stored'?");
  EXPECT_EQ(setting_refusal("log.format", ""),
            "demo.yaml:4: log.format = : expected one of auto | plain | json");
  EXPECT_EQ(setting_refusal("cluster.local_roles", "polcy"),
            "demo.yaml:4: cluster.local_roles = polcy: expected one of policy | critic | reference "
            "| teacher | reward | generator; did you mean 'policy'?");
  EXPECT_EQ(setting_refusal("actor.device", "gpu"),
            "demo.yaml:4: actor.device = gpu: there is no device 'gpu'; it is cpu, cuda or cuda:N "
            "(GPU N, counted from 0)");
  EXPECT_EQ(setting_refusal("rollout.device", ""),
            "demo.yaml:4: rollout.device = : there is no device ''; it is cpu, cuda or cuda:N "
            "(GPU N, counted from 0)");
}

TEST(Builder, RangesAreChecked) {
  EXPECT_EQ(setting_refusal("rollout.batch_size", "0"),
            "demo.yaml:4: rollout.batch_size = 0: out of range, expected 1 to 1048576 prompts");
  EXPECT_EQ(setting_refusal("actor.adam.lr", "0"),
            "demo.yaml:4: actor.adam.lr = 0: out of range, expected above 0, at most 1");
  EXPECT_NE(setting_refusal("actor.adam.lr", "nan").find("finite"), std::string::npos);
  EXPECT_NE(setting_refusal("actor.adam.lr", "inf").find("finite"), std::string::npos);
  EXPECT_NE(setting_refusal("train.seed", "99999999999999999999").find("too large"),
            std::string::npos);
}

TEST(Builder, StalenessSaysThatOnlySynchronousWorks) {
  EXPECT_NE(setting_refusal("train.staleness_max", "65").find("0 to 64"), std::string::npos);
  EXPECT_EQ(setting_refusal("train.staleness_max", "1"), "accepted");
}

TEST(Builder, ListsHaveTheirLength) {
  Builder builder(keys());
  ASSERT_TRUE(builder.set({"actor.adam.betas", {"0.8", "0.99"}, true, "t"}));
  EXPECT_EQ(builder.current().actor.adam.betas, (std::vector<double>{0.8, 0.99}));
  EXPECT_FALSE(builder.set({"actor.adam.betas", {"0.8"}, true, "t"}));
  EXPECT_FALSE(builder.set({"actor.adam.betas", {}, true, "t"}));
  EXPECT_TRUE(builder.set({"actor.eps_clip_low_high", {}, true, "t"})) << "unset is its default";
  EXPECT_FALSE(builder.set({"actor.adam.lr", {"1e-6"}, true, "t"}));
  EXPECT_FALSE(builder.set({"rollout.stop", {""}, true, "t"}));
}

TEST(Builder, MinimalConfigurationPasses) {
  EXPECT_EQ(final_refusal(minimal()), "accepted");
}

TEST(Builder, MissingModelNamesTheFlag) {
  EXPECT_NE(final_refusal(Builder(keys())).find("--actor.model_name_or_path"), std::string::npos);
}

TEST(Builder, RulesBetweenKeys) {
  const auto with = [](const std::string& name, const std::string& value) {
    Builder builder = minimal();
    EXPECT_TRUE(set(builder, name, value));
    return final_refusal(std::move(builder));
  };
  EXPECT_EQ(with("train.batch_size", "7"),
            "demo.yaml:4: train.batch_size: 7 does not divide the 256 samples of an update "
            "(rollout.batch_size x n_samples_per_prompt); give 1, 2, 4, 8, 16, 32, 64 or 128");
  EXPECT_NE(with("train.batch_size", "512").find("only 256"), std::string::npos);
  EXPECT_EQ(with("train.batch_size", "64"), "accepted");
  EXPECT_EQ(with("rollout.max_num_seqs", "7"),
            "rollout.n_samples_per_prompt: 8 samples of a prompt run together, but "
            "rollout.max_num_seqs is 7");
  EXPECT_EQ(with("rollout.max_num_seqs", "8"), "accepted");
  EXPECT_NE(with("reward.python", "r.py").find("keep one"), std::string::npos);
  EXPECT_NE(with("reward.rule", "").find("no reward"), std::string::npos);
  EXPECT_NE(with("reward.rule", "regex").find("rule_pattern"), std::string::npos);
  EXPECT_NE(with("reward.rule_pattern", "x").find("regex"), std::string::npos);
  EXPECT_NE(with("reward.workers", "2").find("only with --reward.python"), std::string::npos);
  EXPECT_NE(with("reward.http_format", "sample").find("only with --reward.http"),
            std::string::npos);
  EXPECT_NE(with("reward.http", "http://a/").find("keep one"), std::string::npos);
  EXPECT_EQ(with("reward.http", ""), "accepted") << "as in files of older programs";
  EXPECT_NE(with("data.label_key", "").find("label_key"), std::string::npos);
  EXPECT_NE(with("data.input_template", "no place").find("{}"), std::string::npos);
  EXPECT_NE(with("eval.steps", "5").find("eval.dataset"), std::string::npos);
  EXPECT_NE(with("run.path", "").find("folder"), std::string::npos);
}

TEST(Builder, RulesOfTensorCoresAndOneProcess) {
  const auto with = [](std::initializer_list<std::pair<const char*, const char*>> pairs) {
    Builder builder = minimal();
    for (const auto& [name, value] : pairs)
      EXPECT_TRUE(set(builder, name, value)) << name;
    return final_refusal(std::move(builder));
  };
  const auto says = [](const std::string& message, const char* words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says(with({{"actor.param_dtype", "bf16-compute"}}), "--actor.device cuda");
  says(with({{"actor.param_dtype", "bf16-compute"},
             {"algo.kl.init_coef", "0.1"},
             {"actor.device", "cuda"}}),
       "ref.device: with actor.param_dtype bf16-compute");
  EXPECT_EQ(with({{"actor.param_dtype", "bf16-compute"},
                  {"actor.device", "cuda"},
                  {"rollout.device", "cuda"}}),
            "accepted")
      << "there is no reference";
  EXPECT_EQ(with({{"actor.param_dtype", "bf16-compute"},
                  {"algo.kl.init_coef", "0.1"},
                  {"actor.device", "cuda"},
                  {"ref.device", "cuda:1"},
                  {"rollout.device", "cuda:1"}}),
            "accepted");
  const auto engines = [&](std::vector<std::string> devices, const char* count) {
    Builder builder = minimal();
    EXPECT_TRUE(set(builder, "rollout.generators", count));
    for (const char* key : {"actor.device", "ref.device"})
      EXPECT_TRUE(set(builder, key, "cuda"));
    EXPECT_TRUE(set(builder, "actor.param_dtype", "bf16-compute"));
    EXPECT_TRUE(builder.set({"rollout.device", std::move(devices), true, "test"}));
    return final_refusal(std::move(builder));
  };
  EXPECT_EQ(engines({"cuda:0", "cuda:1"}, "2"), "accepted");
  EXPECT_EQ(engines({"cuda:0", "cuda:1"}, "0"), "accepted") << "for those that join";
  says(engines({"cuda:0", "cpu"}, "2"), "rollout.device: with actor.param_dtype bf16-compute");
  says(engines({"cuda:0", "cuda:1"}, "1"),
       "rollout.device: names 2 devices for 1 engine(s); name fewer, or start more with "
       "--rollout.generators");
  says(engines({}, "1"), "rollout.device: names no device; give cpu, cuda, or a list");
  says(with({{"cluster.transport", "loopback"}, {"cluster.listen", "0.0.0.0:7000"}}),
       "cluster.listen: a run in one process has no gateway");
  EXPECT_EQ(with({{"cluster.transport", "loopback"}, {"cluster.listen", "127.0.0.1:0"}}),
            "accepted")
      << "a resolved configuration reads back";
  says(with({{"cluster.ca", "ca.pem"}}), "go together");
}

TEST(Builder, RulesOfLoggers) {
  const auto with = [](std::vector<std::pair<const char*, const char*>> pairs) {
    Builder builder = minimal();
    for (const auto& [name, value] : pairs)
      EXPECT_TRUE(builder.set({name, {value}, false, "test"})) << name;
    return final_refusal(std::move(builder));
  };
  const auto says = [](const std::string& message, const char* words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  EXPECT_EQ(with({{"logger.wandb", "true"}, {"logger.org", "us"}, {"logger.group", "g"}}),
            "accepted");
  EXPECT_EQ(with({{"logger.mlflow", "true"}, {"logger.mlflow_uri", "sqlite:////tmp/a@b/c.db"}}),
            "accepted");
  EXPECT_EQ(with({{"logger.mlflow", "true"}, {"logger.mlflow_uri", "http://host:5000/a@b"}}),
            "accepted");
  says(with({{"logger.project", ""}}), "logger.project: must name a project");
  says(with({{"logger.org", "us"}}), "logger.org: is read only with --logger.wandb true");
  says(with({{"logger.group", "g"}, {"logger.mlflow", "true"}}), "logger.group: is read only with");
  says(with({{"logger.mlflow_uri", "http://h:1"}}), "is read only with --logger.mlflow true");
  says(with({{"logger.mlflow", "true"}, {"logger.mlflow_uri", "https://me:pw@host/x"}}),
       "logger.mlflow_uri: holds a password");
}

TEST(Builder, RulesOfStepsAndWorkers) {
  const auto with = [](std::vector<std::pair<const char*, std::vector<std::string>>> pairs) {
    Builder builder = minimal();
    for (const auto& [name, values] : pairs)
      EXPECT_TRUE(builder.set({name, values, values.size() > 1, "test"})) << name;
    return final_refusal(std::move(builder));
  };
  const auto says = [](const std::string& refusal, const std::string& part) {
    EXPECT_NE(refusal.find(part), std::string::npos) << refusal;
  };
  EXPECT_EQ(with({{"reward.rule", {"math"}}, {"reward.workers", {"4"}}}), "accepted");
  EXPECT_EQ(with({{"reward.rule", {"code"}}, {"reward.code.score", {"all"}}}), "accepted");
  says(with({{"reward.code.memory_mb", {"64"}}}), "is read only with --reward.rule code");
  EXPECT_EQ(with({{"reward.process.model_name_or_path", {"p"}},
                  {"reward.process.reward_tokens", {"+", "-"}}}),
            "accepted");
  says(with({{"reward.process.reduce", {"min"}}}),
       "is read only with --reward.process.model_name_or_path");
  says(
      with({{"reward.process.model_name_or_path", {"p"}}, {"reward.process.reward_tokens", {"+"}}}),
      "needs two tokens or more");
  says(with({{"reward.process.model_name_or_path", {"p"}},
             {"reward.process.reward_tokens", {"+", "+"}}}),
       "names a token twice");
  says(with({{"reward.process.model_name_or_path", {"p"}}, {"reward.weights", {"1"}}}),
       "1 weights for 2 reward(s)");
  EXPECT_EQ(with({{"reward.feedback", {"true"}}, {"reward.weights", {"1", "2"}}}), "accepted");
  EXPECT_EQ(with({{"reward.feedback", {"true"}}, {"reward.process.baseline", {"none"}}}),
            "accepted");
  says(with({{"reward.feedback", {"true"}}, {"reward.process.reduce", {"min"}}}),
       "is read only with --reward.process.model_name_or_path");
}

TEST(Builder, RulesOfRanks) {
  const auto with = [](std::vector<std::pair<const char*, std::vector<std::string>>> pairs) {
    Builder builder = minimal();
    for (const auto& [name, values] : pairs)
      EXPECT_TRUE(builder.set({name, values, values.size() > 1, "test"})) << name;
    return final_refusal(std::move(builder));
  };
  const auto says = [](const std::string& message, const char* words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  EXPECT_EQ(with({{"actor.ranks", {"4"}}}), "accepted");
  EXPECT_EQ(with({{"actor.ranks", {"4"}}, {"train.lanes", {"8"}}}), "accepted");
  says(with({{"actor.ranks", {"4"}}, {"train.lanes", {"3"}}}),
       "actor.ranks: 4 ranks, but train.lanes is 3 and a rank computes at least one lane");
  says(with({{"actor.ranks", {"4"}}, {"train.batch_size", {"2"}}}),
       "actor.ranks: 4 ranks, but an optimiser step has only 2 samples");
  says(with({{"critic.ranks", {"4"}}, {"train.lanes", {"3"}}}), "critic.ranks: 4 ranks");
  says(with({{"actor.ranks", {"2"}}, {"cluster.transport", {"loopback"}}}),
       "actor.ranks: a run in one process has one rank");
  says(with({{"actor.ranks", {"2"}}, {"actor.device", {"cuda:1", "cuda:1"}}}),
       "actor.device: names cuda:1 twice");
  says(with({{"actor.ranks", {"2"}}, {"actor.device", {"cuda:1"}}}),
       "actor.device: names 1 device(s) for 2 rank(s)");
  says(with({{"actor.device", {"cuda:0", "cuda:1"}}}), "actor.device: names 2 device(s) for 1");
  says(with({{"critic.ranks", {"3"}}, {"critic.device", {"cuda:0", "cuda:1"}}}),
       "critic.device: names 2 device(s) for 3");
  EXPECT_EQ(with({{"actor.ranks", {"2"}}, {"actor.device", {"cuda:0", "cuda:1"}}}), "accepted");
  EXPECT_EQ(with({{"actor.ranks", {"3"}}, {"actor.device", {"cpu", "cpu"}}}), "accepted");
  // Ranks of other hosts have devices of their own.
  const std::vector<std::string> four = {"cuda:0", "cuda:1", "cuda:0", "cuda:1"};
  EXPECT_EQ(with({{"actor.ranks", {"4"}}, {"cluster.local_ranks", {"2"}}, {"actor.device", four}}),
            "accepted");
  says(with({{"actor.ranks", {"4"}}, {"cluster.local_ranks", {"3"}}, {"actor.device", four}}),
       "actor.device: names cuda:0 twice");
  EXPECT_EQ(with({{"actor.ranks", {"3"}}, {"cluster.local_ranks", {"2"}}}), "accepted");
  EXPECT_EQ(with({{"actor.ranks", {"2"}}, {"cluster.local_ranks", {"2"}}}), "accepted");
}

TEST(Builder, LanesFollowTheRanksUnlessGiven) {
  const auto lanes = [](std::vector<std::pair<const char*, const char*>> pairs) {
    Builder builder = minimal();
    for (const auto& [name, value] : pairs)
      EXPECT_TRUE(set(builder, name, value)) << name;
    return builder.finish()->train.lanes;
  };
  EXPECT_EQ(lanes({}), 1);
  EXPECT_EQ(lanes({{"actor.ranks", "3"}}), 3);
  EXPECT_EQ(lanes({{"actor.ranks", "3"}, {"critic.ranks", "5"}}), 5);
  EXPECT_EQ(lanes({{"actor.ranks", "3"}, {"train.lanes", "6"}}), 6);
}

TEST(Builder, ASupervisedRunIsACompanyWhenItHasRanksOrAWordAboutIt) {
  const auto transport = [](std::vector<std::pair<const char*, const char*>> pairs) {
    Builder builder(keys(), kSft);
    EXPECT_TRUE(set(builder, "actor.model_name_or_path", "model"));
    EXPECT_TRUE(set(builder, "data.dataset", "rows.jsonl"));
    for (const auto& [name, value] : pairs)
      EXPECT_TRUE(set(builder, name, value)) << name;
    const auto config = builder.finish();
    EXPECT_TRUE(config) << config.error().message;
    return config->cluster.transport;
  };
  EXPECT_EQ(transport({}), Transport::kLoopback);
  EXPECT_EQ(transport({{"actor.ranks", "2"}}), Transport::kCaf);
  EXPECT_EQ(transport({{"cluster.listen", "127.0.0.1:7000"}}), Transport::kCaf);
  EXPECT_EQ(transport({{"cluster.transport", "loopback"}, {"cluster.head_wait_s", "0"}}),
            Transport::kLoopback);
}

TEST(Builder, AGroupThatIsLongerThanOneMayBeIsRefused) {
  const auto with = [](std::initializer_list<std::pair<const char*, const char*>> keys) {
    Builder builder = minimal();
    EXPECT_TRUE(set(builder, "rollout.n_samples_per_prompt", "16"));
    EXPECT_TRUE(set(builder, "rollout.max_num_seqs", "2048"));
    for (const auto& [name, value] : keys)
      EXPECT_TRUE(set(builder, name, value)) << name;
    return final_refusal(std::move(builder));
  };
  const auto says = [](const std::string& message, const char* words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  EXPECT_EQ(with({{"rollout.max_new_tokens", "16384"}}), "accepted");
  // 16 bytes a token with its text: 31 x (128 + 16 x 131072) + 512 + 4 x 1024 = 65020288.
  EXPECT_EQ(with({{"rollout.max_new_tokens", "131072"},
                  {"rollout.n_samples_per_prompt", "31"},
                  {"data.prompt_max_len", "1024"}}),
            "accepted");
  says(with({{"rollout.max_new_tokens", "131072"},
             {"rollout.n_samples_per_prompt", "32"},
             {"data.prompt_max_len", "1024"}}),
       "rollout.n_samples_per_prompt: 32 samples of 131072 tokens are a group of 67117568 bytes; "
       "a group may have at most 67108864");
  const std::initializer_list<std::pair<const char*, const char*>> evaluated = {
      {"eval.dataset", "held.jsonl"},
      {"eval.n_samples_per_prompt", "1000"},
      {"rollout.max_new_tokens", "16384"}};
  says(with(evaluated), "eval.n_samples_per_prompt: 1000 samples");
}

TEST(Builder, ARunThatIsOlderThanAKeyDidWithoutIt) {
  const Setting known = {"data.add_special_tokens", {"true"}, false, "resolved_config.yaml:9"};
  Builder fresh(keys()), older(keys()), younger(keys());
  EXPECT_TRUE(fresh.current().data.add_special_tokens);
  ASSERT_TRUE(older.set_run({}));
  EXPECT_FALSE(older.current().data.add_special_tokens);
  ASSERT_TRUE(younger.set_run({&known, 1}));
  EXPECT_TRUE(younger.current().data.add_special_tokens);
  for (const Row& row : keys().rows()) {
    if (row.older.empty()) continue;
    EXPECT_TRUE(older.origins().contains(row.name)) << row.name;
  }
}

TEST(TrainConfig, BatchArithmetic) {
  TrainConfig config;
  config.rollout.batch_size = 8;
  config.rollout.n_samples_per_prompt = 4;
  EXPECT_EQ(config.samples_per_update(), 32);
  EXPECT_EQ(config.mini_batches(), 1);
  config.train.batch_size = 16;
  EXPECT_EQ(config.mini_batches(), 2);
}

}  // namespace
