// Reads YAML into settings, and whole configurations from files and flags.
#include "runtime/config/peer_names.hpp"
#include "runtime/config/read.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/core/limits.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

namespace troupe::config {
namespace {

constexpr int kDepth_max = 8;
constexpr std::size_t kKeys_max = 1000;

void write_flat(YAML::Emitter& out, const YAML::Node& node, int depth) {
  if (depth > kDepth_max) throw YAML::Exception(node.Mark(), "nested too deeply");
  if (node.IsMap()) {
    out << YAML::Flow << YAML::BeginMap;
    for (const auto& entry : node) {
      out << YAML::Key << entry.first.Scalar() << YAML::Value;
      write_flat(out, entry.second, depth + 1);
    }
    out << YAML::EndMap;
  } else if (node.IsSequence()) {
    out << YAML::Flow << YAML::BeginSeq;
    for (const YAML::Node& item : node)
      write_flat(out, item, depth + 1);
    out << YAML::EndSeq;
  } else {
    out << node;
  }
}

// A map on one line: {key: value}.
std::string flow_text(const YAML::Node& map) {
  YAML::Emitter out;
  write_flat(out, map, 0);
  return out.c_str();
}

YAML::Node one_entry(const YAML::Node& key, const YAML::Node& value) {
  YAML::Node map;
  map[key.Scalar()] = value;
  return map;
}

// Flattens nested maps into settings. Reports each wrong pair and reads the others.
class Flattener {
 public:
  Flattener(const std::string& where, Methods methods, Arguments& out)
      : where_(where), methods_(methods), out_(out) {}

  void flatten(const YAML::Node& root) {
    if (root.IsMap()) {
      out_.wrong.take(visit(root, "", 0));
    } else if (!root.IsNull()) {
      out_.wrong.add(refuse(place(root), ": expected `key: value` pairs at the top").error);
    }
  }

 private:
  std::string place(const YAML::Node& node) const {
    const YAML::Mark mark = node.Mark();
    return mark.is_null() ? where_ : joined(where_, ":", mark.line + 1);
  }

  // A map whose name is not a key is a section; every other node is a value.
  Result<void> visit(const YAML::Node& map, const std::string& prefix, int depth) {
    if (depth > kDepth_max) return refuse(place(map), ": sections nested too deeply");
    for (const auto& entry : map) {
      const YAML::Node &key = entry.first, &value = entry.second;
      if (!key.IsScalar()) return refuse(place(key), ": a key must be a plain word");
      std::string name = prefix + key.Scalar();
      const auto [row, peer] = meaning_of(keys(), name, methods_);
      if (row != nullptr && peer == nullptr) name = row->name;
      if (value.IsMap() && row == nullptr && peer == nullptr) {
        TROUPE_TRY(visit(value, name + ".", depth + 1));
      } else {
        out_.wrong.take(add(name, key, value, row, peer));
        if (seen_.size() > kKeys_max) return refuse(place(key), ": too many keys");
      }
    }
    return {};
  }

  Result<void> add(const std::string& name,
                   const YAML::Node& key,
                   const YAML::Node& value,
                   const Row* row,
                   const PeerName* peer) {
    const std::string where = place(key);
    if (const auto [first, fresh] = seen_.emplace(name, where); !fresh) {
      return refuse(where, ": ", name, " is given twice, first at ", first->second);
    }
    if (row == nullptr && peer == nullptr) {
      const auto in_it = [&](const Row& one) { return one.name.starts_with(name + "."); };
      const bool is_section = std::ranges::any_of(keys().rows(), in_it);
      if (is_section && value.IsNull()) return {};  // all of its keys stand in comments
      if (is_section)
        return refuse(where, ": '", name, "' is a section", kThen,
                      "its keys go below it, indented");
    }
    Setting setting{name, {}, value.IsSequence(), where};
    if (peer != nullptr && !value.IsSequence()) {
      // Others write null for what is not given, and maps for what has no counterpart.
      setting.values = {value.IsScalar() ? value.Scalar() : value.IsNull() ? "null" : "{...}"};
      return take(std::move(setting));
    }
    if (value.IsNull() && row != nullptr) return refuse(where, ": ", name, " has no value");
    const bool entries = value.IsMap() && row != nullptr && row->entries;
    if (value.IsMap() && !entries) return refuse(where, ": ", name, " is a value, not a section");
    if (entries) {
      for (const auto& entry : value)
        setting.values.push_back(flow_text(one_entry(entry.first, entry.second)));
      setting.is_list = true;
      return take(std::move(setting));
    }
    if (value.IsScalar()) setting.values.push_back(value.Scalar());
    const bool takes_maps = row != nullptr && row->entries;
    for (const YAML::Node& item : value) {  // a scalar has none
      if (!item.IsScalar() && !(takes_maps && item.IsMap()))
        return refuse(where, ": ", name, ": a list of plain values expected");
      setting.values.push_back(item.IsMap() ? flow_text(item) : item.Scalar());
      if (setting.values.size() > kKeys_max) {
        return refuse(where, ": ", name, ": the list is too long");
      }
    }
    return take(std::move(setting));
  }

