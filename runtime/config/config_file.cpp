// YAML to flat key = text pairs.
#include "runtime/config/config_file.hpp"

#include "runtime/config/config_flags.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/core/limits.hpp"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

namespace troupe::config {
namespace {


using core::ErrorCode;
using core::fail;
using core::Result;

constexpr int kDepth_max = 8;
constexpr std::size_t kKeys_max = 1000;

// Tells what is wrong with each pair and reads the others.
class Flattener {
 public:
  Flattener(const std::string& where, core::ErrorList& wrong) : where_(where), wrong_(wrong) {}

  std::vector<ConfigText> flatten(const YAML::Node& root) {
    if (root.IsMap()) {
      wrong_.take(visit(root, "", 0));
    } else if (!root.IsNull()) {
      wrong_.add(core::ErrorCode::kConfig, place(root) + ": expected `key: value` pairs at the top");
    }
    return std::move(out_);
  }

 private:
  std::string place(const YAML::Node& node) const {
    const YAML::Mark mark = node.Mark();
    return where_ + (mark.is_null() ? "" : ":" + std::to_string(mark.line + 1));
  }

  // A map whose name is no key is a section; every other node is a value.
  core::Result<void> visit(const YAML::Node& map, const std::string& prefix, int depth) {
    if (depth > kDepth_max) {
      return core::fail(core::ErrorCode::kConfig, place(map) + ": sections nested too deeply");
    }
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) {
        return core::fail(core::ErrorCode::kConfig, place(entry.first) + ": a key must be a plain word");
      }
      std::string name = prefix + entry.first.Scalar();
      const ConfigRow* row = config_row_of(name);
      const bool is_key = row != nullptr;
      if (is_key) name = row->name;  // written by a peer's name, perhaps
      if (entry.second.IsMap() && !is_key) {
        TROUPE_TRY(visit(entry.second, name + ".", depth + 1));
      } else {
        wrong_.take(add(name, entry.first, entry.second, is_key));
        if (seen_.size() > kKeys_max) {
          return core::fail(core::ErrorCode::kConfig, place(entry.first) + ": too many keys");
        }
      }
    }
    return {};
  }

  core::Result<void> add(const std::string& name,
                   const YAML::Node& key,
                   const YAML::Node& value,
                   bool is_key) {
    const std::string where = place(key);
    if (const auto [first, fresh] = seen_.emplace(name, where); !fresh) {
      return core::fail(core::ErrorCode::kConfig,
                  where + ": " + name + " is given twice, first at " + first->second);
    }
    if (!is_key) {
      if (is_section(name)) {
        return core::fail(core::ErrorCode::kConfig,
                    where + ": '" + name + "' is a section; its keys go below it, indented");
      }
      return core::fail(unknown_config_key(name, where));
    }
    ConfigText text{name, {}, value.IsSequence(), where};
    if (value.IsNull()) {
      return core::fail(core::ErrorCode::kConfig, where + ": " + name + " has no value");
    } else if (value.IsScalar()) {
      text.values.push_back(value.Scalar());
    } else if (value.IsSequence()) {
      for (const YAML::Node& item : value) {
        if (!item.IsScalar()) {
          return core::fail(core::ErrorCode::kConfig,
                      where + ": " + name + ": a list of plain values expected");
        }
        text.values.push_back(item.Scalar());
        if (text.values.size() > kKeys_max) {
          return core::fail(core::ErrorCode::kConfig, where + ": " + name + ": the list is too long");
        }
      }
    } else {
      return core::fail(core::ErrorCode::kConfig, where + ": " + name + " is a value, not a section");
    }
    out_.push_back(std::move(text));
    return {};
  }

  static bool is_section(const std::string& name) {
    for (const ConfigRow& row : config_table()) {
      if (row.name.starts_with(name + ".")) return true;
    }
    return false;
  }

  std::string where_;
  core::ErrorList& wrong_;
  std::map<std::string, std::string> seen_;
  std::vector<ConfigText> out_;
};

// The first line, from 1, that is indented with a tab; 0 when none is.
int line_with_tab(const std::string& text) {
  int line = 1;
  bool indent = true;
  for (const char c : text) {
    if (c == '\t' && indent) return line;
    if (c == '\n') ++line;
    indent = c == '\n' || (indent && c == ' ');
  }
  return 0;
}

// What YAML says of a tab depends on what follows it; that it is one says more.
std::string syntax_error(const YAML::ParserException& error,
                         const std::string& text,
                         const std::string& where) {
  const int tab = line_with_tab(text);
  if (tab > 0 && tab <= error.mark.line + 1) {
    return where + ":" + std::to_string(tab) + ": is indented with a tab; YAML takes spaces";
  }
  return where + ":" + std::to_string(error.mark.line + 1) + ": not valid YAML: " + error.msg;
}

std::vector<ConfigText> pairs_of(const std::string& text,
                                 const std::string& where,
                                 core::ErrorList& wrong) {
  const auto refuse = [&](std::string message) {
    wrong.add(core::ErrorCode::kConfig, std::move(message));
    return std::vector<ConfigText>{};
  };
  if (text.size() > core::limits::kConfigFile_bytes_max) {
    return refuse(where + ": too large for a configuration (" + std::to_string(text.size()) +
                  " bytes)");
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      return refuse(where + ": holds several YAML documents; one is expected");
    }
    if (documents.empty()) return {};
    return Flattener(where, wrong).flatten(documents.front());
  } catch (const YAML::ParserException& error) {
    return refuse(syntax_error(error, text, where));
  } catch (const YAML::Exception& error) {
    return refuse(where + ": not valid YAML: " + error.what());
  }
}

core::Result<std::string> text_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    return core::fail(core::ErrorCode::kConfig, file.string() + ": no such configuration file");
  }
  if (std::filesystem::is_directory(file, error)) {
    return core::fail(core::ErrorCode::kConfig, file.string() + ": is a folder; a YAML file is expected");
  }
  std::ifstream in(file, std::ios::binary);
  std::string text;
  char block[1 << 16];
  while (in && text.size() <= core::limits::kConfigFile_bytes_max) {
    in.read(block, sizeof block);
    text.append(block, static_cast<std::size_t>(in.gcount()));
  }
  if (!in.is_open() || in.bad()) {
    return core::fail(core::ErrorCode::kConfig, file.string() + ": cannot be read");
  }
  return text;
}

}  // namespace

core::Result<std::vector<ConfigText>> parse_config_text(const std::string& text,
                                                  const std::string& where) {
  core::ErrorList wrong;
  auto pairs = pairs_of(text, where, wrong);
  TROUPE_TRY(wrong.result());
  return pairs;
}

core::Result<ConfigBuilder> read_configuration(std::span<const std::string> words,
                                               std::string_view method) {
  ConfigArguments arguments = parse_config_arguments(words);
  core::ErrorList wrong = std::move(arguments.wrong);
  std::vector<ConfigText> all;
  for (const std::string& file : arguments.files) {
    const auto text = text_of(file);
    wrong.take(text);
    if (!text) continue;
    const auto pairs = pairs_of(*text, file, wrong);
    all.insert(all.end(), pairs.begin(), pairs.end());
  }
  all.insert(all.end(), arguments.settings.begin(), arguments.settings.end());
  const auto found = config_method(all, method);
  wrong.take(found);
  ConfigBuilder builder(found ? *found : "ppo");
  if (found) wrong.take(builder.set_all(all));
  TROUPE_TRY(wrong.result());
  return builder;
}

}  // namespace troupe::config
