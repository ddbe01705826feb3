// Names of other trainers: all that their packages have (tests/data/peer_names), and those of
// OpenRLHF's releases that had KTO, PRM, distillation and batch inference, which were typed from
// notes on its features. Each is a key, taken as one, or answered.
#include "runtime/config/peer_names.hpp"
#include "runtime/config/peer_page.hpp"
#include "runtime/config/read.hpp"
#include "runtime/config/table.hpp"
#include "tests/unit/runtime/config/openrlhf_flags.hpp"
#include "tests/unit/runtime/core/listing1.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace troupe::config;
using namespace troupe::core;

struct Listed {
  std::string name;
  std::vector<Methods> methods;
};

std::vector<Listed> names_of(const std::string& peer) {
  const char* source = std::getenv("TROUPE_SOURCE_DIR");
  std::ifstream in(std::string(source == nullptr ? "." : source) + "/tests/data/peer_names/" +
                   peer + ".tsv");
  std::vector<Listed> out;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    Listed one{line.substr(0, line.find('\t')), {}};
    std::istringstream methods(line.substr(line.find('\t') + 1));
    for (std::string word; std::getline(methods, word, ',');)
      one.methods.push_back(method_named(word));
    out.push_back(std::move(one));
  }
  return out;
}

TEST(PeerNames, EachNameOfAPackageHasAMeaningInItsMethods) {
  for (const auto& [peer, least] :
       {std::pair{"openrlhf", 150}, {"trl", 200}, {"verl", 700}, {"llamafactory", 300}}) {
    const auto names = names_of(peer);
    EXPECT_GT(static_cast<int>(names.size()), least) << peer;
    for (const Listed& listed : names) {
      for (const Methods method : listed.methods) {
        EXPECT_NE(peer_answer(keys(), listed.name, method), "")
            << peer << ": " << listed.name << " in " << method_names(method) << " has no row";
      }
    }
  }
}

// A name that its package does not have any more is no reason to keep a row.
TEST(PeerNames, EachRowIsReachedAndNamesThingsThatExist) {
  const auto& rows = peer_names();
  for (const PeerName& peer : rows) {
    const std::string what(peer.names);
    const Row* row = peer.key.empty() ? nullptr : keys().find(peer.key);
    EXPECT_EQ(row == nullptr, peer.key.empty()) << what << " is " << peer.key;
    std::istringstream names(what);
    for (std::string name; names >> name;) {
      if (name.find('*') != name.npos) continue;
      EXPECT_EQ(keys().find(name) == nullptr || !keys().find(name)->is_read_by(peer.methods), true)
          << name << " is a key";
      bool reached = false;
      for (unsigned bit = 1; bit <= kPrm; bit *= 2) {
        const auto method = static_cast<Methods>(bit);
        reached = reached ||
                  ((peer.methods & bit) != 0 && meaning_of(keys(), name, method).peer == &peer);
      }
      EXPECT_TRUE(reached) << name << " has an earlier row";
    }
    if (row == nullptr) continue;
    EXPECT_TRUE(row->is_read_by(peer.methods)) << what;
    std::istringstream values{std::string(peer.values)};
    for (std::string pair; values >> pair;) {
      if (pair == "*" || pair.find('>') != pair.npos) continue;
      TrainConfig config;
      EXPECT_TRUE(row->set(config, {row->name, {pair.substr(pair.find('=') + 1)}, false, "test"}) ||
                  !row->words.empty() || row->is<Text>())
          << what << " " << pair;
    }
  }
}

// What an answer puts in quotes is a key that exists, or a section of them.
TEST(PeerNames, TextsNameKeysThatExist) {
  for (const PeerName& peer : peer_names()) {
    std::istringstream parts{std::string(peer.text)};
    std::string part;
    for (bool quoted = false; std::getline(parts, part, '\''); quoted = !quoted) {
      if (!quoted || part.find(' ') != part.npos || part.find('.') == part.npos) continue;
      EXPECT_NE(keys().find(part), nullptr) << peer.text;
    }
  }
}

struct Taken {
  TrainConfig config;
  std::vector<std::string> notes;
  std::string error;
};
Taken take(Methods method, const std::vector<std::string>& words) {
  auto builder = read(keys(), words, method);
  if (!builder) return {{}, {}, builder.error().message};
  return {builder->current(), builder->notes(), ""};
}

