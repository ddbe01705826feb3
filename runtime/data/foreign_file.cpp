#include "runtime/data/foreign_file.hpp"

#include "runtime/core/foreign_text.hpp"
#include "runtime/core/shell_word.hpp"
#include "runtime/data/file_kind.hpp"
#include "runtime/names/locate.hpp"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace troupe::data {
namespace {

namespace fs = std::filesystem;

struct Format {
  std::string_view name;
  std::string_view begins;   // first bytes of the file; empty: known by its ending alone
  std::string_view ending;   // of the file's name, if the first bytes do not decide
  std::string_view command;  // FILE and ROWS stand for the file and the rows to be made
};

using namespace std::string_view_literals;
constexpr std::string_view kFromPandas = R"(orient="records", lines=True, force_ascii=False)')";
constexpr Format kFormats[] = {
    {"an Excel sheet", "PK\x03\x04"sv, ".xlsx",
     R"(python -c 'import pandas; pandas.read_excel("FILE").to_json("ROWS", )"},
    {"compressed by xz",
     "\xFD"
     "7zXZ"sv,
     "", "xz -dc 'FILE' > 'ROWS'"},
    {"compressed by bzip2", "BZh"sv, "", "bzip2 -dc 'FILE' > 'ROWS'"},
    {"a Git LFS pointer, not the file itself", "version https://git-lfs"sv, "",
     "git lfs pull (in its folder)"},
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

// The name without the endings that say how it is stored: a.jsonl of a.jsonl.xz, a.jsonl of
// a.xlsx.
std::string rows_name(const fs::path& file) {
  const std::string stem = file.stem().string();
  return ends_as_rows(stem) ? stem : stem + ".jsonl";
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
  char head[32] = {};
  in.read(head, sizeof head);
  const std::string_view begin(head, static_cast<std::size_t>(in.gcount()));
  const std::string ending = file.extension().string();
  for (const Format& format : kFormats) {
    if (begin.starts_with(format.begins) && (format.ending.empty() || format.ending == ending))
      return &format;
  }
  return nullptr;
}

bool is_text(std::string_view begin) {
  return !begin.empty() && std::ranges::all_of(begin, [](unsigned char c) {
    return c >= ' ' || c == '\t' || c == '\n' || c == '\r';
  });
}

// The ending of rows that are text and begin so.
std::string_view ending_of_text(std::string_view begin) {
  const auto first = begin.find_first_not_of(" \t\r\n");
  if (first == begin.npos) return ".jsonl";
  return begin[first] == '{' ? ".jsonl" : begin[first] == '[' ? ".json" : ".csv";
}

// A table or a compressed file by its name that is plain text.
core::Result<void> check_no_text(const fs::path& file) {
  const FileKind named = kind_of_name(file.string());
  const bool table = is_table(named.rows);
  if (!table && named.packing == Packing::kNone) return {};
  std::ifstream in(file, std::ios::binary);
  char head[256] = {};
  in.read(head, sizeof head);
  const std::string_view begin(head, static_cast<std::size_t>(in.gcount()));
  if (!is_text(begin)) return {};
  constexpr std::size_t kShown = 40;
  const std::string_view line = begin.substr(0, std::min(begin.find('\n'), kShown));
  const fs::path stem = file.parent_path() / file.stem();
  const std::string rows =
      table ? stem.string() + std::string(ending_of_text(begin)) : stem.string();
  return fail(ErrorCode::kData,
              file.string() + ": its name says " + file.extension().string() +
                  ", and it is text, which begins with:" + core::foreign(line),
              "rename it by what it is: mv -n " + core::shell_word(file.string()) + " " +
                  core::shell_word(rows));
}

core::Failure no_file(const std::string& name, const std::string& key) {
  const auto hub = names::hub_name(name, names::Kind::kDataset);
  return fail(
      ErrorCode::kNotFound, "dataset " + name + ": no such file",
      "set --" + key +
          (hub ? " to a file; `troupe get " + name + " --dataset` fetches a hub's"
               : " to " + std::string(kRowEndings) + ", or to OWNER/NAME of a hub's data set"));
}

}  // namespace

core::Failure folder_without_rows(const fs::path& folder) {
  std::vector<std::string> others, folders;
  std::error_code error, other;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    (it->is_directory(other) ? folders : others).push_back(it->path().string());
    if (others.size() + folders.size() > 1000) break;
  }
  std::ranges::sort(others);
  std::ranges::sort(folders);
  const std::string what =
      folder.string() + ": a folder without files of rows (" + std::string(kRowEndings) + ")";
  for (const std::string& file : others) {
    if (const Format* format = format_of_file(file)) {
      return fail(ErrorCode::kData, what,
                  "its " + fs::path(file).filename().string() + " is " + std::string(format->name) +
                      ". Make rows of each: " + command_of(*format, file));
    }
  }
  if (!folders.empty())
    return fail(ErrorCode::kData, what, "name one of the folders in it, as in " + folders[0]);
  return fail(ErrorCode::kData, what, "name another");
}

core::Result<void> check_rows_file(const fs::path& file, std::string_view key) {
  std::error_code error;
  if (fs::is_directory(file, error)) {
    return fail(ErrorCode::kData, file.string() + ": a folder, where a file is needed",
                "name a file in it");
  }
  if (!fs::is_regular_file(file, error)) return no_file(file.string(), std::string(key));
  const Format* format = format_of_file(file);
  if (format == nullptr) return check_no_text(file);
  return fail(ErrorCode::kData, file.string() + ": is " + std::string(format->name),
              "rows are " + std::string(kRowEndings) + ". Make them: " + command_of(*format, file));
}

}  // namespace troupe::data
