// Finds files that belong to the running program: libraries that it opens on demand. Opens nothing
// itself; any thread.
#pragma once

#include <array>
#include <filesystem>
#include <string>

namespace troupe::core {

// The folder of the program file; symbolic links to it are resolved.
std::filesystem::path program_folder();

// The folders to search for its files, in this order: its own, then `lib` next to that.
std::array<std::filesystem::path, 2> program_folders();

// The path of the file in the first of program_folders() that has it; empty if neither does.
std::filesystem::path program_file(const std::string& name);

// How a file that is missing comes about. `build` is the command of a checkout, where the program
// lies in a build folder; `package`: what helps whoever installed it.
std::string remedy_of_missing(const std::string& build, const std::string& package);

}  // namespace troupe::core