TEST(PeerNames, WhatIsSoAnywayIsTakenWithALine) {
  const Taken taken =
      take(kPpo, {"--packing_samples", "--flash_attn", "--enforce_eager", "--vllm_sync_backend",
                  "nccl", "--zero_stage", "3", "--logging_steps", "1", "--save_path", "out",
                  "--bf16", "--save_steps", "-1", "--eval_steps", "-1", "--ds.zpg", "1"});
  ASSERT_EQ(taken.error, "");
  EXPECT_EQ(taken.config.train.zero_stage, 3);
  EXPECT_EQ(taken.config.run.path, "out");
  EXPECT_EQ(taken.config.actor.param_dtype, ParamDtype::kBf16);
  EXPECT_EQ(taken.config.ckpt.save_steps, 0);
  EXPECT_EQ(taken.config.eval.steps, 0);
  EXPECT_EQ(taken.notes.size(), 9u);
  EXPECT_EQ(taken.notes[0],
            "the command line: 'packing_samples' has no effect: sequences are always packed "
            "without padding, and none sees another");
  EXPECT_NE(take(kPpo, {"--ds.zpg", "8"}).error.find("'ds.zpg' = 8: it splits one model"),
            std::string::npos);
  EXPECT_NE(take(kPpo, {"--rollout.batch_size", "-1"}).error.find("out of range"),
            std::string::npos);
}

TEST(PeerNames, AMethodDecidesWhatANameMeans) {
  EXPECT_EQ(take(kDpo, {"--beta", "0.3"}).config.dpo.beta, 0.3);
  EXPECT_EQ(take(kKto, {"--beta", "0.3"}).config.kto.beta, 0.3);
  EXPECT_EQ(take(kPpo, {"--beta", "0.3"}).config.algo.kl.init_coef, 0.3);
  EXPECT_EQ(take(kPpo, {"--loss_type=dapo"}).config.algo.reducer, "token_mean");
  EXPECT_EQ(take(kDpo, {"--loss_type=hinge"}).config.dpo.loss, "hinge");
  EXPECT_EQ(take(kSft, {"--num_train_epochs", "3.0"}).config.train.max_epochs, 3);
  EXPECT_EQ(take(kPpo, {"--num_train_epochs", "2"}).config.train.num_episodes, 2);
  EXPECT_EQ(take(kPpo, {"data.prompt_key=question"}).config.data.input_key, "question");
  EXPECT_EQ(take(kDpo, {"data.prompt_key=question"}).config.data.prompt_key, "question");
  EXPECT_EQ(take(kSft, {"--num_generations", "8"}).error,
            "the command line: 'num_generations' is called 'rollout.n_samples_per_prompt' here, "
            "which is not read by `train sft` (only by ppo); take it out");
}

TEST(PeerNames, AValueMaySayWhichKeyIsMeant) {
  EXPECT_EQ(take(kPpo, {"--remote_rm_url", "/a/reward.py"}).config.reward.python, "/a/reward.py");
  const Taken servers = take(kPpo, {"--reward.remote_url", "http://a:1/x,http://b:1/x"});
  EXPECT_EQ(servers.config.reward.http, (std::vector<std::string>{"http://a:1/x", "http://b:1/x"}));
  EXPECT_TRUE(servers.config.reward.python.empty());
}

TEST(PeerNames, HydrasWordsAndNullsAreRead) {
  const Taken taken = take(
      kPpo, {"actor_rollout_ref.model.path=m", "+data.train_batch_size=8",
             "actor_rollout_ref.actor.use_dynamic_bsz=True", "trainer.total_training_steps=null",
             "reward.custom_reward_function.path=r.py", "trainer.save_freq=-1"});
  ASSERT_EQ(taken.error, "");
  EXPECT_EQ(taken.config.actor.model_name_or_path, "m");
  EXPECT_EQ(taken.config.rollout.batch_size, 8);
  EXPECT_EQ(taken.config.reward.python, "r.py");
}

