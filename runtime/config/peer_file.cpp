#include "runtime/config/peer_file.hpp"

#include "runtime/config/peer_names.hpp"
#include "runtime/config/peer_yaml.hpp"
#include "runtime/config/read.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/config/trl_settings.hpp"
#include "runtime/core/bool_word.hpp"
#include "runtime/core/split.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace troupe::config {
namespace {

namespace fs = std::filesystem;
using core::Result;

struct Trainer {
  std::string_view name;
  std::string_view title;
  bool yaml;   // its users have YAML or JSON files
  bool hydra;  // its command lines are key=value words
  bool python = false;  // its users write Python scripts
};
constexpr Trainer kTrainers[] = {{"openrlhf", "OpenRLHF", false, false},
                                 {"trl", "TRL", true, false, true},
                                 {"verl", "verl", true, true}};

struct TrainerProgram {
  std::string_view peer;
  Methods method;
  std::string_view names;
  std::string_view keys;
};
#define PROGRAM(peer, method, names, keys) {peer, method, names, keys},
constexpr TrainerProgram kPrograms[] = {
#include "runtime/config/peer_programs.def"
};

// Switches of a program that are methods here.
struct Switch {
  Methods of, becomes;
  std::string_view names;
};
constexpr Switch kSwitches[] = {{kDpo, kIpo, "model.ipo_enable ipo"},
                                {kSft, kPretrain, "model.pretrain_mode_enable pretrain_mode"}};

bool is_named(std::string_view names, std::string_view name) {
  return std::ranges::count(core::split(names, " "), name) > 0;
}

// The program that the words from the first on name, and how many words that takes.
const TrainerProgram* program_at(std::span<const ShellWord> words, std::string_view peer) {
  const std::string& word = words.front().text;
  for (const TrainerProgram& program : kPrograms) {
    if (program.peer != peer) continue;
    for (const std::string_view name : core::split(program.names, " ")) {
      const bool two = name.starts_with("trl:");
      if (two && word == "trl" && words.size() > 1 && words[1].text == name.substr(4))
        return &program;
      if (!two && (word == name || word.ends_with(joined("/", name)))) return &program;
    }
  }
  return nullptr;
}

std::string programs_of(std::string_view peer) {
  std::string out;
  for (const TrainerProgram& program : kPrograms) {
    if (program.peer != peer) continue;
    std::string first(core::split(program.names, " ").front());
    std::ranges::replace(first, ':', ' ');
    out += joined(out.empty() ? "" : ", ", first);
  }
  return out;
}

// The method of a program with its switches, which are taken out.
Methods method_with_switches(Methods method, std::vector<PeerSetting>& settings) {
  for (const Switch& one : kSwitches) {
    const auto found = std::ranges::find_if(settings, [&](const PeerSetting& setting) {
      return is_named(one.names, setting.written.name) && setting.written.values.size() == 1 &&
             core::bool_word(setting.written.values[0]).value_or(false);
    });
    if (one.of != method || found == settings.end()) continue;
    settings.erase(found);
    return one.becomes;
  }
  return method;
}

std::vector<Setting> settings_of_program(const TrainerProgram& program) {
  std::vector<Setting> out;
  for (const std::string_view pair : core::split(program.keys, " ")) {
    const auto equals = pair.find('=');
    if (equals == pair.npos) continue;
    const std::string where(core::split(program.names, " ").front());
    out.push_back({std::string(pair.substr(0, equals)),
                   {std::string(pair.substr(equals + 1))},
                   false,
                   where});
  }
  return out;
}

// Reads the words behind a program.
class TrainerWords {
 public:
  TrainerWords(std::span<const ShellWord> words, const Trainer& peer, std::string where)
      : words_(words), peer_(peer), where_(std::move(where)) {}

  std::vector<PeerSetting> all() {
    while (next_ < words_.size()) {
      const ShellWord& word = words_[next_++];
      if (is_call_argument(word)) continue;
      if (word.text.starts_with("--")) {
        flag(word);
      } else if (peer_.hydra && word.text.find('=') != std::string::npos) {
        hydra(word);
      }
    }
    return std::move(out_);
  }

