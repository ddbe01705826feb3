// The folder of the program's own files, shared by all runs of a user: TROUPE_HOME, else
// ~/.cache/troupe. Any thread.
#pragma once

#include <filesystem>

namespace troupe::store {

// Empty: neither TROUPE_HOME nor HOME names one. It need not exist.
std::filesystem::path troupe_home();

}  // namespace troupe::store