TEST(PeerNames, AHintGivesWayToTheKeyItself) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"--lora_r", "32", "--use_peft"},
                                                                 {"--use_peft", "--lora_r", "32"}})
    EXPECT_EQ(take(kSft, words).config.actor.lora.rank, 32);
  EXPECT_EQ(take(kSft, {"--use_peft"}).config.actor.lora.rank, 16);
  EXPECT_EQ(take(kSft, {"--finetuning_type", "full"}).config.actor.lora.rank, 0);
}

TEST(PeerNames, FlatYamlOfLlamaFactoryIsRead) {
  const char* text =
      "model_name_or_path: m\ntrust_remote_code: true\nstage: sft\ndo_train: true\n"
      "finetuning_type: lora\nlora_rank: 4\nlora_target: all\ndataset: rows.jsonl\n"
      "template: llama3\ncutoff_len: 512\noutput_dir: saves\nlogging_steps: 10\n"
      "learning_rate: 1.0e-4\nnum_train_epochs: 3.0\nlr_scheduler_type: cosine\n"
      "warmup_ratio: 0.1\nbf16: true\nddp_timeout: 180000000\nresume_from_checkpoint: null\n";
  const std::string file = testing::TempDir() + "lf.yaml";
  std::ofstream(file) << text;
  const Taken taken = take(kSft, {file});
  ASSERT_EQ(taken.error, "");
  EXPECT_EQ(taken.config.actor.lora.rank, 4);
  EXPECT_EQ(taken.config.actor.lora.target, std::vector<std::string>{"all-linear"});
  EXPECT_EQ(taken.config.data.max_len, 512);
  EXPECT_EQ(taken.config.train.max_epochs, 3);
  EXPECT_EQ(taken.config.run.path, "saves");
  std::ofstream(file, std::ios::app) << "dataset_dir: data\n";
  EXPECT_NE(take(kSft, {file}).error.find("lf.yaml:20: 'dataset_dir' has no counterpart"),
            std::string::npos);
}

// A guess belongs to the method, and to the section or to nearly the same letters.
TEST(PeerNames, GuessesAreOfTheMethodAndNear) {
  for (unsigned bit = 1; bit <= kPrm; bit *= 2) {
    const auto method = static_cast<Methods>(bit);
    for (const Row& row : keys().rows()) {
      std::string typed = row.name;
      typed.erase(typed.size() / 2, 1);
      const std::string near = nearest_name(typed, method);
      if (near.empty()) continue;
      EXPECT_TRUE(keys().find(near)->is_read_by(method)) << typed << " " << near;
      if (!row.is_read_by(method)) continue;
      EXPECT_LE(near.size(), row.name.size() + 8) << typed;
    }
  }
  EXPECT_EQ(nearest_name("reward.pattern", kPpo), "reward.rule_pattern");
  EXPECT_EQ(nearest_name("reward.rule_patern", kPpo), "reward.rule_pattern");
  EXPECT_EQ(nearest_name("rolout.batch_size", kPpo), "rollout.batch_size");
  EXPECT_EQ(nearest_name("rollout.max_len", kPpo), "");
  EXPECT_EQ(nearest_name("other.model.path", kPpo), "");
  EXPECT_EQ(nearest_name("rollout.batch_size", kSft), "");
}

TEST(PeerNames, ThePagesAreCurrent) {
  const char* source = std::getenv("TROUPE_SOURCE_DIR");
  const std::string root = source == nullptr ? "." : source;
  const auto text_of = [](const std::string& file) {
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  for (const char* peer : {"openrlhf", "trl", "verl", "llamafactory"}) {
    const auto page =
        peer_page(keys(), peer, text_of(root + "/tests/data/peer_names/" + peer + ".tsv"));
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_EQ(*page, text_of(root + "/docs/coming_from_" + peer + ".md"))
        << "troupe config docs " << peer << " < tests/data/peer_names/" << peer
        << ".tsv > docs/coming_from_" << peer << ".md";
  }
}

// Command lines from the other trainers' own pages: every word is taken or answered.
TEST(PeerNames, WholeCommandLinesAreTakenOrAnswered) {
  const char* source = std::getenv("TROUPE_SOURCE_DIR");
  std::ifstream in(std::string(source == nullptr ? "." : source) +
                   "/tests/data/peer_names/commands.txt");
  int lines = 0, whole = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    ++lines;
    const auto first = line.find('\t'), second = line.find('\t', first + 1);
    const Methods method = method_named(line.substr(0, first));
    ASSERT_NE(method, kNoMethod) << line;
    std::vector<std::string> words;
    std::string word;
    bool quoted = false;
    for (const char c : line.substr(second + 1) + " ") {
      if (c == '\'') {
        quoted = !quoted;
      } else if (c == ' ' && !quoted) {
        words.push_back(std::exchange(word, {}));
      } else {
        word += c;
      }
    }
    const Taken taken = take(method, words);
    whole += taken.error.empty() ? 1 : 0;
    EXPECT_EQ(taken.error.find("unknown key"), std::string::npos) << line << "\n" << taken.error;
    EXPECT_EQ(taken.error.find("configuration file"), std::string::npos) << line << "\n"
                                                                         << taken.error;
  }
  EXPECT_GE(lines, 30);
  EXPECT_GE(whole, 12) << "the others are answered";
}

