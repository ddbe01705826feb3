#include "apps/session/roles/contents.hpp"

#include "actors/protocol/messages_node.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/teachers.hpp"
#include "runtime/config/eval_sets.hpp"
#include "runtime/config/table.hpp"
#include "runtime/core/split.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/learn/state/state_counts.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/names/locate.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/file_hashes.hpp"

#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <wordexp.h>

#include <algorithm>
#include <cstdlib>

namespace troupe::session {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSetting = "sha256 of ";
constexpr std::size_t kShown = 12;  // digits of a hash that are shown

// The tokenizer's files, with those that name the end tokens and the chat template.
Result<Content> tokenizer_at(const std::string& key, const std::string& from) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(from));
  Content content{"the tokenizer of " + key, {}, folder};
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "generation_config.json", "chat_template.jinja", "config.json"}) {
    std::error_code error;
    if (fs::exists(folder / name, error)) content.files.push_back(folder / name);
  }
  return content;
}

Result<void> add_files(std::vector<Content>& all,
                       const std::string& key,
                       const std::string& list,
                       bool only_warns = false) {
  if (list.empty()) return {};
  Content content{key, {}, list, only_warns};
  TROUPE_TRY_ASSIGN(files, data::files_of_sets(list));
  for (const std::string& file : files) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) {
      return core::fail(ErrorCode::kConfig, key + ": no such file: " + file);
    }
    content.files.emplace_back(file);
  }
  all.push_back(std::move(content));
  return {};
}

// Held-out sets. Their keys may change when a run goes on, so a set is known by its files' names.
Result<void> add_held_out(std::vector<Content>& all, const config::TrainConfig& config) {
  if (config.method != config::kPpo) {
    const std::string& files = config.eval.dataset;
    return add_files(all, "eval.dataset " + files, files);
  }
  TROUPE_TRY_ASSIGN(sets, config::eval_sets(config));
  for (const config::HeldOutSet& set : sets) {
    const std::string& files = set.config.eval.dataset;
    const std::string key = set.name.empty() ? "" : "eval.sets " + set.name + ": ";
    TROUPE_TRY(add_files(all, set.name.empty() ? "eval.dataset " + files : key + files, files));
    if (!set.own_rewards) continue;
    const auto& reward = set.config.reward;
    TROUPE_TRY(add_files(all, key + "reward.python", reward.python, true));
    TROUPE_TRY(add_files(all, key + "reward.judge_rubric", reward.judge_rubric, true));
  }
  return {};
}

// Where the PATH has the program, or the file itself.
fs::path program_of(const std::string& word) {
  std::error_code error;
  if (word.find('/') != std::string::npos) return word;
  const char* const path = std::getenv("PATH");
  for (const std::string_view folder : core::split(path == nullptr ? "" : path, ":"))
    if (fs::is_regular_file(fs::path(folder) / word, error)) return fs::path(folder) / word;
  return {};
}

// The program of a command, and the files that its words name.
void add_program(std::vector<Content>& all, const std::string& key, const std::string& command) {
  wordexp_t words{};
  if (command.empty() || ::wordexp(command.c_str(), &words, WRDE_NOCMD) != 0) return;
  Content content{key, {}, command, true};
  for (std::size_t i = 0; i < words.we_wordc; ++i) {
    const fs::path file = i == 0 ? program_of(words.we_wordv[i]) : fs::path(words.we_wordv[i]);
    std::error_code error;
    if (fs::is_regular_file(file, error)) content.files.push_back(file);
  }
  ::wordfree(&words);
  if (!content.files.empty()) all.push_back(std::move(content));
}

Result<void> add_model(std::vector<Content>& all,
                       const std::string& key,
                       const std::string& from,
                       bool tokenizer) {
  if (from.empty()) return {};
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(from));
  TROUPE_TRY_ASSIGN(files, model::weight_files(folder));
  files.push_back(folder / "config.json");
  all.push_back({"the weights of " + key, std::move(files), std::move(folder)});
  if (!tokenizer) return {};
  TROUPE_TRY_ASSIGN(words, tokenizer_at(key, from));
  all.push_back(std::move(words));
  return {};
}

// What a key of the configuration names.
Result<void> add_model(std::vector<Content>& all,
                       const std::string& key,
                       const config::TrainConfig& config,
                       bool tokenizer) {
  return add_model(all, key, config::value_at<config::Text>(config, key), tokenizer);
}
Result<void> add_files(std::vector<Content>& all,
                       const std::string& key,
                       const config::TrainConfig& config,
                       bool only_warns = false) {
  return add_files(all, key, config::value_at<config::Text>(config, key), only_warns);
}

std::string reward_key(const RewardPart& part) {
  const bool process = part.kind == RewardPart::Kind::kProcess;
  return (process ? "reward.process.model_name_or_path " : "reward.model_name_or_path ") +
         part.folder;
}