 private:
  // "$@": what a user would add behind the script's name.
  static bool is_call_argument(const ShellWord& word) {
    return word.text == word.unknown && (word.text == "$@" || word.text == "$*");
  }
  PeerSetting& add(std::string name, const ShellWord& word) {
    const std::string place = joined(where_, ":", word.line);
    return out_.emplace_back(PeerSetting{{std::move(name), {}, false, place}, true, {}, {}});
  }
  static void take(PeerSetting& setting, std::string value, const ShellWord& word) {
    setting.written.values.push_back(std::move(value));
    if (setting.unknown.empty()) setting.unknown = word.unknown;
  }

  void flag(const ShellWord& word) {
    const auto equals = word.text.find('=');
    PeerSetting& setting =
        add(word.text.substr(2, equals == word.text.npos ? equals : equals - 2), word);
    if (equals != word.text.npos) return take(setting, word.text.substr(equals + 1), word);
    for (; next_ < words_.size() && !words_[next_].text.starts_with("--"); ++next_) {
      if (!is_call_argument(words_[next_])) take(setting, words_[next_].text, words_[next_]);
    }
    if (setting.written.values.empty()) setting.written.values = {"true"};
  }

  void hydra(const ShellWord& word) {
    const std::size_t begin = std::min(word.text.find_first_not_of('+'), word.text.size());
    const auto equals = word.text.find('=');
    if (equals <= begin) return;
    PeerSetting& setting = add(word.text.substr(begin, equals - begin), word);
    std::vector<std::string> values = hydra_values(word.text.substr(equals + 1));
    setting.is_flag = false;
    setting.written.is_list = word.text.substr(equals + 1).starts_with('[');
    for (std::string& value : values)
      take(setting, std::move(value), word);
    if (setting.unknown.empty()) setting.unknown = word.unknown;
  }

  // ["a", 'b'] is a list; quotes around a value are not its own.
  static std::vector<std::string> hydra_values(std::string_view text) {
    const auto bare = [](std::string_view value) {
      value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
      value = value.substr(0, value.find_last_not_of(' ') + 1);
      const bool quoted =
          value.size() > 1 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
      return std::string(quoted ? value.substr(1, value.size() - 2) : value);
    };
    if (!text.starts_with('[') || !text.ends_with(']')) return {bare(text)};
    std::vector<std::string> out;
    for (const std::string_view item : core::split(text.substr(1, text.size() - 2), ","))
      if (!bare(item).empty()) out.push_back(bare(item));
    return out;
  }

