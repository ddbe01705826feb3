// Files to rows.
#include "runtime/data/prompt_dataset.hpp"

#include "runtime/core/limits.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <optional>
#include <utility>

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using core::fail;
using core::Result;
using Json = nlohmann::ordered_json;

constexpr int kDepth_max = 64;
constexpr std::uint64_t kFile_bytes_max = 4ull << 30;

core::Failure bad(const std::string& where, const std::string& why) {
  return fail(ErrorCode::kData, where + ": " + why);
}

// Depth is checked while parsing, before a deep document can be built (or destroyed) recursively.
Result<Json> parse_json(std::string_view text, const std::string& where) {
  bool too_deep = false;
  const Json::parser_callback_t watch = [&too_deep](int depth, Json::parse_event_t, Json&) {
    if (depth > kDepth_max) too_deep = true;
    return depth <= kDepth_max;
  };
  try {
    Json value = Json::parse(text.begin(), text.end(), watch);
    if (too_deep) {
      return bad(where, "JSON nested deeper than " + std::to_string(kDepth_max) + " levels");
    }
    return value;
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: ..." without its tag.
    std::string why = error.what();
    if (const auto tag = why.find("] "); tag != why.npos) why.erase(0, tag + 2);
    return bad(where, "not valid JSON: " + why);
  }
}

// The next line without its newline, reading at most `bytes_max` + 1 bytes of it; false at the end.
bool next_line(std::istream& in, std::string& line, std::uint64_t bytes_max) {
  constexpr int kEnd = std::char_traits<char>::eof();
  line.clear();
  int c = in.rdbuf()->sbumpc();
  if (c == kEnd) return false;
  for (; c != kEnd && c != '\n' && line.size() <= bytes_max; c = in.rdbuf()->sbumpc()) {
    line += static_cast<char>(c);
  }
  return true;
}

std::string replaced(const std::string& pattern, const std::string& prompt) {
  const auto hole = pattern.find("{}");
  if (hole == pattern.npos) return prompt;
  return pattern.substr(0, hole) + prompt + pattern.substr(hole + 2);
}

std::string keys_of(const Json& row) {
  std::string out;
  for (const auto& [key, value] : row.items())
    out += (out.empty() ? "" : ", ") + key;
  return out.size() > 200 ? out.substr(0, 200) + "..." : out;
}

Result<std::vector<ChatMessage>> messages_of(const Json& list,
                                             const std::string& where,
                                             const std::string& key) {
  std::vector<ChatMessage> out;
  for (const Json& item : list) {
    if (!item.is_object() || !item.contains("role") || !item.contains("content") ||
        !item["role"].is_string() || !item["content"].is_string()) {
      return bad(where, "column '" + key +
                            "': a chat message must be {\"role\": text, \"content\": text}");
    }
    out.push_back({item["role"].get<std::string>(), item["content"].get<std::string>()});
  }
  if (out.empty()) return bad(where, "column '" + key + "': the list of messages is empty");
  return out;
}

Result<std::string> label_of(const Json& row, const std::string& where, const std::string& key) {
  const auto found = row.find(key);
  if (found == row.end()) {
    return bad(where,
               "no column '" + key + "' (there is: " + keys_of(row) + "); set --data.label_key");
  }
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number() || found->is_boolean()) return found->dump();
  return bad(where, "column '" + key + "' must be text or a number");
}