// The Python file and the rubric of one reward, whose code may change while a run goes on.
Result<void> add_reward_files(std::vector<Content>& all,
                              const config::TrainConfig& config,
                              const RewardPart& part) {
  const std::string of = part.listed ? " of " + part.name : "";
  const config::TrainConfig own = config_of(config, part);
  if (part.kind == RewardPart::Kind::kSource)
    TROUPE_TRY(add_files(all, "reward.python" + of, own.reward.python, true));
  if (part.kind == RewardPart::Kind::kJudge)
    TROUPE_TRY(add_files(all, "reward.judge_rubric" + of, own.reward.judge_rubric, true));
  return {};
}

std::string teacher_key(const TeacherPart& part) {
  return "teacher.model_name_or_path " + part.folder;
}

}  // namespace

Result<std::vector<Content>> contents_of(const config::TrainConfig& config) {
  std::vector<Content> all;
  TROUPE_TRY(add_model(all, "actor.model_name_or_path", config, true));
  TROUPE_TRY(add_model(all, "ref.model_name_or_path", config, false));
  for (const TeacherPart& part : teacher_parts(config))
    TROUPE_TRY(add_model(all, teacher_key(part), part.folder, false));
  if (config.method != config::kPpo) {
    TROUPE_TRY(add_files(all, "data.dataset", config));
    TROUPE_TRY(add_held_out(all, config));
    return all;
  }
  if (has_critic(config)) TROUPE_TRY(add_model(all, "critic.model_name_or_path", config, false));
  for (const RewardPart& part : reward_parts(config))
    TROUPE_TRY(add_model(all, reward_key(part), part.folder, true));
  TROUPE_TRY(add_files(all, "data.prompt_dataset", config));
  TROUPE_TRY(add_files(all, "data.pretrain_dataset", config));
  for (const RewardPart& part : run_rewards(config))
    TROUPE_TRY(add_reward_files(all, config, part));
  TROUPE_TRY(add_held_out(all, config));
  TROUPE_TRY(add_files(all, "env.python", config, true));
  add_program(all, "env.command", config.env.command);
  TROUPE_TRY(add_files(all, "algo.advantage_file", config, true));
  return all;
}

Result<std::vector<Content>> contents_of_role(const config::TrainConfig& config,
                                              const std::string& kind,
                                              const std::string& role) {
  const std::string actor = "actor.model_name_or_path";
  std::vector<Content> all;
  const bool is_environment = kind == "environment" || kind == actors::kAttachedEnvironment;
  if (kind == "generator" || is_environment) {
    TROUPE_TRY_ASSIGN(words, tokenizer_at(actor, config.actor.model_name_or_path));
    all.push_back(std::move(words));
  } else if (kind == "reference") {
    const bool own = !config.ref.model_name_or_path.empty();
    TROUPE_TRY(add_model(all, own ? "ref.model_name_or_path" : actor, config, false));
  } else if (kind == "critic" && !config.critic.model_name_or_path.empty()) {
    TROUPE_TRY(add_model(all, "critic.model_name_or_path", config, false));
  } else if (kind == "critic" && first_reward_model(config).empty()) {
    TROUPE_TRY(add_model(all, actor, config, false));
  }
  for (const TeacherPart& part : teacher_parts(config)) {
    if (part.role == role) TROUPE_TRY(add_model(all, teacher_key(part), part.folder, false));
  }
  for (const RewardPart& part : reward_parts(config)) {
    if (part.role == role) TROUPE_TRY(add_reward_files(all, config, part));
    if (part.folder.empty()) continue;
    const bool starts_critic = kind == "critic" && config.critic.model_name_or_path.empty() &&
                               part.kind == RewardPart::Kind::kModel && part.set.empty() &&
                               part.folder == first_reward_model(config);
    if (part.role != role && !starts_critic) continue;
    TROUPE_TRY(add_model(all, reward_key(part), part.folder, part.role == role));
  }
  if (kind == "environment") {
    TROUPE_TRY(add_files(all, "env.python", config, true));
    add_program(all, "env.command", config.env.command);
  }
  return all;
}

Hashing::Hashing(std::vector<Content> contents)
    : contents_(std::move(contents)),
      future_(std::async(std::launch::async, [this]() -> Result<Hashes> {
        ::setpriority(PRIO_PROCESS, 0, 19);  // of this thread
        Hashes hashes;
        for (const Content& content : contents_) {
          TROUPE_TRY_SET(hashes[content.name], store::sha256_of_files(content.files, &stop_));
        }
        return hashes;
      })) {}

void Hashing::write_by(std::function<Result<void>(const std::string& json)> put) {
  written_ = std::async(std::launch::async, [this, put = std::move(put)] {
    if (const auto& hashes = get()) static_cast<void>(put(hashes_json(*hashes)));
  });
}

Hashing::~Hashing() {
  stop_ = true;
  future_.wait();
  if (written_.valid()) written_.wait();
}

std::vector<ContentDifference> differences(const std::vector<Content>& contents,
                                           const Hashes& theirs,
                                           const Hashes& ours) {
  std::vector<ContentDifference> all;
  for (const Content& content : contents) {
    const auto other = theirs.find(content.name), own = ours.find(content.name);
    if (other == theirs.end() || own == ours.end() || other->second == own->second) continue;
    all.push_back({content.name, content.place, other->second.substr(0, kShown),
                   own->second.substr(0, kShown), content.only_warns});
  }
  return all;
}

