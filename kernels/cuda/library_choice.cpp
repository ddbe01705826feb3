#include "kernels/cuda/library_choice.hpp"

#include "runtime/core/program_files.hpp"

#include <dlfcn.h>

#include <utility>

namespace troupe::kernels::cuda {
namespace {

namespace fs = std::filesystem;

struct Row {
  const char* file;
  int cuda;            // of the driver, at least
  const char* driver;  // the first that has it
};
// The first that fits is taken.
constexpr Row kRows[] = {
    {"libtroupe_cuda.so", 13000, "580 or newer"},
    {"libtroupe_cuda12.so", 12000, "525 or newer"},
};

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string both(const std::function<std::string(const Row&)>& say) {
  return say(kRows[0]) + ", " + say(kRows[1]);
}

}  // namespace

LibraryChoice choose_library(int cuda_of_driver,
                             const std::function<fs::path(const std::string&)>& find) {
  bool some = false;
  for (const Row& row : kRows) {
    fs::path path = find(row.file);
    if (path.empty()) continue;
    some = true;
    if (cuda_of_driver == 0 || cuda_of_driver >= row.cuda) return {std::move(path), {}};
  }
  if (!some) {
    return {{},
            std::string("neither ") + kRows[0].file + " nor " + kRows[1].file +
                " is next to the program; the first is for drivers " + kRows[0].driver +
                ", the second for drivers " + kRows[1].driver + "; " +
                core::remedy_of_missing("./dev build --cuda=both",
                                        "packages made with --cuda have them (docs/install.md)") +
                " (TROUPE_CUDA_LIBRARY names another place)"};
  }
  std::string advice;
  if (cuda_of_driver >= kRows[1].cuda)
    advice = "; " + core::remedy_of_missing("./dev build --cuda=12",
                                            "packages made with --cuda=12 have it");
  return {{},
          "the driver is too old: it has CUDA " + version_text(cuda_of_driver) + "; " +
              both([&find](const Row& row) {
                return std::string(row.file) + (find(row.file).empty() ? " (not there)" : "") +
                       " needs driver " + row.driver + " (CUDA " + version_text(row.cuda) + ")";
              }) +
              advice};
}

std::string driver_for(const fs::path& library) {
  return library.filename() == kRows[1].file ? kRows[1].driver : kRows[0].driver;
}

int cuda_of_driver() {
  // The runtime inside our libraries opens it, too; it stays open.
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return 0;
  const auto ask = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;
  return ask != nullptr && ask(&version) == 0 ? version : 0;
}

}  // namespace troupe::kernels::cuda
