// The files step_000123.jsonl of a folder of a run, and the order in which a report reads as many
// of them as it may. Pure but for the listing of the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

namespace troupe::report {

struct StepFiles {
  std::map<std::uint64_t, std::filesystem::path> files;  // by step
  std::uint64_t bytes = 0;                               // of all of them
};

// `ending`: ".jsonl" or ".log". No files if the folder cannot be read.
StepFiles list_steps(const std::filesystem::path& folder, const char* ending);

// All of 0 to count - 1, so that any beginning of the list is spread evenly: the last, the first,
// the middle, the middles of both halves, and so on.
std::vector<std::size_t> spread_order(std::size_t count);

// `wanted` of `count` places, evenly spread, the first among them, in rising order; all if there
// are no more.
std::vector<std::size_t> spread_places(std::size_t count, std::size_t wanted);

}  // namespace troupe::report