Result<store::RunStart> start_run(const config::TrainConfig& config,
                                  const config::Origins& origins,
                                  const Hashing& contents) {
  using Notes = std::vector<std::string>;
  const auto check = [&](const store::Checkpoint& checkpoint, bool branch) -> Result<Notes> {
    const Hashes theirs = hashes_of_json(checkpoint.state_json);
    Notes notes;
    const auto counts = learn::read_counts(checkpoint.folder / "policy");
    // Otherwise the run's configuration says it.
    if (branch && counts && counts->lanes != config.train.lanes) {
      notes.push_back("changed since the checkpoint: train.lanes was " +
                      std::to_string(counts->lanes) + " and is " +
                      std::to_string(config.train.lanes));
    }
    if (theirs.empty()) return notes;
    const auto& ours = contents.get();
    if (!ours) return ours.failure();
    std::string refused;
    for (const ContentDifference& one : differences(contents.contents(), theirs, *ours)) {
      const std::string text = "the SHA-256 of " + one.name + " (" + one.place.string() + ") was " +
                               one.theirs + "... and is " + one.ours + "...";
      if (branch || one.only_warns) {
        notes.push_back("changed since the checkpoint: " + text);
      } else {
        refused += (refused.empty() ? "" : ", ") + text;
      }
    }
    if (refused.empty()) return notes;
    return core::fail(ErrorCode::kConfig,
                      checkpoint.folder.string() + " was made with other contents: " + refused,
                      "put back what was there, or start a branch: the same command with " +
                          store::branch_flags(checkpoint.folder, config.run.path) +
                          " goes on from there with the new");
  };
  return store::start_run(config, origins, may_grow(config), check);
}

Result<void> check_experience(store::RunStart& start, Hashing& contents) {
  const std::filesystem::path file = start.folder.experience_folder() / "contents.json";
  TROUPE_TRY_ASSIGN(steps, start.folder.experience().steps());
  if (!steps.empty()) {
    TROUPE_TRY_ASSIGN(text, store::read_all(file));
    const Hashes theirs = hashes_of_json(text);
    const auto& ours = contents.get();
    bool same = ours && !theirs.empty();
    if (same) {
      const auto differing = differences(contents.contents(), theirs, *ours);
      same = std::all_of(differing.begin(), differing.end(),
                         [](const ContentDifference& one) { return one.only_warns; });
    }
    if (!same) {
      TROUPE_TRY(start.folder.drop_experience());
      start.notes.push_back(
          "the experience log is not used: it was sampled with other models or data, or that "
          "cannot be told; groups after the checkpoint are sampled again");
    }
  }
  contents.write_by([kept = start.folder.kept(), file](const std::string& json) {
    return kept->put(file, json, true);
  });
  return {};
}

std::string hashes_json(const Hashes& hashes,
                        const std::string& arithmetic,
                        std::optional<std::uint64_t> first) {
  nlohmann::json state = {{"sha256", hashes}};
  if (first) state["begins_after"] = *first;
  if (!arithmetic.empty()) state["arithmetic"] = arithmetic;
  return state.dump();
}

std::string arithmetic_of_json(const std::string& text) {
  const auto state = nlohmann::json::parse(text, nullptr, false);
  if (!state.is_object() || !state.contains("arithmetic")) return {};
  return state["arithmetic"].is_string() ? state["arithmetic"].get<std::string>() : std::string();
}

core::Result<std::string> check_arithmetic(const store::RunStart& start, const std::string& now) {
  if (!start.checkpoint) return std::string();
  const std::filesystem::path& folder = start.checkpoint->folder;
  const std::string before = arithmetic_of_json(start.checkpoint->state_json);
  if (before.empty() || now.empty() || before == now) return std::string();
  const std::string text = "the class of arithmetic was " + before + " and is " + now;
  std::error_code error;
  const bool own =
      std::filesystem::equivalent(folder.parent_path(), start.folder.checkpoint_folder(), error);
  if (!own) return "changed since the checkpoint: " + text;
  return core::fail(ErrorCode::kConfig,
                    folder.string() + " was made on other devices or by another build: " + text,
                    "go on where it was made, or start a branch: the same command with " +
                        store::branch_flags(folder, start.folder.path()) + " goes on from there");
}

Hashes hashes_of_json(const std::string& text) {
  const auto state = nlohmann::json::parse(text, nullptr, false);
  Hashes hashes;
  if (!state.is_object() || !state.contains("sha256") || !state["sha256"].is_object())
    return hashes;
  for (const auto& [name, hash] : state["sha256"].items()) {
    if (hash.is_string()) hashes[name] = hash.get<std::string>();
  }
  return hashes;
}

Settings settings_of(const Hashes& hashes) {
  Settings settings;
  for (const auto& [name, hash] : hashes)
    settings.emplace_back(std::string(kSetting) + name, hash);
  return settings;
}

Hashes hashes_of_settings(const Settings& settings) {
  Hashes hashes;
  for (const auto& [name, value] : settings) {
    if (name.starts_with(kSetting)) hashes[name.substr(kSetting.size())] = value;
  }
  return hashes;
}

}  // namespace troupe::session
