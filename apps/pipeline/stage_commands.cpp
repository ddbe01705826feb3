#include "apps/pipeline/stage_commands.hpp"

#include "runtime/config/table.hpp"
#include "runtime/store/run_folder.hpp"

#include <algorithm>

namespace troupe::pipeline {
namespace {

namespace fs = std::filesystem;

const StageCommand kStageCommands[] = {
    {"train", "--run.path", "run", Leftover::kContinued, {"--log.format", "plain"}},
    {"generate", "--out", "out.jsonl", Leftover::kWhole, {}},
    {"score", "--out", "out.jsonl", Leftover::kWhole, {}},
    {"eval", "--out", "out.jsonl", Leftover::kContinued, {"--json", "true"}},
    {"data", "--out", "data", Leftover::kRemoved, {}},
    {"merge-lora", "--out", "model", Leftover::kRemoved, {}},
    {"model", "--out", "model", Leftover::kRemoved, {}},
    {"report", "--out", "out.html", Leftover::kRemoved, {}},
    {"config", "", "", Leftover::kContinued, {}},
    {"plan", "", "", Leftover::kContinued, {}},
    {"doctor", "", "", Leftover::kContinued, {}},
    {"bench", "", "", Leftover::kContinued, {}},
    {"log", "", "", Leftover::kContinued, {}},
};

// The newest checkpoint that has the folder `name`; empty without one.
fs::path newest(const fs::path& checkpoints, const std::string& name) {
  fs::path found;
  std::uint64_t best = 0;
  std::error_code error;
  for (fs::directory_iterator it(checkpoints, error), end; !error && it != end;
       it.increment(error)) {
    const auto step = store::step_of(it->path().filename().string());
    if (!step || (!found.empty() && *step < best) || !fs::exists(it->path() / name)) continue;
    best = *step;
    found = it->path() / name;
  }
  return found;
}

// A flag of `train` that takes several texts is given once for each.
bool repeats(const StageCommand& command, const std::string& key) {
  if (command.name != "train") return true;
  const config::Row* row = config::keys().find_any(key);
  return row != nullptr && row->is<config::Texts>();
}

}  // namespace

const StageCommand* stage_command(const Stage& stage) {
  const auto found =
      std::ranges::find(kStageCommands, std::string_view(stage.command.at(0)), &StageCommand::name);
  return found == std::end(kStageCommands) ? nullptr : found;
}

std::string stage_command_names() {
  std::string out;
  for (const StageCommand& one : kStageCommands)
    out += (out.empty() ? "" : ", ") + std::string(one.name);
  return out;
}

std::string flag_of(const std::string& key) {
  return key.starts_with("--") ? key : "--" + key;
}

Result<std::vector<std::string>> words_of(const Stage& stage,
                                          const std::vector<std::string>& config,
                                          const Values& keys,
                                          const fs::path& folder) {
  const StageCommand& command = *stage_command(stage);
  std::vector<std::string> words = stage.command;
  words.insert(words.end(), config.begin(), config.end());
  for (const auto& [key, value] : keys) {
    const std::string flag = flag_of(key);
    if (!command.out_flag.empty() && flag == command.out_flag) {
      return core::fail(ErrorCode::kConfig,
                        "stage '" + stage.name + "' gives " + flag + ", which the pipeline sets",
                        "leave it out");
    }
    std::string all;
    for (const std::string& item : value.items) {
      all += (all.empty() ? "" : ",") + item;
      if (!repeats(command, key)) continue;
      words.push_back(flag);
      words.push_back(item);
    }
    if (repeats(command, key)) continue;
    words.push_back(flag);
    words.push_back(all);
  }
  if (!command.more.empty() && std::ranges::count(words, command.more[0]) == 0)
    words.insert(words.end(), command.more.begin(), command.more.end());
  if (!command.out_flag.empty()) {
    words.emplace_back(command.out_flag);
    words.push_back((folder / command.out_name).string());
  }
  return words;
}

std::vector<std::string_view> output_names(const StageCommand& command) {
  if (command.name == "train") return {"run", "model", "critic", "best"};
  if (command.name == "data") return {"train", "valid", "heldout", "sft", "data"};
  if (command.out_name == "model") return {"model"};
  return command.out_name.empty() ? std::vector<std::string_view>()
                                  : std::vector<std::string_view>{"out"};
}

Result<fs::path> output(const StageCommand& command,
                        std::string_view name,
                        const fs::path& folder,
                        bool finished) {
  const fs::path own = folder / command.out_name;
  fs::path path = own;
  if (command.name == "train") {
    if (name == "model" || name == "critic") {
      const std::string inside = name == "model" ? "model" : "critic_model";
      path = newest(own / "ckpt", inside);
      if (path.empty() && !finished) path = own / "ckpt" / "last" / inside;
    } else if (name == "best") {
      path = own / "ckpt" / "best" / "model";
    }
  } else if (command.name == "data" && name != "data") {
    path = own / (std::string(name) + ".jsonl");
  }
  if (finished && (path.empty() || !fs::exists(path))) {
    return core::fail(ErrorCode::kData,
                      "the stage in " + folder.string() + " left no " + std::string(name),
                      "remove that folder to run it again");
  }
  return path;
}

}  // namespace troupe::pipeline