TEST(PeerNames, EveryFlagIsTakenOrAnswered) {
  for (const std::string& flag : troupe::test::openrlhf_flags()) {
    const Meaning meaning = meaning_of(keys(), flag, kAllMethods);
    EXPECT_TRUE(meaning.row != nullptr || meaning.peer != nullptr)
        << flag << " is neither taken nor answered";
  }
}

TEST(PeerNames, EachFlagOfListing1IsTakenOrAnsweredAllAtOnce) {
  const Arguments read = read_flags(keys(), troupe::test::listing1(), kPpo);
  EXPECT_TRUE(read.files.empty()) << "values of answered flags are not taken for files";
  Builder builder(keys());
  ASSERT_TRUE(builder.set_all(read.hints));
  ASSERT_TRUE(builder.set_all(read.settings));
  const TrainConfig& config = builder.current();
  EXPECT_EQ(config.rollout.generators, 4);
  EXPECT_EQ(config.actor.ranks, 4);
  EXPECT_EQ(config.critic.ranks, 4);
  EXPECT_EQ(config.train.zero_stage, 3);
  EXPECT_EQ(config.run.path, "checkpoint/llama3");
  EXPECT_EQ(config.actor.param_dtype, ParamDtype::kBf16);
  EXPECT_EQ(config.actor.model_name_or_path, "meta-llama/Llama-3-8b");
  EXPECT_EQ(config.reward.model_name_or_path, std::vector<std::string>{"my/reward-model"});
  EXPECT_EQ(config.algo.kl.init_coef, 0.01);
  EXPECT_EQ(config.data.prompt_dataset, "prompts.jsonl");
  EXPECT_EQ(config.data.input_key, "context_messages");
  EXPECT_TRUE(config.data.apply_chat_template);
  ASSERT_FALSE(read.wrong.empty());
  const Error wrong = read.wrong.error();
  const auto answers = single_errors(wrong);
  const auto so = std::ranges::count_if(
      read.notes, [](const std::string& note) { return note.find("has no effect") != note.npos; });
  EXPECT_EQ(builder.origins().size() + answers.size() + static_cast<std::size_t>(so), 21u)
      << wrong.message;
  for (const Error& answer : answers) {
    EXPECT_EQ(answer.message.find("unknown key"), std::string::npos) << answer.message;
    EXPECT_TRUE(answer.message.starts_with("the command line: '")) << answer.message;
  }
}

TEST(PeerNames, RanksAreTheProductOfNodesAndGpus) {
  const auto ranks = [](std::vector<std::string> words) {
    const Taken taken = take(kPpo, words);
    return taken.error.empty() ? std::to_string(taken.config.actor.ranks) : taken.error;
  };
  EXPECT_EQ(ranks({"--actor_num_nodes", "2", "--actor_num_gpus_per_node", "8"}), "16");
  EXPECT_EQ(ranks({"--actor.num_gpus_per_node=4", "--actor.num_nodes=3"}), "12");
  EXPECT_EQ(ranks({"--actor_num_gpus_per_node", "4"}), "4");
  EXPECT_EQ(ranks({"--actor_num_nodes", "2", "--critic_num_gpus_per_node", "8"}), "2");
  EXPECT_NE(ranks({"--actor_num_nodes", "2", "--actor_num_gpus_per_node", "x"}).find("actor.ranks"),
            std::string::npos);
  EXPECT_NE(ranks({"--actor_num_nodes", "99", "--actor_num_gpus_per_node", "99"}).find("9801"),
            std::string::npos);
}

