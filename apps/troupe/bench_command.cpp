// `troupe bench`: the measurements are a program of their own, troupe-bench, in the folder of this
// one where it was built. This process becomes it.
#include "apps/troupe/commands.hpp"
#include "runtime/core/program_files.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace troupe::app {

Result<void> run_bench(cli::Words words) {
  const std::string program = core::program_file("troupe-bench").string();
  if (program.empty()) {
    return fail(
        ErrorCode::kConfig, "there is no troupe-bench in " + core::program_folder().string(),
        core::remedy_of_missing("./dev build troupe-bench",
                                "copy it there from where the program was built; the tarball has "
                                "it, the wheel does not (docs/install.md)"));
  }
  std::vector<std::string> all = {program};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  return fail(ErrorCode::kResources, "cannot start " + program + ": " + std::strerror(errno));
}

}  // namespace troupe::app
