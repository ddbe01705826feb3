// `troupe data stats` and `troupe data check`: figures over rows, and what speaks against training
// with them.
#include "apps/troupe/data/data_actions.hpp"
#include "apps/troupe/data/data_words.hpp"
#include "apps/troupe/data/method_rows.hpp"
#include "apps/troupe/data/plain_stats.hpp"
#include "apps/troupe/data/refusals.hpp"
#include "apps/troupe/data/spread_words.hpp"
#include "runtime/config/method.hpp"
#include "runtime/data/tools_watch.hpp"
#include "runtime/model/params.hpp"

#include <cstdio>

namespace troupe::app {
namespace {

using data::RowFigures;
using Report = nlohmann::ordered_json;

void print(const std::vector<std::string>& lines, const char* before = "") {
  for (const std::string& line : lines)
    std::printf("%s%s\n", before, line.c_str());
}

core::Failure refused(std::uint64_t bad, std::uint64_t all) {
  return fail(ErrorCode::kData,
              std::to_string(bad) + " of " + std::to_string(all) + " rows are refused",
              "mend them or leave them out");
}

// --- rows as their file has them -----------------------------------------------------------------

Result<void> plain(const DataWords& words, bool check) {
  std::optional<text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat;
  if (!words.model.empty()) {
    TROUPE_TRY_ASSIGN(folder, model::resolve_model(words.model));
    TROUPE_TRY_SET(tokenizer, text::Tokenizer::load(folder));
    TROUPE_TRY_SET(chat, text::load_template(folder, false));
  }
  PlainStats stats(tokenizer ? &*tokenizer : nullptr, chat ? &*chat : nullptr);
  Refusals refusals;
  TROUPE_TRY(each_row(
      words.sets, words.key, parse::Numbers::kAsWritten, static_cast<std::uint64_t>(words.rows),
      [&](const data::Json& row, const std::string&) { return stats.add(row); },
      [&](const core::Error& error, const std::string& where) { refusals.add(error, where); }));
  if (words.json) {
    Report report = stats.json();
    report["refused"] = refusals.json();
    std::printf("%s\n", report.dump().c_str());
  } else {
    print(stats.lines());
    print(refusals.lines(), "refused: ");
  }
  if (refusals.count() == 0) return {};
  if (!check && stats.rows() > 0) return {};
  return refused(refusals.count(), refusals.count() + stats.rows());
}

// --- rows as a method reads them -----------------------------------------------------------------

struct Looked {
  RowFigures figures;
  Refusals refusals;
  std::map<std::string, std::uint64_t> labels;  // of prompts
  data::ToolsWatch tools;
};

Result<Looked> look(const MethodRows& rows, const std::string& sets, const std::string& key) {
  Looked out{rows.figures(), {}, {}, data::ToolsWatch(rows.chat())};
  const TakeJson take = [&](const data::Json& json, const std::string& where) -> Result<void> {
    TROUPE_TRY_ASSIGN(row, rows.read(json, where));
    out.figures.add(MethodRows::view(row));
    out.tools.see(json, where);
    if (!row.label.empty() && out.labels.size() < 10'000) ++out.labels[row.label];
    return {};
  };
  TROUPE_TRY(each_row(
      sets, key, rows.numbers(), 0, take,
      [&](const core::Error& error, const std::string& where) { out.refusals.add(error, where); }));
  return out;
}

const char* name_of(RowFigures::Part part, bool pair) {
  switch (part) {
    case RowFigures::kWhole:
      return "row";
    case RowFigures::kPrompt:
      return "prompt";
    case RowFigures::kAnswer:
      return pair ? "chosen" : "answer";
    default:
      return "rejected";
  }
}

std::vector<RowFigures::Part> parts_of(std::optional<data::RowKind> kind) {
  if (!kind) return {RowFigures::kPrompt};
  if (*kind == data::RowKind::kPair)
    return {RowFigures::kWhole, RowFigures::kPrompt, RowFigures::kAnswer, RowFigures::kRejected};
  if (*kind == data::RowKind::kText) return {RowFigures::kWhole};
  return {RowFigures::kWhole, RowFigures::kPrompt, RowFigures::kAnswer};
}

Report figures_json(const MethodRows& rows, const Looked& looked) {
  const RowFigures& figures = looked.figures;
  const bool pair = rows.kind() == data::RowKind::kPair;
  Report tokens = Report::object();
  for (const RowFigures::Part part : parts_of(rows.kind()))
    tokens[name_of(part, pair)] = spread_json(figures.lengths(part));
  Report out = {{"rows", figures.rows()},
                {"refused", looked.refusals.json()},
                {"tokens", tokens},
                {"repeated_rows", figures.repeated_rows()},
                {"repeated_prompts", figures.repeated_prompts()},
                {"too_long",
                 {{"limit", rows.longest()},
                  {"rows", figures.too_long()},
                  {"tokens_over", figures.tokens_over()}}}};
  if (rows.kind() == data::RowKind::kRated) {
    out["labels"] = {{"good", figures.good()}, {"bad", figures.rows() - figures.good()}};
    out["length_and_label"] = figures.length_and_label();
  }
  if (pair) {
    out["chosen_longer"] = figures.longer();
    out["chosen_shorter"] = figures.shorter();
  }
  if (!looked.labels.empty()) out["different_labels"] = looked.labels.size();
  return out;
}

void print_figures(const MethodRows& rows, const Looked& looked) {
  const RowFigures& figures = looked.figures;
  const bool pair = rows.kind() == data::RowKind::kPair;
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  std::vector<std::string> lines = {"rows: " + number(figures.rows()) + " read, " +
                                    number(looked.refusals.count()) + " refused"};
  for (const RowFigures::Part part : parts_of(rows.kind())) {
    lines.push_back(std::string("tokens of the ") + name_of(part, pair) + ": " +
                    spread_words(figures.lengths(part)));
  }
  lines.push_back("repeated: " + number(figures.repeated_rows()) + " rows, " +
                  number(figures.repeated_prompts()) + " prompts");
  if (rows.kind() == data::RowKind::kRated) {
    lines.push_back("labels: " + number(figures.good()) + " good, " +
                    number(figures.rows() - figures.good()) + " bad");
  }
  if (pair) {
    lines.push_back("the chosen answer is longer in " + number(figures.longer()) +
                    " pairs, shorter in " + number(figures.shorter()));
  }
  if (!looked.labels.empty()) lines.push_back("different labels: " + number(looked.labels.size()));
  print(lines);
}

// What speaks against training with these rows.
std::vector<std::string> all_warnings(const config::TrainConfig& config,
                                      const MethodRows& rows,
                                      const Looked& looked) {
  std::vector<std::string> out = looked.figures.warnings();
  if (const std::uint64_t over = looked.figures.too_long()) {
    const char* const key = rows.kind() ? "data.max_len" : "data.prompt_max_len";
    out.push_back(std::to_string(over) + " rows are longer than " + std::to_string(rows.longest()) +
                  " tokens, by " + std::to_string(looked.figures.tokens_over()) + " in all: " +
                  (config.data.drop_too_long
                       ? "they are left out (--data.drop_too_long)"
                       : "training refuses them; raise --" + std::string(key) +
                             " or give --data.drop_too_long true"));
  }
  if (!looked.tools.warning().empty()) out.push_back(looked.tools.warning());
  if (looked.labels.size() == 1 && looked.figures.rows() > 1)
    out.push_back("all labels are '" + looked.labels.begin()->first + "'");
  return out;
}

Result<void> as_method(const DataWords& words, bool check) {
  const config::TrainConfig& config = *words.config;
  TROUPE_TRY_ASSIGN(rows, MethodRows::load(config));
  TROUPE_TRY_ASSIGN(train, look(rows, words.sets, words.key));
  Report report = figures_json(rows, train);
  std::vector<std::string> warnings;
  std::uint64_t bad = train.refusals.count(), all = bad + train.figures.rows();
  if (check) {
    warnings = all_warnings(config, rows, train);
    if (!config.eval.dataset.empty()) {
      TROUPE_TRY_ASSIGN(held_out, look(rows, config.eval.dataset, "eval.dataset"));
      report["held_out"] = {{"rows", held_out.figures.rows()},
                            {"refused", held_out.refusals.json()},
                            {"prompts_of_training", train.figures.shared_with(held_out.figures)}};
      const std::string shared = train.figures.warning_of_shared(held_out.figures);
      if (!shared.empty()) warnings.push_back(shared);
      bad += held_out.refusals.count();
      all += held_out.refusals.count() + held_out.figures.rows();
      if (!words.json) print(held_out.refusals.lines(), "refused, held-out: ");
    }
    report["warnings"] = warnings;
  }
  if (words.json) {
    std::printf("%s\n", report.dump().c_str());
  } else {
    print_figures(rows, train);
    print(train.refusals.lines(), "refused: ");
    print(warnings, "warning: ");
  }
  if (bad > 0 && check) return refused(bad, all);
  return {};
}

}  // namespace

Result<void> show_stats(cli::Words words) {
  TROUPE_TRY_ASSIGN(read, data_words(words, 0));
  return read.config ? as_method(read, false) : plain(read, false);
}

Result<void> check_rows(cli::Words words) {
  TROUPE_TRY_ASSIGN(read, data_words(words, 0));
  return read.config ? as_method(read, true) : plain(read, true);
}

}  // namespace troupe::app