Result<PromptRow> row_of(const Json& row, const std::string& where, const DatasetColumns& columns) {
  if (!row.is_object()) return bad(where, "expected a JSON object");
  PromptRow out;
  out.where = where;
  const auto input = row.find(columns.input_key);
  if (input == row.end()) {
    return bad(where, "no column '" + columns.input_key + "' (there is: " + keys_of(row) +
                          "); set --data.input_key");
  }
  if (input->is_string()) {
    out.prompt = input->get<std::string>();
    if (out.prompt.empty()) return bad(where, "column '" + columns.input_key + "' is empty");
    if (columns.as_chat) {
      out.messages.push_back({"user", std::exchange(out.prompt, {})});
    } else if (!columns.input_template.empty()) {
      out.prompt = replaced(columns.input_template, out.prompt);
    }
  } else if (input->is_array()) {
    if (!columns.as_chat) {
      return bad(where, "column '" + columns.input_key +
                            "' is a list of messages; set --data.apply_chat_template");
    }
    TROUPE_TRY_ASSIGN(messages, messages_of(*input, where, columns.input_key));
    out.messages = std::move(messages);
  } else {
    return bad(where, "column '" + columns.input_key + "' must be text or a list of messages");
  }
  if (!columns.label_key.empty()) {
    TROUPE_TRY_ASSIGN(label, label_of(row, where, columns.label_key));
    out.label = std::move(label);
  }
  out.columns_json = row.dump(-1, ' ', false, Json::error_handler_t::replace);
  return out;
}

class Loader {
 public:
  explicit Loader(const DatasetColumns& columns) : columns_(columns) {}

  Result<void> read(const fs::path& file) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) {
      return fail(ErrorCode::kNotFound, "dataset " + file.string() +
                                            ": no such file; set --data.prompt_dataset to a .jsonl "
                                            "or .json file");
    }
    if (fs::file_size(file, error) > kFile_bytes_max) {
      return bad(file.string(), "larger than 4 GiB; split it and give the parts");
    }
    std::ifstream in(file, std::ios::binary);
    if (!in) return bad(file.string(), "cannot be read; check its permissions");
    return file.extension() == ".json" ? read_array(in, file) : read_lines(in, file);
  }

  bool full() const { return columns_.max_samples > 0 && rows_.size() >= columns_.max_samples; }
  std::vector<PromptRow> take() { return std::move(rows_); }

 private:
  Result<void> read_lines(std::istream& in, const fs::path& file) {
    std::string line;
    constexpr std::uint64_t kBytes_max = core::limits::kJsonLine_bytes_max;
    for (std::uint64_t number = 1; !full() && next_line(in, line, kBytes_max); ++number) {
      const std::string where = file.string() + ":" + std::to_string(number);
      if (line.size() > kBytes_max) {
        return bad(where, "line longer than " + std::to_string(kBytes_max >> 20) + " MiB");
      }
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      TROUPE_TRY_ASSIGN(json, parse_json(line, where));
      TROUPE_TRY_ASSIGN(row, row_of(json, where, columns_));
      rows_.push_back(std::move(row));
    }
    return {};
  }

  Result<void> read_array(std::istream& in, const fs::path& file) {
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    TROUPE_TRY_ASSIGN(json, parse_json(text, file.string()));
    if (!json.is_array()) {
      return bad(file.string(),
                 "expected a list of objects; a file with one object a line must be "
                 "called .jsonl");
    }
    std::uint64_t number = 0;
    for (const Json& item : json) {
      if (full()) break;
      const std::string where = file.string() + " item " + std::to_string(++number);
      TROUPE_TRY_ASSIGN(row, row_of(item, where, columns_));
      rows_.push_back(std::move(row));
    }
    return {};
  }

  const DatasetColumns& columns_;
  std::vector<PromptRow> rows_;
};

}  // namespace

Result<std::vector<PromptRow>> load_prompts(const std::string& files,
                                            const DatasetColumns& columns) {
  Loader loader(columns);
  std::string_view rest = files;
  while (!rest.empty() && !loader.full()) {
    const auto comma = rest.find(',');
    TROUPE_TRY(loader.read(fs::path(rest.substr(0, comma))));
    rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
  }
  std::vector<PromptRow> rows = loader.take();
  if (rows.empty()) return bad("dataset " + files, "holds no rows; add prompts or choose another");
  return rows;
}

}  // namespace troupe::data
