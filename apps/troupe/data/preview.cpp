// `troupe data preview` and `troupe data convert`: rows as their file has them, or as a method
// reads them.
#include "apps/cli/flags.hpp"
#include "apps/troupe/data/data_actions.hpp"
#include "apps/troupe/data/data_words.hpp"
#include "apps/troupe/data/method_rows.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRows = 5;
constexpr std::size_t kShown_max = 2000;  // bytes of a value that people see

std::string shown(std::string text) {
  if (text.size() <= kShown_max) return text;
  const std::string bytes = std::to_string(text.size());
  text.resize(kShown_max);
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80)
    text.pop_back();
  if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.pop_back();
  return text + "... (" + bytes + " bytes)";
}

// Standard output was closed, or the disk is full.
Result<void> wrote() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return fail(ErrorCode::kResources, "standard output cannot be written");
}

Result<void> preview_file(const DataWords& words) {
  const TakeJson take = [&](const data::Json& row, const std::string& where) -> Result<void> {
    if (words.json) {
      std::printf("%s\n", parse::written_text(row).c_str());
      return wrote();
    }
    std::printf("%s\n", where.c_str());
    for (const auto& [name, value] : row.items()) {
      const std::string text =
          value.is_string() ? value.get<std::string>() : parse::written_text(value);
      std::printf("  %s: %s\n", name.c_str(), shown(text).c_str());
    }
    return {};
  };
  std::optional<core::Error> first;
  const auto refuse = [&](const core::Error& error, const std::string&) {
    if (!first) first = error;
  };
  TROUPE_TRY(each_row(words.sets, words.key, parse::Numbers::kAsWritten,
                      static_cast<std::uint64_t>(words.rows), take, refuse));
  if (first) return fail(std::move(*first));
  return wrote();
}

// The text of some tokens; ids of an unknown vocabulary have none.
std::string text_of(const text::Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  auto text = tokenizer.decode(ids);
  return text ? std::move(*text) : std::string();
}

data::Json as_read(const MethodRows& rows, const MethodRow& row, const std::string& where) {
  const data::CodedRow& coded = row.coded;
  data::Json out = {{"where", where}};
  data::Json tokens = data::Json::object();
  const auto put = [&](const char* name, const data::Tokens& ids) {
    if (ids.empty()) return;
    out[name] = text_of(rows.tokenizer(), ids);
    tokens[name] = ids.size();
  };
  put("prompt", coded.prompt);
  const char* const answer = rows.kind() == data::RowKind::kPair ? "chosen" : "answer";
  put(coded.learn.empty() ? answer : "text", coded.answer);
  put("rejected", coded.rejected);
  if (!coded.learn.empty()) {
    data::Tokens learned;
    for (std::size_t i = 0; i < coded.answer.size(); ++i)
      if (coded.learn[i] != 0) learned.push_back(coded.answer[i]);
    put("learned", learned);
  }
  out["tokens"] = std::move(tokens);
  if (rows.kind() == data::RowKind::kRated) out["label"] = coded.desirable;
  if (!coded.labels.empty()) {
    data::Json labels = data::Json::array();
    for (const std::int32_t id : coded.labels)
      labels.push_back(text_of(rows.tokenizer(), {&id, 1}));
    out["labels"] = std::move(labels);
  }
  if (!coded.shares.empty()) out["labels"] = coded.shares;
  if (coded.margin != 0) out["margin"] = coded.margin;
  if (!row.label.empty()) out["label"] = row.label;
  return out;
}

Result<void> preview_method(const DataWords& words) {
  TROUPE_TRY_ASSIGN(rows, MethodRows::load(*words.config));
  const TakeJson take = [&](const data::Json& json, const std::string& where) -> Result<void> {
    TROUPE_TRY_ASSIGN(row, rows.read(json, where));
    const data::Json view = as_read(rows, row, where);
    if (words.json) {
      std::printf("%s\n", view.dump().c_str());
      return wrote();
    }
    std::printf("%s\n", where.c_str());
    for (const auto& [name, value] : view.items()) {
      if (name == "where") continue;
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      std::printf("  %s: %s\n", name.c_str(), shown(text).c_str());
    }
    return {};
  };
  std::optional<core::Error> first;
  const auto refuse = [&](const core::Error& error, const std::string& where) {
    const bool placed = error.message.starts_with(where);
    if (!first) first = placed ? error : error.within(where);
  };
  TROUPE_TRY(each_row(words.sets, words.key, rows.numbers(), static_cast<std::uint64_t>(words.rows),
                      take, refuse));
  if (first) return fail(std::move(*first));
  return wrote();
}

}  // namespace

Result<void> preview_rows(cli::Words words) {
  TROUPE_TRY_ASSIGN(read, data_words(words, kRows));
  return read.config ? preview_method(read) : preview_file(read);
}

Result<void> convert_rows(cli::Words words) {
  std::string out, sets;
  std::vector<std::string> files;
  bool overwrite = false;
  TROUPE_TRY_ASSIGN(outcome,
                    cli::parse_flags("troupe data convert: files of rows to one .jsonl file",
                                     {{"--out", &out, "the file to write", true},
                                      {"--overwrite", &overwrite, "replace it if it is there"}},
                                     words, &files));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  if (files.empty()) return fail(ErrorCode::kConfig, "no files are named", "name files of rows");
  for (const std::string& file : files)
    sets += (sets.empty() ? "" : ",") + file;
  std::error_code error;
  if (fs::exists(out, error) && !overwrite)
    return fail(ErrorCode::kConfig, out + ": exists", "name another, or give --overwrite");
  const std::string part = out + ".part";
  std::ofstream to(part, std::ios::binary | std::ios::trunc);
  if (!to) return fail(ErrorCode::kConfig, part + ": cannot be written", "change --out");
  std::uint64_t rows = 0;
  const auto read = [&]() -> Result<void> {
    TROUPE_TRY_ASSIGN(all, data::files_of_sets(sets));
    for (const std::string& file : all) {
      TROUPE_TRY(data::read_table(file, "data.dataset", parse::Numbers::kAsWritten,
                                  [&](const data::Json& row, const std::string&) -> Result<bool> {
                                    to << parse::written_text(row) << '\n';
                                    ++rows;
                                    return static_cast<bool>(to);
                                  }));
    }
    return {};
  }();
  to.close();
  if (!read || !to) {
    fs::remove(part, error);
    if (!read) return read;
    return fail(ErrorCode::kNoRoom, part + ": cannot be written to its end",
                "make room, or change --out");
  }
  fs::rename(part, out, error);
  if (error) return fail(ErrorCode::kConfig, out + ": " + error.message(), "change --out");
  std::printf("%s: %llu rows\n", out.c_str(), static_cast<unsigned long long>(rows));
  return wrote();
}

}  // namespace troupe::app
