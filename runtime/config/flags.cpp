// Reads a command line of YAML files, `--key value` flags and `key=value` words.
#include "runtime/config/peer_names.hpp"
#include "runtime/config/read.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/core/bool_word.hpp"
#include "runtime/core/split.hpp"

#include <algorithm>
#include <utility>

namespace troupe::config {
namespace {

constexpr std::string_view kWhere = "the command line";

// Pluses in front of `key=value`, as Hydra has them for new keys.
std::size_t pluses(std::string_view word) {
  return std::min(word.find_first_not_of('+'), word.size());
}

// Whether a word has the form `key=value`.
bool is_setting(std::string_view word) {
  word.remove_prefix(pluses(word));
  const auto is_key_letter = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  };
  const auto equals = word.find('=');
  return equals != word.npos && equals > 0 &&
         std::ranges::all_of(word.substr(0, equals), is_key_letter);
}

std::vector<std::string> split_items(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<std::string> out;
  for (std::string_view item : core::split(text, ",")) {
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    out.emplace_back(item.substr(0, item.find_last_not_of(' ') + 1));
  }
  return out;
}

class FlagReader {
 public:
  FlagReader(const Table& table, std::span<const std::string> words, Methods methods)
      : table_(table), words_(words), methods_(methods) {}

  Arguments read_all() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      const auto equals = word.find('=');
      const bool dashes = word.starts_with("--");
      if (equals != word.npos && (dashes || is_setting(word))) {
        const std::size_t begin = dashes ? 2 : pluses(word);
        take(word.substr(begin, equals - begin), {word.substr(equals + 1)});
      } else if (dashes) {
        take_words(word.substr(2));
      } else if (word.starts_with('-') && word.size() > 1) {
        wrong(refuse(kWhere, ": unknown flag '", word, "'").error);
      } else {
        out_.files.push_back(word);
      }
    }
    return std::move(out_);
  }

 private:
  void wrong(core::Error error) { out_.wrong.add(std::move(error)); }

  // Reads `--name`, whose values are the words that follow.
  void take_words(const std::string& name) {
    const Meaning meaning = meaning_of(table_, name, methods_);
    const bool more = next_ < words_.size();
    if (meaning.is_switch()) {
      const bool given = more && core::bool_word(words_[next_]);
      return take(name, {given ? words_[next_++] : "true"});
    }
    const Row* row = meaning.row;
    if (row == nullptr) return take(name, loose_values());
    std::vector<std::string> values;
    const bool commas = more && words_[next_].find(',') != std::string::npos;
    const std::size_t count = commas ? 1 : std::max<std::size_t>(1, row->count);
    while (values.size() < count) {
      if (next_ == words_.size() || words_[next_].starts_with("--")) {
        const std::string range = row->range_text();
        return wrong(refuse(kWhere, ": --", name, " needs ",
                            count == 1 ? "a value" : joined(count, " values"), " (",
                            row->type_name(), range.empty() ? "" : ", ", range, ")")
                         .error);
      }
      values.push_back(words_[next_++]);
    }
    // OpenRLHF's lists are words apart: --reward_tokens + -
    while (row->is<Texts>() && !commas && next_ < words_.size() && is_loose_value(words_[next_]))
      values.push_back(words_[next_++]);
    take(name, std::move(values));
  }

  // The words that follow a flag of which nothing is set; "true" if there are none.
  std::vector<std::string> loose_values() {
    std::vector<std::string> values;
    while (next_ < words_.size() && is_loose_value(words_[next_]))
      values.push_back(words_[next_++]);
    if (values.empty()) values.emplace_back("true");
    return values;
  }

  // Whether a word may be a value of a list, or of an unknown flag.
  static bool is_loose_value(std::string_view word) {
    return !word.starts_with("--") && !is_setting(word) && !word.ends_with(".yaml") &&
           !word.ends_with(".yml");
  }

  void take(const std::string& written, std::vector<std::string> values) {
    auto understood =
        understand(table_, methods_, {written, std::move(values), false, std::string(kWhere)});
    if (!understood) return wrong(understood.error());
    if (!understood->note.empty()) out_.notes.push_back(std::move(understood->note));
    if (!understood->setting) return;
    values = std::move(understood->setting->values);
    const Row* row = table_.find(understood->setting->name);
    values = flag_values(*row, std::move(values));
    if (row->is<Texts>()) {
      // A second --rollout.stop adds to the first.
      for (Setting& setting : out_.settings) {
        if (setting.name != row->name) continue;
        return std::ranges::move(values, std::back_inserter(setting.values)), void();
      }
    }
    auto& place = understood->hint ? out_.hints : out_.settings;
    place.push_back({row->name, std::move(values), row->is_list(), std::string(kWhere),
                     std::move(understood->setting->factor)});
  }

  const Table& table_;
  std::span<const std::string> words_;
  const Methods methods_;
  std::size_t next_ = 0;
  Arguments out_;
};

}  // namespace

std::string unescape_flag(std::string_view text) {
  constexpr std::string_view kLetters = "ntr\\", kMeant = "\n\t\r\\";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    const auto letter = escape ? kLetters.find(text[i + 1]) : kLetters.npos;
    out += letter == kLetters.npos ? text[i] : kMeant[letter];
    if (letter != kLetters.npos) {
      ++i;
    } else if (escape) {
      out += text[++i];
    }
  }
  return out;
}

std::vector<std::string> flag_values(const Row& row, std::vector<std::string> written) {
  if (row.escapes) std::ranges::transform(written, written.begin(), unescape_flag);
  // Commas separate items, except in texts with escapes, which may contain one.
  if (row.is_list() && !row.escapes && written.size() == 1) return split_items(written.front());
  return written;
}

Arguments read_flags(const Table& table, std::span<const std::string> words, Methods methods) {
  return FlagReader(table, words, methods).read_all();
}

}  // namespace troupe::config
