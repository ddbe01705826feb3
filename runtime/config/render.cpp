#include "runtime/config/render.hpp"

#include "runtime/config/recipe_text.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/core/split.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace troupe::config {
namespace {

// Lines after the first begin with `indent` blanks.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  return config::wrapped(text, std::string(indent, ' '), columns);
}

// "int, 1 to 10 tokens, default 4".
std::string facts_of(const Row& row, const TrainConfig& defaults) {
  const std::string range = row.range_text();
  return joined(row.type_name(),
                range.empty()       ? ""
                : row.words.empty() ? ", "
                                    : ": ",
                range,
                row.unit.empty() ? ""
                : range.empty()  ? ", "
                                 : " ",
                row.unit, row.needed ? ", needed" : ", default " + row.yaml(defaults));
}

// "`1e-06`; rm `9e-6`".
std::string default_text(const Row& row) {
  if (row.needed) return "needed";
  std::string text = joined("`", row.yaml(default_config()), "`");
  for (const auto& [methods, value] : row.defaults)
    text += joined("; ", method_names(methods), " `", value, "`");
  return text;
}

std::string table_cell(std::string_view text) {
  std::string out;
  for (const char c : text)
    (out += c == '|' ? "\\" : "") += c;
  return out;
}

// The defaults of a method; of several, those of the keys.
TrainConfig defaults_of(const Table& table, Methods methods) {
  const bool one = std::has_single_bit(static_cast<unsigned>(methods));
  return one ? Builder(table, methods).current() : default_config();
}

// Calls `visit` with the rows of each section.
void each_section(std::span<const Row> rows,
                  const std::function<void(std::span<const Row>)>& visit) {
  while (!rows.empty()) {
    const auto end = std::ranges::find_if(
        rows, [&](const Row& row) { return row.section() != rows.front().section(); });
    const auto count = static_cast<std::size_t>(end - rows.begin());
    visit(rows.first(count));
    rows = rows.subspan(count);
  }
}

}  // namespace

std::string resolved_yaml(const TrainConfig& config, const Origins& origins) {
  std::string out;
  std::string open;  // the section of the last line, such as "actor.adam."
  for (const Row& row : keys().rows()) {
    if (!row.is_read_by(config.method)) continue;
    const std::string_view name = row.name;
    out += section_lines(open, name);
    const auto depth = static_cast<std::size_t>(std::ranges::count(name, '.'));
    out += joined(std::string(2 * depth, ' '), name.substr(open.size()), ": ", row.yaml(config));
    if (const auto origin = origins.find(name); origin != origins.end()) {
      std::string place = origin->second;
      std::ranges::replace_if(
          place, [](char c) { return c < ' '; }, '?');
      out += "  # " + place;
    }
    out += '\n';
  }
  return out;
}

std::string groups(const Table& table, Methods methods) {
  std::string out;
  each_section(table.rows(), [&](std::span<const Row> rows) {
    const auto read =
        std::ranges::count_if(rows, [&](const Row& row) { return row.is_read_by(methods); });
    if (read == 0) return;
    std::string head = joined("  ", rows.front().section());
    head.resize(12, ' ');
    out += joined(head, rows.front().title, " (", read, read == 1 ? " key)\n" : " keys)\n");
  });
  return out;
}

std::string keys_help(const Table& table,
                      std::span<const std::string_view> names,
                      std::size_t columns,
                      Methods methods) {
  std::string out;
  const TrainConfig defaults = defaults_of(table, methods);
  for (const std::string_view name : names) {
    const Row* const row = table.find(name);
    if (row == nullptr || !row->is_read_by(methods)) continue;
    std::string head = joined("  --", name);
    head.resize(std::max<std::size_t>(head.size() + 2, 34), ' ');
    const std::string value = row->needed ? "needed" : joined("default ", row->yaml(defaults));
    out += head + wrapped(joined(row->help, " (", value, ")"), 34, columns) + "\n";
  }
  return out;
}

std::string section_help(const Table& table,
                         std::string_view section,
                         std::size_t columns,
                         Methods methods) {
  std::string out;
  const TrainConfig defaults = defaults_of(table, methods);
  for (const Row& row : table.rows()) {
    if (row.section() != section || !row.is_read_by(methods)) continue;
    if (out.empty()) out = joined(section, ": ", row.title, "\n");
    out += joined("  --", row.name, "  (", facts_of(row, defaults), ")\n      ",
                  wrapped(row.help, 6, columns), "\n");
    for (const core::Choice& word : row.words) {
      if (word.help.empty()) continue;
      out += joined("      ", word.name, ": ", wrapped(word.help, 8, columns), "\n");
    }
    if (!row.peer.empty()) out += joined("      OpenRLHF: ", wrapped(row.peer, 16, columns), "\n");
  }
  return out;
}

std::string reference_page(const Table& table) {
  std::string out =
      "# Configuration keys\n\n"
      "Made from the table of keys by `troupe config docs`; a test keeps it current.\n\n"
      "A key is a flag (`--actor.adam.lr 1e-6`), a word (`actor.adam.lr=1e-6`) and a YAML path\n"
      "(`actor: {adam: {lr: 1e-6}}`). Defaults are overridden by YAML files, left to right, and "
      "these\n"
      "by flags. An unknown key is an error. Each run writes all its values to\n"
      "`resolved_config.yaml`. Names are OpenRLHF's where it has them; the last column says where "
      "a\n"
      "name or default differs.\n";
  each_section(table.rows(), [&](std::span<const Row> rows) {
    out += joined("\n## ", rows.front().section(), ": ", rows.front().title, "\n\n");
    out += "| key | type | range | unit | default | meaning | OpenRLHF | read by |\n";
    out += "|---|---|---|---|---|---|---|---|\n";
    for (const Row& row : rows) {
      out += joined("| `", row.name, "` | ", row.type_name(), " | ", table_cell(row.range_text()),
                    " | ", row.unit, " | ", default_text(row), " | ", table_cell(row.help), " | ",
                    row.peer.empty() ? "same" : table_cell(row.peer), " | ",
                    row.only == kAllMethods ? "all" : method_names(row.only), " |\n");
    }
    for (const Row& row : rows) {
      if (row.words.empty() || row.words.front().help.empty()) continue;
      out += joined("\n| `", row.name, "` | meaning |\n|---|---|\n");
      for (const core::Choice& word : row.words)
        out += joined("| `", word.name, "` | ", table_cell(word.help), " |\n");
    }
  });
  return out;
}

std::vector<Difference> differences(const TrainConfig& before, const TrainConfig& after) {
  std::vector<Difference> out;
  for (const Row& row : keys().rows()) {
    Difference found{row.name, row.yaml(before), row.yaml(after)};
    if (found.before != found.after) out.push_back(std::move(found));
  }
  return out;
}

bool may_change(std::string_view name) {
  const Row* row = keys().find(name);
  return row != nullptr && row->free;
}

}  // namespace troupe::config
