#include "runtime/config/peer_page.hpp"

#include "runtime/config/peer_names.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/core/split.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe::config {
namespace {

struct Peer {
  std::string_view name;
  std::string_view title;
  std::string_view start;  // what its commands are here
};

constexpr Peer kPeers[] = {
    {"openrlhf", "OpenRLHF",
     "Take the flags of a command line as they are, and leave out what starts it (`ray job "
     "submit`, `deepspeed`); or let `troupe config from-openrlhf SCRIPT.sh` write a "
     "configuration ([the command line](command_line.md#from-another-trainer)).\n\n"
     "| there | here |\n|---|---|\n"
     "| `openrlhf.cli.train_ppo_ray` | `troupe train ppo` |\n"
     "| `openrlhf.cli.train_sft`, `train_rm`, `train_dpo` | `troupe train sft`, `rm`, `dpo` |\n"
     "| `train_dpo --model.ipo_enable`, `train_sft --model.pretrain_mode_enable` | `troupe train "
     "ipo`, `troupe train pretrain` |\n"
     "| `openrlhf.cli.serve_rm`, `lora_combiner` | `troupe serve-reward`, `troupe merge-lora` |\n"
     "| a reward function, an agent's file | the same file: `reward.python`, `env.python` |\n"},
    {"trl", "TRL",
     "Take the flags of a `trl` command as they are; from a script, each argument of a config "
     "class is a flag. `troupe config from-trl FILE` makes a configuration of a command line or a "
     "YAML file ([the command line](command_line.md#from-another-trainer)).\n\n"
     "| there | here |\n|---|---|\n"
     "| `trl sft`, `dpo`, `kto`, `reward` | `troupe train sft`, `dpo`, `kto`, `rm` |\n"
     "| `trl grpo`, `trl rloo` | `troupe train ppo`, with `--algo.advantage.estimator group_norm` "
     "or `rloo` |\n"
     "| `DPOConfig(loss_type=...)`; ORPO, CPO, BCO, SimPO | `--dpo.loss`; `troupe train orpo`, "
     "`cpo`, `bco`, `simpo` |\n"
     "| `GKDTrainer`, `PRMTrainer` | `troupe train distill`, `troupe train prm` |\n"
     "| a reward function, an environment | the same file: `reward.python`, `env.python` |\n"
     "| `prompt`, `completion`, `text`, `messages`, `chosen`, `rejected`, `label` | the same "
     "columns, with no flag: [data formats](data_formats.md) |\n"},
    {"verl", "verl",
     "Take Hydra's words as they are (`data.train_batch_size=64`, also with a `+` in front), "
     "behind `troupe train ppo`; `troupe config from-verl FILE` makes a configuration of a script "
     "or "
     "a YAML file ([the command line](command_line.md#from-another-trainer)). Its data sets are "
     "Parquet, which is read as it is.\n\n"
     "| there | here |\n|---|---|\n"
     "| `python3 -m verl.trainer.main_ppo` | `troupe train ppo` |\n"
     "| `compute_score` of a `custom_reward_function` | the same file: `reward.python` |\n"
     "| `actor_rollout_ref.rollout.agent` | `env.python`, `env.command`: [agents](agents.md) |\n"},
    {"llamafactory", "LLaMA-Factory",
     "Give its YAML file to the command of its stage. `dataset` names a file of rows, for there is "
     "no `dataset_info.json`.\n\n"
     "| there | here |\n|---|---|\n"
     "| `llamafactory-cli train FILE` with `stage: pt`, `sft`, `rm`, `ppo`, `dpo`, `kto` | `troupe "
     "train pretrain`, `sft`, `rm`, `ppo`, `dpo`, `kto` FILE |\n"
     "| `llamafactory-cli export`, `chat`, `api` | `troupe merge-lora`, `chat`, `serve` |\n"
     "| Alpaca and ShareGPT rows | the same rows: [data formats](data_formats.md) |\n"}};

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text)
    (out += c == '|' ? "\\" : "") += c;
  return out;
}

// What is said of one name, for all its methods.
Result<std::string> answer_of(const Table& table, std::string_view name, std::string_view methods) {
  std::vector<std::pair<std::string, std::string>> answers;  // each with the methods it is for
  for (const std::string_view method : core::split(methods, ",")) {
    const Methods bit = method_named(method);
    if (bit == kNoMethod) {
      return core::fail(core::ErrorCode::kData,
                        joined("'", name, "': there is no method '", method, "'"));
    }
    const std::string answer = peer_answer(table, name, bit);
    const auto known =
        std::ranges::find(answers, answer, &std::pair<std::string, std::string>::first);
    if (known == answers.end()) {
      answers.emplace_back(answer, method);
    } else {
      known->second += joined(", ", method);
    }
  }
  if (answers.size() == 1) return answers.front().first;
  std::string out;
  for (const auto& [answer, those] : answers)
    out += joined(out.empty() ? "" : "; ", those, ": ", answer);
  return out;
}

}  // namespace

Result<std::string> peer_page(const Table& table,
                              const std::string& peer,
                              const std::string& list) {
  const auto known = std::ranges::find(kPeers, peer, &Peer::name);
  if (known == std::end(kPeers)) {
    return core::fail(
        core::ErrorCode::kConfig,
        joined("no page for '", peer, "'; there are openrlhf, trl, verl and llamafactory"));
  }
  std::string source;
  std::vector<std::pair<std::string, std::string>> rows;  // answer, names
  for (const std::string_view line : core::split(list, "\n")) {
    if (line.starts_with("# ")) source = line.substr(2);
    if (line.empty() || line[0] == '#') continue;
    const auto tab = line.find('\t');
    if (tab == line.npos)
      return core::fail(core::ErrorCode::kData, joined("not NAME<tab>METHODS: ", line));
    const std::string_view name = line.substr(0, tab);
    TROUPE_TRY_ASSIGN(answer, answer_of(table, name, line.substr(tab + 1)));
    const auto same = std::ranges::find(rows, answer, &std::pair<std::string, std::string>::first);
    if (same == rows.end()) {
      rows.emplace_back(answer, joined("`", name, "`"));
    } else {
      same->second += joined(", `", name, "`");
    }
  }
  std::string out =
      joined("# Coming from ", known->title,
             "\n\nMade from runtime/config/peer_names.def by `troupe config docs ", peer,
             " < tests/data/peer_names/", peer, ".tsv`; a test keeps it current.\n\n", known->start,
             "\nEvery name of a setting is taken, or answered with what to write instead, all of "
             "them at once. What is taken with another "
             "meaning of a value, or without effect, is said in a line of its own. -1 is 0 (never, "
             "no limit) where ",
             known->title, " writes it so.\n\n## Names\n", source,
             "\n\n`the same`: the name is a key here. `taken`: it asks for what is so anyway; "
             "values in brackets are those. In brackets "
             "behind a key: THEIRS=OURS.\n\n| there | here |\n|---|---|\n");
  for (const auto& [answer, names] : rows)
    out += joined("| ", names, " | ", cell(answer), " |\n");
  return out;
}

}  // namespace troupe::config
