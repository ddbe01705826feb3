// Which files a setting like data.dataset names: a list, separated by commas, of files, patterns
// ("data/train-*.parquet"), folders and data sets of a hub (names/locate.hpp). Looks at the file
// system; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::data {

// Splits "a.jsonl,b.csv" at its commas; leaves out empty names. Each is one set of a blend.
std::vector<std::string> split_files(std::string_view files);

// The files of one set, sorted by name: the name itself unless it is a pattern, a folder or a data
// set of a hub. A folder stands for all files of rows that lie in it, which must be of one format;
// hidden files and those that `datasets` writes about a set do not count. Errors: kNotFound
// (nothing fits a pattern), kData (a folder without files of rows, or with several formats), and
// those of names::locate.
core::Result<std::vector<std::string>> files_of_set(const std::string& set);

// The files of all sets.
core::Result<std::vector<std::string>> files_of_sets(std::string_view sets);

}  // namespace troupe::data