TEST(PeerNames, AStepIsTheProductOfDeviceBatchAndAccumulation) {
  const auto batch = [](std::vector<std::string> words) {
    return take(kSft, words).config.train.batch_size;
  };
  EXPECT_EQ(batch({"--per_device_train_batch_size", "2", "--gradient_accumulation_steps", "8"}),
            16);
  EXPECT_EQ(batch({"--gradient_accumulation_steps", "2"}), 16)
      << "theirs is 8 where it is not given";
  EXPECT_EQ(batch({"--per_device_train_batch_size", "2"}), 2);
  EXPECT_EQ(batch({"per_device_train_batch_size=1", "gradient_accumulation_steps=8",
                   "gradient_accumulation_steps=4"}),
            4)
      << "the later one counts";
}

// Names of TRL's preference trainers: each says the key or the method to use instead.
TEST(PeerNames, TrlsNamesOfPreferenceLossesAreAnswered) {
  for (const auto& [method, flag, part] :
       {std::tuple{kDpo, "loss_type", "is called 'dpo.loss' here"},
        {kDpo, "loss_weights", "'dpo.nll_loss_coef'"},
        {kDpo, "rpo_alpha", "'dpo.nll_loss_coef'"},
        {kCpo, "cpo_alpha", "'cpo.nll_loss_coef'"},
        {kSimpo, "simpo_gamma", "'simpo.gamma'"},
        {kDpo, "discopop_tau", "'dpo.discopop_tau'"},
        {kDpo, "reference_free", "`troupe train simpo`"},
        {kBco, "beta", "'bco.beta'"}})
    EXPECT_NE(answer_to_name(flag, method).find(part), std::string::npos)
        << answer_to_name(flag, method);
  EXPECT_EQ(answer_to_name("label_smoothing"),
            "'label_smoothing' is called 'dpo.label_smoothing' here");
}

TEST(PeerNames, AnAliasTakesTheSameValues) {
  const std::vector<std::string> words = {"--pretrain",
                                          "m",
                                          "--actor.policy_loss_type",
                                          "gspo",
                                          "--ds.lora.rank=8",
                                          "rollout_batch_size=4",
                                          "--adam_betas",
                                          "0.8",
                                          "0.9",
                                          "--use_kl_loss"};
  const auto read = read_flags(keys(), words);
  ASSERT_TRUE(read.wrong.empty());
  Builder builder(keys());
  ASSERT_TRUE(builder.set_all(read.settings));
  const TrainConfig& config = builder.current();
  EXPECT_EQ(config.actor.model_name_or_path, "m");
  EXPECT_EQ(config.algo.objective, "gspo");
  EXPECT_EQ(config.actor.lora.rank, 8);
  EXPECT_EQ(config.rollout.batch_size, 4);
  EXPECT_EQ(config.actor.adam.betas, (std::vector<double>{0.8, 0.9}));
  EXPECT_TRUE(config.algo.kl.use_loss);
  EXPECT_TRUE(read.files.empty());
}

TEST(PeerNames, AnAliasOfAnotherMethodIsRefusedByItsKey) {
  const std::vector<std::string> words = {"--model.beta", "0.2"};
  const auto read = read_flags(keys(), words);
  ASSERT_TRUE(read.wrong.empty());
  Builder dpo(keys(), kDpo), ppo(keys(), kPpo);
  EXPECT_TRUE(dpo.set_all(read.settings));
  EXPECT_EQ(dpo.current().dpo.beta, 0.2);
  EXPECT_NE(ppo.set_all(read.settings).error().message.find("dpo.beta is not read by"),
            std::string::npos);
}

TEST(PeerNames, AnAliasMeansOneKey) {
  std::set<std::string> names;
  for (const Row& row : keys().rows()) {
    std::istringstream words{std::string(row.aka)};
    for (std::string word; words >> word;) {
      EXPECT_TRUE(names.insert(word).second) << word;
      EXPECT_EQ(keys().find_any(word), &row) << word;
    }
  }
}

TEST(PeerNames, AnOwnNameIsNeverAnAlias) {
  for (const Row& row : keys().rows())
    EXPECT_EQ(answer_to_name(row.name), "") << row.name;
}

}  // namespace
