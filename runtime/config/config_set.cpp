// Parsing of single values and the checks of their rows.
#include "runtime/config/config_set.hpp"

#include "runtime/core/bool_word.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/core/error_list.hpp"

#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

namespace troupe::config {
namespace {

// The start of every message: key, value as written, place.
std::string about(const ConfigRow& row, const std::string& written, const ConfigText& text) {
  return text.where + ": " + std::string(row.name) + " = " + written + ": ";
}

core::Failure bad(const ConfigRow& row,
            const std::string& written,
            const ConfigText& text,
            const std::string& why) {
  return core::fail(core::ErrorCode::kConfig, about(row, written, text) + why);
}

std::string expected_range(const ConfigRow& row) {
  std::string out = "expected " + row.range_text();
  if (!row.unit_text.empty() && row.min != row.max) out += " " + std::string(row.unit_text);
  return out;
}

// "; did you mean 'x'?" with the choice that is nearest to what was written, or nothing.
std::string meant_choice(const ConfigRow& row, std::string_view written) {
  std::vector<std::string_view> words;
  for (const ConfigChoice& choice : row.choices) {
    words.push_back(choice.name);
    if (!choice.alias.empty()) words.push_back(choice.alias);
  }
  const std::string_view near = core::nearest_word(written, words);
  return near.empty() ? "" : "; did you mean '" + std::string(near) + "'?";
}

core::Result<void> check_range(const ConfigRow& row,
                         double value,
                         const std::string& written,
                         const ConfigText& text) {
  const bool low = row.above_min ? value <= row.min : value < row.min;
  if (!low && !(value > row.max)) return {};
  std::string why = "out of range, " + expected_range(row);
  if (row.min == row.max) why += " (" + std::string(row.help_text) + ")";
  return bad(row, written, text, why);
}

core::Result<void> parse(const ConfigRow& row,
                   const std::string& written,
                   const ConfigText& text,
                   bool& out) {
  const auto meant = core::bool_word(written);
  if (!meant) return bad(row, written, text, "expected true or false");
  out = *meant;
  return {};
}

template <class Number>
core::Result<void> parse_number(const ConfigRow& row,
                          const std::string& written,
                          const ConfigText& text,
                          std::string_view kind,
                          Number& out) {
  std::string_view digits = written;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) {
    return bad(row, written, text, "too large or too small for a number, " + expected_range(row));
  }
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    return bad(row, written, text, "expected " + std::string(kind) + ", " + row.range_text());
  }
  if constexpr (std::is_same_v<Number, double>) {
    if (!std::isfinite(value)) return bad(row, written, text, "expected a finite number");
  }
  TROUPE_TRY(check_range(row, static_cast<double>(value), written, text));
  out = value;
  return {};
}

core::Result<void> parse(const ConfigRow& row,
                   const std::string& written,
                   const ConfigText& text,
                   std::int64_t& out) {
  return parse_number(row, written, text, "a whole number", out);
}

core::Result<void> parse(const ConfigRow& row,
                   const std::string& written,
                   const ConfigText& text,
                   double& out) {
  return parse_number(row, written, text, "a number", out);
}

core::Result<void> parse(const ConfigRow& row,
                   const std::string& written,
                   const ConfigText& text,
                   std::string& out) {
  if (row.choices.empty()) {
    out = written;
    return {};
  }
  for (const ConfigChoice& choice : row.choices) {
    if (written == choice.name || (!choice.alias.empty() && written == choice.alias)) {
      out = choice.name;
      return {};
    }
  }
  return bad(row, written, text,
             "expected one of " + row.range_text() + meant_choice(row, written));
}

