// Files that belong to the running program: libraries that it opens when they are needed. Looks
// only; any thread.
#pragma once

#include <array>
#include <filesystem>
#include <string>

namespace troupe::core {

// Where the program lies; symbolic links to it are followed.
std::filesystem::path program_folder();

// The folders that are looked in for its files, in this order: its own, and `lib` beside that.
std::array<std::filesystem::path, 2> program_folders();

// The first of program_folders() that has the file; empty: neither does.
std::filesystem::path program_file(const std::string& name);

}  // namespace troupe::core
