// Reading of dotted flags.
#include "runtime/config/config_flags.hpp"

#include "runtime/core/bool_word.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe::config {
namespace {

constexpr std::string_view kWhere = "the command line";

bool is_key(std::string_view text) {
  return !text.empty() && text.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789._-") == std::string_view::npos;
}

// `key=value`.
bool is_setting(std::string_view word) {
  const auto equals = word.find('=');
  return equals != word.npos && is_key(word.substr(0, equals));
}

std::vector<std::string> split_items(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<std::string> out;
  while (true) {
    const auto comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' '))
      item.remove_prefix(1);
    while (item.ends_with(' '))
      item.remove_suffix(1);
    out.emplace_back(item);
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

class Reader {
 public:
  explicit Reader(std::span<const std::string> words) : words_(words) {}

  ConfigArguments read() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      const auto equals = word.find('=');
      if (word.starts_with("--")) {
        const std::string name = word.substr(2, equals == word.npos ? equals : equals - 2);
        if (equals == word.npos) {
          take_words(name);
        } else {
          take(name, {word.substr(equals + 1)});
        }
      } else if (is_setting(word)) {
        take(word.substr(0, equals), {word.substr(equals + 1)});
      } else if (word.starts_with('-') && word.size() > 1) {
        out_.wrong.add(core::ErrorCode::kConfig, std::string(kWhere) + ": unknown flag '" + word + "'");
      } else {
        out_.files.push_back(word);
      }
    }
    return std::move(out_);
  }

 private:
  // `--name` with its values in the words that follow.
  void take_words(const std::string& name) {
    const ConfigRow* row = config_row_of(name);
    if (row == nullptr) {
      out_.wrong.add(unknown_config_key(name, kWhere));
      while (next_ < words_.size() && is_loose_value(words_[next_]))
        ++next_;
      return;
    }
    if (row->is_bool()) {
      const bool given = next_ < words_.size() && core::bool_word(words_[next_]);
      return take(name, {given ? words_[next_++] : "true"});
    }
    std::vector<std::string> values;
    const bool commas = next_ < words_.size() && words_[next_].find(',') != std::string::npos;
    const std::size_t count = commas ? 1 : std::max<std::size_t>(1, row->list_size);
    while (values.size() < count) {
      if (next_ == words_.size() || words_[next_].starts_with("--")) {
        out_.wrong.add(core::ErrorCode::kConfig,
                       std::string(kWhere) + ": --" + name + " needs " +
                           (count == 1 ? "a value" : std::to_string(count) + " values") + " (" +
                           row->type_name() + (row->range_text().empty() ? "" : ", ") +
                           row->range_text() + ")");
        return;
      }
      values.push_back(words_[next_++]);
    }
    take(name, std::move(values));
  }

  // A word that may belong to an unknown flag.
  static bool is_loose_value(std::string_view word) {
    return !word.starts_with("--") && !is_setting(word) && !word.ends_with(".yaml") &&
           !word.ends_with(".yml");
  }

  void take(const std::string& written, std::vector<std::string> values) {
    const ConfigRow* row = config_row_of(written);
    if (row == nullptr) return out_.wrong.add(unknown_config_key(written, kWhere));
    const std::string name(row->name);
    if (row->escapes) {
      for (std::string& value : values)
        value = unescape_flag(value);
    }
    const bool numbers = row->field.index() == 4;
    if (numbers && values.size() == 1) values = split_items(values.front());
    if (row->is_list() && !numbers) {
      // Words are separated by commas; a stop text may hold one.
      if (!row->escapes && values.size() == 1) values = split_items(values.front());
      // A second --rollout.stop adds to the first.
      for (ConfigText& setting : out_.settings) {
        if (setting.name == name) {
          for (std::string& value : values)
            setting.values.push_back(std::move(value));
          return;
        }
      }
    }
    out_.settings.push_back({name, std::move(values), row->is_list(), std::string(kWhere)});
  }

  std::span<const std::string> words_;
  std::size_t next_ = 0;
  ConfigArguments out_;
};

}  // namespace

std::string unescape_flag(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case '\\':
        out += '\\';
        break;
      default:
        out += '\\', out += text[i];
    }
  }
  return out;
}

ConfigArguments parse_config_arguments(std::span<const std::string> words) {
  return Reader(words).read();
}

}  // namespace troupe::config
