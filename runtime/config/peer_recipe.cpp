#include "runtime/config/peer_recipe.hpp"

#include "runtime/config/builder.hpp"
#include "runtime/config/peer_names.hpp"
#include "runtime/config/read.hpp"
#include "runtime/config/recipe_text.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/core/error_list.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe::config {
namespace {

std::string values_text(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values)
    out += joined(out.empty() ? "" : " ", value);
  return out.size() <= 80 ? out : out.substr(0, 77) + "...";
}

// A message without the place in front of it.
std::string without_place(std::string_view text, const std::string& where) {
  const std::string place = where + ": ";
  return std::string(text.starts_with(place) ? text.substr(place.size()) : text);
}

// Where the value of a key is from.
struct Origin {
  std::string name;
  std::string note;
  bool hint = false;
};

class RecipeMaker {
 public:
  RecipeMaker(const Table& table, const PeerFile& file)
      : table_(table), file_(file), builder_(table, file.method) {}

  PeerRecipe make(std::string_view name) {
    for (const Setting& setting : file_.implied)
      settings_.push_back(setting);
    for (const PeerSetting& setting : file_.settings)
      read(setting);
    std::vector<Setting> all = std::move(hints_);
    std::ranges::move(settings_, std::back_inserter(all));
    multiply_factors(all);
    for (const Setting& setting : all)
      set(setting);
    return write(name);
  }

 private:
  void leave_out(const std::string& name,
                 const std::vector<std::string>& values,
                 const std::string& where,
                 const std::string& why) {
    others_.push_back(joined(name, " = ", values_text(values), " (", where, "): ", why));
  }

  // What evaluates the words at this place.
  static std::string_view who_knows(const std::string& where) {
    return where.find(".py:") != where.npos ? "Python" : "its shell or Hydra";
  }

  void read(const PeerSetting& given) {
    const Setting& written = given.written;
    if (!given.unknown.empty()) {
      return leave_out(
          written.name, written.values, written.where,
          joined("what ", given.unknown, " is, only ", who_knows(written.where), " knows"));
    }
    auto understood = understand(table_, file_.method, written);
    if (!understood) {
      return leave_out(written.name, written.values, written.where,
                       without_place(understood.error().message, written.where));
    }
    const std::string note =
        given.note.empty() ? without_place(understood->note, written.where) : given.note;
    if (!understood->setting) {
      if (!note.empty()) held_.push_back(joined("(", written.where, ") ", note));
      return;
    }
    Setting& setting = *understood->setting;
    const Row& row = *table_.find(setting.name);
    if (given.is_flag) setting.values = flag_values(row, std::move(setting.values));
    if (given.is_flag) setting.is_list = row.is_list();
    if (!given.is_flag && row.is_list() && !setting.is_list) setting.is_list = true;
    join_files(row, setting);
    // What counts is the last one; the factors of a product count together.
    std::vector<Origin>& origins = origins_[row.name];
    const bool told = std::ranges::any_of(origins, [](const Origin& one) { return !one.hint; });
    if (!understood->hint && setting.factor.empty()) origins.clear();
    if (!understood->hint || !told) {
      origins.push_back({written.name, note, understood->hint});
      written_[row.name] = written;
    }
    (understood->hint ? hints_ : settings_).push_back(std::move(setting));
  }

  // Keys that name files take several with commas between them.
  static void join_files(const Row& row, Setting& setting) {
    const bool files = row.name == "data.dataset" || row.name == "data.prompt_dataset" ||
                       row.name == "eval.dataset";
    if (!files || !setting.is_list) return;
    std::string all;
    for (const std::string& file : setting.values)
      all += joined(all.empty() ? "" : ",", file);
    setting.values = {all};
    setting.is_list = false;
  }

  // What does not fit its key stands with the others.
  void set(const Setting& setting) {
    if (const auto done = builder_.set(setting); !done) {
      const Setting& written = written_[setting.name];
      leave_out(written.name, written.values, written.where,
                without_place(done.error().message, setting.where));
    }
  }

  // The notes on where a key is from, or the names that it had.
  std::string remark_of(const std::string& key) const {
    std::string notes, names;
    const auto found = origins_.find(key);
    if (found == origins_.end()) return {};
    for (const Origin& origin : found->second) {
      notes += joined(notes.empty() || origin.note.empty() ? "" : " ", origin.note);
      const bool same = origin.name == key || key.ends_with(joined(".", origin.name));
      if (!same) names += joined(names.empty() ? "" : ", ", origin.name);
    }
    return notes.empty() ? names : notes;
  }

  PeerRecipe write(std::string_view name) {
    PeerRecipe out;
    out.held = held_.size();
    out.others = others_.size();
    if (const auto whole = builder_.finish(); !whole) {
      for (const core::Error& one : core::single_errors(whole.error()))
        out.missing.push_back(one.message);
    }
    RecipeText text;
    text.comment(joined("From ", file_.title, file_.program.empty() ? "" : " (", file_.program,
                        file_.program.empty() ? "" : ")", ": ", name,
                        ". Keys that do not stand here have their defaults, which may differ from ",
                        file_.title, "'s: `troupe config show FILE` prints all of them."));
    for (const std::string& one : out.missing)
      text.comment("Still to do: " + one);
    text.blank();
    text.key("method", method_names(file_.method));
    for (const Row& row : table_.rows()) {
      if (row.name == "method" || !builder_.origins().contains(row.name)) continue;
      text.key(row.name, row.yaml(builder_.current()), remark_of(row.name));
      ++out.keys;
    }
    list(text, "Without a counterpart, or refused:", others_);
    list(text, "So anyway, or without effect:", held_);
    out.yaml = text.text();
    return out;
  }

  static void list(RecipeText& text,
                   std::string_view title,
                   const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    text.blank();
    text.comment(title);
    for (const std::string& line : lines)
      text.comment("- " + line);
  }

  const Table& table_;
  const PeerFile& file_;
  Builder builder_;
  std::vector<Setting> hints_, settings_;
  std::vector<std::string> held_, others_;
  std::map<std::string, std::vector<Origin>> origins_;  // by key
  std::map<std::string, Setting> written_;              // the last one of each key
};

}  // namespace

PeerRecipe make_recipe(const Table& table, const PeerFile& file, std::string_view name) {
  return RecipeMaker(table, file).make(name);
}

}  // namespace troupe::config
