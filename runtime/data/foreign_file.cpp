#include "runtime/data/foreign_file.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>
#include <vector>

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using core::fail;

struct Format {
  std::string_view name;
  std::string_view begins;   // first bytes of the file; empty: known by its ending alone
  std::string_view ending;   // of the file's name, if the first bytes do not decide
  std::string_view command;  // FILE and ROWS stand for the file and the rows to be made
};

using namespace std::string_view_literals;
constexpr std::string_view kFromPandas = R"(orient="records", lines=True, force_ascii=False)')";
constexpr Format kFormats[] = {
    {"Parquet", "PAR1"sv, "",
     R"(python -c 'import pandas; pandas.read_parquet("FILE").to_json("ROWS", )"},
    {"an Arrow file", "ARROW1"sv, "",
     R"(python -c 'import pandas; pandas.read_feather("FILE").to_json("ROWS", )"},
    {"an Arrow stream", "\xFF\xFF\xFF\xFF"sv, "",
     R"(python -c 'from datasets import Dataset; Dataset.from_file("FILE").to_json("ROWS")')"},
    {"an Excel sheet", "PK\x03\x04"sv, ".xlsx",
     R"(python -c 'import pandas; pandas.read_excel("FILE").to_json("ROWS", )"},
    {"compressed by gzip", "\x1F\x8B"sv, "", "gunzip -c 'FILE' > 'ROWS'"},
    {"compressed by zstd", "\x28\xB5\x2F\xFD"sv, "", "zstd -dc 'FILE' > 'ROWS'"},
    {"compressed by xz",
     "\xFD"
     "7zXZ"sv,
     "", "xz -dc 'FILE' > 'ROWS'"},
    {"compressed by bzip2", "BZh"sv, "", "bzip2 -dc 'FILE' > 'ROWS'"},
    {"a zip archive", "PK\x03\x04"sv, "", "unzip 'FILE'"},
    {"separated by tabs", "", ".tsv",
     R"(python -c 'import pandas; pandas.read_csv("FILE", sep="\t").to_json("ROWS", )"},
};

// A name that is safe to stand inside the quotes of a command.
bool is_plain(std::string_view name) {
  return name.find_first_of("'\"\\\n") == name.npos;
}

void put(std::string& text, std::string_view place, const std::string& value) {
  const auto at = text.find(place);
  if (at != text.npos) text.replace(at, place.size(), value);
}

// The name without the endings that say how it is stored: a.jsonl of a.jsonl.gz, a.jsonl of
// a.parquet.
std::string rows_name(const fs::path& file) {
  const std::string stem = file.stem().string();
  const std::string inner = fs::path(stem).extension().string();
  return inner == ".jsonl" || inner == ".json" || inner == ".csv" ? stem : stem + ".jsonl";
}

std::string command_of(const Format& format, const fs::path& file) {
  std::string text(format.command);
  if (text.ends_with(", ")) text += kFromPandas;
  if (!is_plain(file.string())) return text;
  put(text, "ROWS", rows_name(file));
  put(text, "FILE", file.string());
  return text;
}

const Format* format_of_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  char head[8] = {};
  in.read(head, sizeof head);
  const std::string_view begin(head, static_cast<std::size_t>(in.gcount()));
  const std::string ending = file.extension().string();
  for (const Format& format : kFormats) {
    if (begin.starts_with(format.begins) && (format.ending.empty() || format.ending == ending))
      return &format;
  }
  return nullptr;
}

// Whether a name may be that of a data set on a hub: ORG/NAME.
bool names_hub_set(const std::string& name) {
  const auto slash = name.find('/');
  const auto is_letter = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return slash != name.npos && slash > 0 && slash + 1 < name.size() &&
         name.find('/', slash + 1) == name.npos && name.front() != '.' &&
         std::ranges::all_of(name, is_letter);
}

core::Failure no_file(const std::string& name, const std::string& key) {
  const std::string what = "dataset " + name + ": no such file";
  const bool ends_well =
      name.ends_with(".jsonl") || name.ends_with(".json") || name.ends_with(".csv");
  if (ends_well || !names_hub_set(name)) {
    return fail(ErrorCode::kNotFound, what, "set --" + key + " to a .jsonl, .json or .csv file");
  }
  const std::string rows = name.substr(name.find('/') + 1) + ".jsonl";
  return fail(ErrorCode::kNotFound, what,
              "data sets of the Hugging Face hub are not fetched. Make a file of it: python -c "
              "'from datasets import load_dataset; load_dataset(\"" +
                  name + "\", split=\"train\").to_json(\"" + rows + "\")'");
}

core::Failure folder_of_files(const fs::path& folder) {
  std::vector<std::string> rows, others;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string ending = it->path().extension().string();
    const bool readable = ending == ".jsonl" || ending == ".json" || ending == ".csv";
    (readable ? rows : others).push_back(it->path().string());
    if (rows.size() + others.size() > 1000) break;
  }
  std::ranges::sort(rows);
  std::ranges::sort(others);
  const std::string what = folder.string() + ": is a folder";
  if (!rows.empty()) {
    std::string names = rows[0];
    for (std::size_t i = 1; i < std::min<std::size_t>(rows.size(), 3); ++i)
      names += "," + rows[i];
    return fail(ErrorCode::kData, what, "name its files, separated by commas, as in " + names);
  }
  for (const std::string& other : others) {
    if (const Format* format = format_of_file(other)) {
      return fail(ErrorCode::kData, what,
                  "its " + fs::path(other).filename().string() + " is " + std::string(format->name) +
                      ". Make rows of each: " + command_of(*format, other));
    }
  }
  return fail(ErrorCode::kData, what, "it holds no .jsonl, .json or .csv file");
}

}  // namespace

core::Result<void> check_rows_file(const fs::path& file, std::string_view key) {
  std::error_code error;
  if (fs::is_directory(file, error)) return folder_of_files(file);
  if (!fs::is_regular_file(file, error)) return no_file(file.string(), std::string(key));
  const Format* format = format_of_file(file);
  if (format == nullptr) return {};
  return fail(ErrorCode::kData, file.string() + ": is " + std::string(format->name),
              "rows are .jsonl, .json or .csv. Make them: " + command_of(*format, file));
}

}  // namespace troupe::data