  std::span<const ShellWord> words_;
  const Trainer& peer_;
  std::string where_;
  std::size_t next_ = 0;
  std::vector<PeerSetting> out_;
};

bool is_yaml(const fs::path& file) {
  const std::string ending = file.extension().string();
  return ending == ".yaml" || ending == ".yml" || ending == ".json";
}

// The command of the trainer in a script.
struct Found {
  const TrainerProgram* program = nullptr;  // none: the file has settings alone
  std::span<const ShellWord> before, words;  // in front of it, and behind
};

// The setting of one of these flags in front of a program; none: it is not given.
std::optional<PeerSetting> launcher_flag(std::span<const ShellWord> launcher,
                                         std::span<const std::string_view> flags,
                                         const std::string& where) {
  for (std::size_t i = 0; i < launcher.size(); ++i) {
    const std::string& word = launcher[i].text;
    const auto equals = word.find('=');
    if (std::ranges::count(flags, std::string_view(word).substr(0, equals)) == 0) continue;
    const bool apart = equals == word.npos;
    if (apart && i + 1 == launcher.size()) return std::nullopt;
    const ShellWord& value = apart ? launcher[i + 1] : launcher[i];
    const std::string number = apart ? value.text : word.substr(equals + 1);
    const std::string place = joined(where, ":", launcher[i].line);
    return PeerSetting{{"num_processes", {number}, false, place}, true, value.unknown, {}};
  }
  return std::nullopt;
}

// How many processes a launcher is told to start, as a setting; none: it is not told.
std::optional<PeerSetting> processes_of(std::span<const ShellWord> launcher,
                                        const std::string& where) {
  constexpr std::string_view kProcesses[] = {"--num_processes", "--num-processes", "--num_gpus",
                                             "--nproc_per_node", "--nproc-per-node"};
  constexpr std::string_view kNodes[] = {"--nnodes", "--num_nodes"};
  auto out = launcher_flag(launcher, kProcesses, where);
  const auto nodes = launcher_flag(launcher, kNodes, where);
  if (!out || !nodes) return out;
  const auto each = core::number_of<std::int64_t>(out->written.values[0]);
  const auto times = core::number_of<std::int64_t>(nodes->written.values[0]);
  if (each && times) {
    out->written.values[0] = std::to_string(*each * *times);
  } else if (out->unknown.empty()) {
    out->unknown = (each ? *nodes : *out).written.values[0];
  }
  return out;
}

// Whether a command is settings alone, without what starts a trainer.
bool only_settings(const ShellCommand& command, const Trainer& peer) {
  const std::string& first = command.front().text;
  const auto equals = first.find('=');
  return first.starts_with("--") ||
         (peer.hydra && equals != first.npos && first.find('.') < equals);
}

Result<Found> find_command(const std::vector<ShellCommand>& commands,
                           const Trainer& peer,
                           const std::string& where) {
  Found found;
  int line = 0;
  for (const ShellCommand& command : commands) {
    for (std::size_t i = 0; i < command.size(); ++i) {
      const std::span<const ShellWord> rest = std::span(command).subspan(i);
      const TrainerProgram* const program = program_at(rest, peer.name);
      if (program == nullptr) continue;
      if (found.program != nullptr) {
        return refuse(where, ": has several commands of ", peer.title, ", in lines ", line, " and ",
                      rest.front().line, kThen, "keep one of them in the file");
      }
      const std::size_t own = rest.front().text == "trl" ? 2 : 1;
      found = {program, std::span(command).first(i), rest.subspan(own)};
      line = rest.front().line;
      break;
    }
  }
  return found;
}

Result<void> read_into(PeerFile& out, const fs::path& file, const Table& table) {
  TROUPE_TRY_ASSIGN(text, config_file_text(file.string()));
  TROUPE_TRY_ASSIGN(settings, peer_yaml(table, text, file.string(),
                                        out.method == kNoMethod ? kAllMethods : out.method));
  std::ranges::move(settings, std::back_inserter(out.settings));
  return {};
}

// A YAML file that a command names: it counts before the command's own flags.
Result<void> take_named_file(PeerFile& out, const fs::path& script, const Table& table) {
  const auto named = std::ranges::find_if(
      out.settings, [](const PeerSetting& one) { return one.written.name == "config"; });
  if (named == out.settings.end()) return {};
  const PeerSetting setting = *named;
  out.settings.erase(named);
  const std::string& where = setting.written.where;
  if (!setting.unknown.empty() || setting.written.values.size() != 1)
    return refuse(where, ": --config: which file it is cannot be read here", kThen,
                  "write its path");
  fs::path file = setting.written.values[0];
  std::error_code error;
  const fs::path beside = script.parent_path() / file;
  if (fs::exists(beside, error)) file = beside;
  std::vector<PeerSetting> flags = std::exchange(out.settings, {});
  if (const auto read = read_into(out, file, table); !read)
    return core::fail(read.error().within(where));
  std::ranges::move(flags, std::back_inserter(out.settings));
  return {};
}

// The program that a Python script stands for, by the settings that it makes.
Result<void> take_python(PeerFile& out,
                         const Trainer& peer,
                         const fs::path& file,
                         const PythonReader& python) {
  TROUPE_TRY_ASSIGN(script, python(file));
  const std::string where = file.string();
  if (script.configs.size() > 1) {
    return refuse(where, ": makes several settings of ", peer.title, ", ", script.configs[0].name,
                  " in line ", script.configs[0].line, " and ", script.configs[1].name, " in line ",
                  script.configs[1].line, kThen, "keep one of them in the file");
  }
  if (script.configs.empty()) {
    return refuse(where, ": makes no settings of ", peer.title,
                  " by a call such as DPOConfig(learning_rate=1e-6)", kThen,
                  "a script that takes flags is read from the shell script that gives them");
  }
  const std::string& name = script.configs[0].name;
  const auto program = std::ranges::find_if(kPrograms, [&](const TrainerProgram& one) {
    return one.peer == peer.name && is_named(one.names, name);
  });
  if (program == std::end(kPrograms))
    return refuse(where, ":", script.configs[0].line, ": ", name, " has no counterpart");
  out.program = name;
  out.implied = settings_of_program(*program);
  std::ranges::move(script.settings, std::back_inserter(out.settings));
  const Methods said = method_with_switches(program->method, out.settings);
  if (out.method == kNoMethod) out.method = said;
  return {};
}

// A Python script that a command starts, beside the shell script or here, and what is in front of
// it.
struct Started {
  fs::path file;
  std::span<const ShellWord> before;
};
std::vector<Started> pythons_of(const std::vector<ShellCommand>& commands, const fs::path& script) {
  std::vector<Started> out;
  for (const ShellCommand& command : commands) {
    for (std::size_t i = 0; i < command.size(); ++i) {
      const fs::path named = command[i].text;
      if (named.extension() != ".py" || !command[i].unknown.empty()) continue;
      std::error_code error;
      for (const fs::path& file : {script.parent_path() / named, named}) {
        if (!fs::is_regular_file(file, error)) continue;
        out.push_back({file, std::span(command).first(i)});
        break;
      }
    }
  }
  return out;
}

// The settings of the first of the scripts that makes some; else what is wrong with the first.
Result<void> take_pythons(PeerFile& out,
                          const Trainer& peer,
                          const std::vector<Started>& all,
                          const std::string& where,
                          const PythonReader& python) {
  Result<void> first;
  for (const Started& started : all) {
    const auto taken = take_python(out, peer, started.file, python);
    if (taken) {
      if (auto processes = processes_of(started.before, where))
        out.settings.insert(out.settings.begin(), std::move(*processes));
      return {};
    }
    if (first) first = core::fail(taken.error().within(where));
  }
  return first;
}

Result<void> read_command(PeerFile& out,
                          const Trainer& peer,
                          const fs::path& file,
                          const Environment& environment,
                          const PythonReader& python) {
  const std::string where = file.string();
  TROUPE_TRY_ASSIGN(text, config_file_text(where));
  TROUPE_TRY_ASSIGN(commands, read_script(text, where, environment));
  TROUPE_TRY_ASSIGN(found, find_command(commands, peer, where));
  if (found.program != nullptr) {
    std::string name(core::split(found.program->names, " ").front());
    std::ranges::replace(name, ':', ' ');
    out.program = std::move(name);
    out.implied = settings_of_program(*found.program);
    out.settings = TrainerWords(found.words, peer, where).all();
    if (auto processes = processes_of(found.before, where); processes && peer.python)
      out.settings.insert(out.settings.begin(), std::move(*processes));
    const Methods said = method_with_switches(found.program->method, out.settings);
    if (out.method == kNoMethod) out.method = said;
    return {};
  }
  const auto started = peer.python ? pythons_of(commands, file) : std::vector<Started>();
  if (!started.empty()) return take_pythons(out, peer, started, where, python);
  for (const ShellCommand& command : commands) {
    if (!only_settings(command, peer)) continue;
    std::vector<PeerSetting> more = TrainerWords(command, peer, where).all();
    std::ranges::move(more, std::back_inserter(out.settings));
  }
  if (!out.settings.empty()) return {};
  return refuse(where, ": no command of ", peer.title, " in it (", programs_of(peer.name), ")",
                kThen, "a file of flags alone needs --method",
                peer.yaml ? "; a YAML or JSON file ends in .yaml or .json" : "");
}

}  // namespace