  Result<void> take(Setting setting) {
    TROUPE_TRY_ASSIGN(understood, understand(keys(), methods_, std::move(setting)));
    if (!understood.note.empty()) out_.notes.push_back(std::move(understood.note));
    if (understood.setting)
      (understood.hint ? out_.hints : out_.settings).push_back(std::move(*understood.setting));
    return {};
  }

  std::string where_;
  const Methods methods_;
  Arguments& out_;
  std::map<std::string, std::string> seen_;
};

// The number of the first line that is indented with a tab, from 1; 0 if none is.
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

// The usual cause of a message of the YAML library; "" when nothing is known.
std::string_view syntax_advice(std::string_view message) {
  constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"end of map not found",
       "this line is indented otherwise than the keys above it; keys of one section stand below "
       "each other"},
      {"end of sequence not found",
       "this line is indented otherwise than the list above it; its items stand below each other"},
      {"end of map flow not found", "a { has no } after it"},
      {"end of sequence flow not found", "a [ has no ] after it"},
      {"illegal map value", "a text with ': ' in it stands between quotes"},
      {"illegal block entry", "a list begins on a line of its own, below its key"},
      {"unknown token", "a text that begins with %, @ or ` stands between quotes"},
      {"illegal EOF in scalar", "a quote has no end"},
  };
  for (const auto& [part, advice] : kKnown)
    if (message.find(part) != message.npos) return advice;
  return {};
}

// The YAML library's message about a tab depends on what follows it, so this names the tab instead.
core::Failure syntax_error(const YAML::ParserException& error,
                           const std::string& text,
                           const std::string& where) {
  const int tab = line_with_tab(text);
  if (tab > 0 && tab <= error.mark.line + 1) {
    return refuse(where, ":", tab, ": is indented with a tab", kThen, "YAML takes spaces");
  }
  return refuse(where, ":", error.mark.line + 1, ": not valid YAML: ", error.msg, kThen,
                syntax_advice(error.msg));
}

// Adds the settings that could be read to `out`, and what is wrong.
void read_text(const std::string& text, const std::string& where, Methods methods, Arguments& out) {
  const auto refused = [&](const core::Failure& failure) { out.wrong.add(failure.error); };
  if (text.size() > core::limits::kConfigFile_bytes_max) {
    return refused(refuse(where, ": too large for a configuration (", text.size(), " bytes)"));
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      return refused(refuse(where, ": holds several YAML documents", kThen, "one is expected"));
    }
    if (!documents.empty()) Flattener(where, methods, out).flatten(documents.front());
  } catch (const YAML::ParserException& error) {
    refused(syntax_error(error, text, where));
  } catch (const YAML::Exception& error) {
    refused(refuse(where, ": not valid YAML: ", error.what()));
  }
}

// Everything that was written, in the order in which it counts: files, then flags.
Arguments written_in(const Table& table, std::span<const std::string> words, Methods methods) {
  Arguments flags = read_flags(table, words, methods);
  Arguments out;
  out.wrong = std::move(flags.wrong);
  for (const std::string& file : flags.files) {
    const auto text = config_file_text(file);
    out.wrong.take(text);
    if (text) read_text(*text, file, methods, out);
  }
  std::ranges::move(flags.hints, std::back_inserter(out.hints));
  std::ranges::move(flags.settings, std::back_inserter(out.settings));
  std::ranges::move(flags.notes, std::back_inserter(out.notes));
  multiply_factors(out.settings);
  return out;
}

}  // namespace

Result<std::string> config_file_text(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    return refuse(file, ": no such configuration file", kThen, "give the path of one");
  }
  if (std::filesystem::is_directory(file, error)) {
    return refuse(file, ": is a folder", kThen, "a YAML file is expected");
  }
  // Reads one byte more than allowed, to detect a file that is too large.
  std::string text(core::limits::kConfigFile_bytes_max + 1, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) return refuse(file, ": cannot be read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

Result<std::vector<Setting>> read_yaml(const std::string& text, const std::string& where) {
  Arguments out;
  read_text(text, where, kAllMethods, out);
  TROUPE_TRY(out.wrong.result());
  return std::move(out.settings);
}

Result<Builder> read(const Table& table, std::span<const std::string> words, Methods method) {
  // What a name means depends on the method, which a file may say.
  Arguments written = written_in(table, words, method == kNoMethod ? kAllMethods : method);
  const auto found = method_of(written.settings, method);
  if (found && method == kNoMethod) written = written_in(table, words, *found);
  core::ErrorList wrong = std::move(written.wrong);
  wrong.take(found);
  Builder builder(table, found ? *found : kPpo);
  for (std::string& note : written.notes)
    builder.note(std::move(note));
  std::vector<Setting> all = std::move(written.hints);
  std::ranges::move(written.settings, std::back_inserter(all));
  if (found) wrong.take(builder.set_all(all));
  TROUPE_TRY(wrong.result());
  return builder;
}

}  // namespace troupe::config
