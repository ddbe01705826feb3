#include "apps/troupe/commands.hpp"

#include "apps/hub/consent.hpp"
#include "apps/hub/hub.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/names/locate.hpp"

#include <cstdio>
#include <string_view>
#include <vector>

namespace troupe::app {
namespace {

struct NamedCommand {
  std::string_view name;
  Command* run;
  bool names_models = false;  // or data sets; what a hub has of them may be downloaded
};

constexpr NamedCommand kCommands[] = {
    {"train", run_train, true},
    {"init", run_init, true},
    {"config", run_config, true},
    {"plan", run_plan, true},
    {"pipeline", run_pipeline},
    {"generate", run_generate, true},
    {"chat", run_chat, true},
    {"get", run_get},
    {"push", run_push},
    {"doctor", run_doctor, true},
    {"bench", run_bench},
    {"node", run_node, true},
    {"attach", run_attach},
    {"detach", run_detach},
    {"re-weight", run_reweight},
    {"status", run_status},
    {"report", run_report},
    {"log", run_log},
    {"trace", run_trace},
    {"data", run_data, true},
    {"version", run_version},
    {"ca", run_ca},
    {"serve", run_serve, true},
    {"serve-reward", run_serve_reward},
    {"merge-lora", run_merge_lora, true},
    {"model", run_model},
    {"score", run_score, true},
    {"eval", run_eval, true},
    {"completion", run_completion},
};

constexpr const char* kCommandsHelp =
    "troupe: trains language models from feedback, on one machine or many\n"
    "\n"
    "usage: troupe COMMAND ...   (troupe COMMAND --help for its flags)\n"
    "\n"
    "train\n"
    "  train ppo CONFIG.yaml [--key v]   reinforcement learning from prompts and a reward\n"
    "  train sft|pretrain|rm|dpo|kto|... CONFIG.yaml   learning from texts and preferences\n"
    "  init METHOD --data F --model M    write a commented configuration for these\n"
    "  config show [CONFIG.yaml] [...]   all keys with the values that a run would use\n"
    "  config validate CONFIG.yaml [..]  check a configuration and say what it means\n"
    "  config from-trl|from-verl|from-openrlhf FILE   make one of another trainer's\n"
    "  plan CONFIG.yaml [--cluster C]    what it takes of each device, and whether that fits\n"
    "  pipeline FILE.yaml                stages of these commands, with loops; resumable\n"
    "\n"
    "while a run goes on\n"
    "  status --join RUN                 members, where each role runs, what it waits for\n"
    "  attach reward --join RUN ...      add a reward; detach and re-weight change it\n"
    "  attach environment --join RUN ... add an environment of agents; detach takes it out\n"
    "  node --join HOST:PORT ...         run roles for it, from this or another host\n"
    "  node drain NAME --join RUN        take a node out once its work is done or moved\n"
    "\n"
    "look at runs\n"
    "  report RUN... [--out FILE]        one page of curves, rollouts, events; also of a live run\n"
    "  log RUN --to wandb                its metrics to wandb, mlflow or trackio\n"
    "  trace RUN                         its episodes as token ids and log-probs\n"
    "\n"
    "by name, from the Hugging Face hub and to it\n"
    "  get OWNER/NAME [--dataset]        download a model or a data set\n"
    "  push FOLDER OWNER/NAME            upload a model or an adapter with its card\n"
    "\n"
    "use a model\n"
    "  generate --model M --prompt TEXT  sample responses\n"
    "  chat --model M                    talk to a chat model\n"
    "  serve --model M                   OpenAI's and Anthropic's API over HTTP\n"
    "  merge-lora --model M --adapter A  one model of a base and a LoRA adapter\n"
    "\n"
    "work on whole files\n"
    "  generate --data F --n N --out O   sample every prompt, resumable\n"
    "  score --data F --out O ...        score responses; best of n, pairs, conditional rows\n"
    "  eval --model M --data F ...       pass@k, maj@k; --reward-model RM: pairs\n"
    "\n"
    "between programs and hosts\n"
    "  serve-reward --python FILE        give a reward over HTTP (OpenRLHF's JSON)\n"
    "  ca init --out DIR                 certificates for the nodes of one run\n"
    "\n"
    "look around\n"
    "  doctor                            processor, memory, disk, limits\n"
    "  bench NAME [--json]               measure this machine\n"
    "  data preview|stats|check F        look at rows, as they are or as a method reads them\n"
    "  data convert F --out O.jsonl      Parquet, Arrow, CSV, JSON, .gz or .zst to JSON lines\n"
    "  data arithmetic --out DIR         write the one-digit arithmetic task\n"
    "  model random --shape S --out DIR  write a model of random weights\n"
    "  version                           version and build\n"
    "  completion bash|zsh               print what completes these words in a shell\n"
    "\n"
    "A model is a Hugging Face folder, or OWNER/NAME[@REVISION]; a data set a file, or "
    "OWNER/NAME[:CONFIG]\n"
    "[:SPLIT]. What the hub cache (HF_HOME) lacks is downloaded after a question, or with --yes;\n"
    "--offline asks no hub. See docs/hub.md.\n"
    "Exit codes: 0 done, 1 bug, 2 configuration, 3 resources, 4 data, 5 peer lost, 6 numeric,\n"
    "130 interrupted. Reference of all keys: docs/configuration.md.\n";

// Takes the flags --yes and --offline, which such a command has beside its own, and lets it
// download.
std::vector<std::string> without_hub_flags(cli::Words words) {
  std::vector<std::string> rest;
  for (const std::string& word : words) {
    if (word == "--yes") {
      hub::say_yes();
    } else if (word == "--offline") {
      hub::stay_offline();
    } else {
      rest.push_back(word);
    }
  }
  names::allow_fetching(hub::fetch_named);
  return rest;
}

}  // namespace

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const NamedCommand& command : kCommands)
    names.push_back(command.name);
  return names;
}

Result<void> run_command(cli::Words words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    std::fputs(kCommandsHelp, stdout);
    return {};
  }
  if (words[0] == "--version") return run_version({});
  for (const NamedCommand& command : kCommands) {
    if (command.name != words[0]) continue;
    if (!command.names_models) return command.run(words.subspan(1));
    return command.run(without_hub_flags(words.subspan(1)));
  }
  const std::string near(core::nearest_word(words[0], command_names()));
  return fail(
      ErrorCode::kConfig, "there is no command '" + words[0] + "'",
      (near.empty() ? "`troupe --help` lists them" : "did you mean `troupe " + near + "`?"));
}

}  // namespace troupe::app
