#include "runtime/data/table_list.hpp"

#include "runtime/data/file_kind.hpp"
#include "runtime/data/foreign_file.hpp"
#include "runtime/names/locate.hpp"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace troupe::data {
namespace {

namespace fs = std::filesystem;

// What `datasets` and the hub put beside the rows of a set.
constexpr std::string_view kAboutSets[] = {"dataset_info.json", "dataset_infos.json",
                                           "dataset_dict.json", "state.json"};

bool is_rows(const fs::path& file) {
  const std::string name = file.filename().string();
  return !name.starts_with('.') && ends_as_rows(name) &&
         std::ranges::find(kAboutSets, name) == std::end(kAboutSets);
}

bool is_pattern(const std::string& name) {
  return name.find_first_of("*?[") != name.npos;
}

// Files of rows in a folder, sorted.
std::vector<std::string> rows_in(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error, other;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (is_rows(it->path()) && it->is_regular_file(other)) files.push_back(it->path().string());
  }
  std::ranges::sort(files);
  return files;
}

Result<std::vector<std::string>> files_of_folder(const std::string& folder) {
  std::vector<std::string> files = rows_in(folder);
  if (files.empty()) return folder_without_rows(folder);
  const auto kind = [](const std::string& name) {
    const FileKind of = kind_of_name(name);
    return std::pair(of.rows, of.packing);
  };
  for (const std::string& file : files) {
    if (kind(file) == kind(files[0])) continue;
    const std::string ending = fs::path(files[0]).extension().string();
    return fail(ErrorCode::kData,
                folder + ": a folder with rows in several formats (" +
                    fs::path(files[0]).filename().string() + ", " +
                    fs::path(file).filename().string() + ")",
                "say which, as in '" + (fs::path(folder) / ("*" + ending)).string() + "'");
  }
  return files;
}

Result<std::vector<std::string>> files_of_pattern(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      std::error_code error;
      if (fs::is_regular_file(found.gl_pathv[i], error)) files.emplace_back(found.gl_pathv[i]);
    }
  }
  ::globfree(&found);
  std::ranges::sort(files);
  if (!files.empty()) return files;
  return fail(ErrorCode::kNotFound, "dataset " + pattern + ": no file fits the pattern",
              "`ls " + pattern + "` shows what it finds");
}

}  // namespace

std::vector<std::string> split_files(std::string_view files) {
  std::vector<std::string> names;
  while (!files.empty()) {
    const auto comma = files.find(',');
    const std::string_view name = files.substr(0, comma);
    if (!name.empty()) names.emplace_back(name);
    files.remove_prefix(comma == files.npos ? files.size() : comma + 1);
  }
  return names;
}

Result<std::vector<std::string>> files_of_set(const std::string& set) {
  std::error_code error;
  if (fs::is_directory(set, error)) return files_of_folder(set);
  if (is_pattern(set) && !fs::exists(set, error)) return files_of_pattern(set);
  TROUPE_TRY_ASSIGN(found, names::row_files(set));
  return std::vector<std::string>(found.begin(), found.end());
}

Result<std::vector<std::string>> files_of_sets(std::string_view sets) {
  std::vector<std::string> all;
  for (const std::string& set : split_files(sets)) {
    TROUPE_TRY_ASSIGN(files, files_of_set(set));
    std::ranges::move(files, std::back_inserter(all));
  }
  return all;
}

}  // namespace troupe::data