template <class Item>
core::Result<void> assign(const ConfigRow& row,
                    const ConfigText& text,
                    const std::vector<Item>& unset,
                    std::vector<Item>& out) {
  std::vector<Item> items;
  for (const std::string& written : text.values) {
    Item item{};
    TROUPE_TRY(parse(row, written, text, item));
    items.push_back(std::move(item));
  }
  // An empty list is the default of keys that may be unset.
  const bool unsets = items.empty() && unset.empty();
  if (row.list_size != 0 && items.size() != row.list_size && !unsets) {
    return core::fail(core::ErrorCode::kConfig, text.where + ": " + std::string(row.name) + ": expected " +
                                        std::to_string(row.list_size) + " values, got " +
                                        std::to_string(items.size()));
  }
  if constexpr (std::is_same_v<Item, std::string>) {
    for (const std::string& item : items) {
      if (item.empty()) {
        return core::fail(core::ErrorCode::kConfig,
                    text.where + ": " + std::string(row.name) + ": an empty item means nothing");
      }
    }
  }
  out = std::move(items);
  return {};
}

template <class Scalar>
core::Result<void> assign(const ConfigRow& row, const ConfigText& text, const Scalar&, Scalar& out) {
  if (text.is_list || text.values.size() != 1) {
    return core::fail(core::ErrorCode::kConfig, text.where + ": " + std::string(row.name) + ": expected one " +
                                        row.type_name() + ", got a list of " +
                                        std::to_string(text.values.size()));
  }
  return parse(row, text.values.front(), text, out);
}

}  // namespace

core::Error unknown_config_key(std::string_view name, std::string_view where) {
  std::string message = std::string(where) + ": ";
  if (const std::string renamed = renamed_config_key(name); !renamed.empty()) {
    return {core::ErrorCode::kConfig, message + renamed};
  }
  message += "unknown key '" + std::string(name) + "'";
  if (const std::string near = nearest_config_name(name); !near.empty()) {
    message += "; did you mean '" + near + "'?";
  } else {
    message += "; `troupe config show` lists all keys";
  }
  return {core::ErrorCode::kConfig, message};
}

ConfigBuilder::ConfigBuilder(std::string_view method) {
  config_.method = method;
  const Methods bit = method_bit(method);
  TROUPE_CHECK(bit != 0, "a method of the table");
  for (const MethodDefault& entry : method_defaults()) {
    if ((entry.methods & bit) == 0) continue;
    const auto set = this->set({std::string(entry.key), {std::string(entry.value)}, false, ""});
    TROUPE_CHECK(set.has_value(), "a method's default fits its key");
  }
  origins_.clear();
}

core::Result<std::string> config_method(std::span<const ConfigText> texts,
                                  std::string_view asked,
                                  std::string_view fallback) {
  std::string method(asked);
  for (const ConfigText& text : texts) {
    if (text.name != "method" || text.values.size() != 1) continue;
    const std::string& word = text.values.front();
    if (method_bit(word) == 0) {
      return core::fail(core::ErrorCode::kConfig, text.where + ": method = " + word + ": expected one of " +
                                          method_names(kAllMethods) +
                                          meant_choice(*find_config_row("method"), word));
    }
    if (!method.empty() && method != word) {
      return core::fail(core::ErrorCode::kConfig, text.where + ": this is a configuration of `train " + word +
                                          "`, not of `train " + method + "`");
    }
    method = word;
  }
  return method.empty() ? std::string(fallback) : method;
}

core::Result<void> ConfigBuilder::set(const ConfigText& text) {
  const ConfigRow* row = find_config_row(text.name);
  if (row == nullptr) return core::fail(unknown_config_key(text.name, text.where));
  if ((row->methods & method_bit(config_.method)) == 0) {
    return core::fail(core::ErrorCode::kConfig, text.where + ": " + text.name + " is not read by `train " +
                                        config_.method + "` (only by " +
                                        method_names(row->methods) + "); take it out");
  }
  TrainConfig defaults;
  TROUPE_TRY(std::visit(
      [&](auto access) -> core::Result<void> {
        return assign(*row, text, access(defaults), access(config_));
      },
      row->field));
  origins_[text.name] = text.where;
  return {};
}

core::Result<void> ConfigBuilder::set_all(std::span<const ConfigText> texts) {
  core::ErrorList wrong;
  for (const ConfigText& text : texts)
    wrong.take(set(text));
  return wrong.result();
}

core::Result<TrainConfig> ConfigBuilder::finish() const {
  TROUPE_TRY(check_config(config_, origins_));
  return config_;
}

}  // namespace troupe::config