Result<PeerFile> read_peer_file(const Table& table,
                                std::string_view name,
                                const fs::path& file,
                                Methods asked,
                                const Environment& environment,
                                const PythonReader& python) {
  const auto peer = std::ranges::find(kTrainers, name, &Trainer::name);
  if (peer == std::end(kTrainers))
    return refuse("there is no trainer '", name, "' to read from", kThen,
                  "use openrlhf, trl or verl");
  PeerFile out;
  out.title = peer->title;
  out.method = asked;
  if (peer->yaml && is_yaml(file)) {
    if (peer->hydra && out.method == kNoMethod) out.method = kPpo;  // verl's files are of PPO
    TROUPE_TRY(read_into(out, file, table));
  } else if (peer->python && file.extension() == ".py") {
    TROUPE_TRY(take_python(out, *peer, file, python));
  } else {
    TROUPE_TRY(read_command(out, *peer, file, environment, python));
    if (peer->hydra && out.method == kNoMethod) out.method = kPpo;
    if (peer->yaml && !peer->hydra) TROUPE_TRY(take_named_file(out, file, table));
  }
  if (out.method == kNoMethod) {
    return refuse(file.string(), ": does not say what is trained", kThen, "give --method, one of ",
                  method_names(kAllMethods), " (grpo and rloo are ppo)");
  }
  if (out.settings.empty()) return refuse(file.string(), ": has no setting in it");
  if (peer->python) join_trl_settings(out);
  return out;
}

}  // namespace troupe::config
