// Gangs whose ranks have an emulated device each and NCCL, emulated too, between them.
#pragma once

#include "kernels/cuda/library.hpp"
#include "runtime/collective/nccl_link.hpp"
#include "runtime/core/buffer.hpp"
#include "tests/unit/runtime/collective/gang.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace troupe::collective::test {

using kernels::cuda::Device;

inline std::string built(const std::string& file) {
  const char* const folder = std::getenv("TROUPE_BUILD_DIR");
  return std::string(folder == nullptr ? "build" : folder) + "/bin/" + file;
}

inline void set_variable(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);
}

// This process uses the emulated libraries; `folder`: where the emulated NCCL meets.
inline void use_emulators(const std::filesystem::path& folder, const std::string& modes = "") {
  set_variable("TROUPE_CUDA_LIBRARY", built("libtroupe_cuda_emulated.so"));
  set_variable("TROUPE_CUDA_EMULATOR", "guard,devices:5");
  set_variable("TROUPE_NCCL_LIBRARY", built("libtroupe_nccl_emulated.so"));
  set_variable("TROUPE_NCCL_EMULATOR_FOLDER", folder);
  set_variable("TROUPE_NCCL_EMULATOR", modes);
}

// What an emulated NCCL that is open in this process says: `moved` (bytes) or `open`
// (communicators); 0 where none was opened.
template <class Number>
Number emulator_says(const std::string& what) {
  void* const library =
      ::dlopen(built("libtroupe_nccl_emulated.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  using Function = Number (*)();
  return reinterpret_cast<Function>(::dlsym(library, ("troupe_nccl_emulator_" + what).c_str()))();
}

// How a gang differs from the usual one. Functions are called in the processes of the ranks.
struct Setting {
  Ways ways = Ways::kWindow;
  std::function<std::string(int rank)> modes = [](int) { return std::string(); };
  std::function<void(int rank)> before = [](int) {};
  std::function<int(int rank)> device = [](int rank) { return rank; };
};

class DeviceGang {
 public:
  using Body = std::function<core::Result<void>(Collectives&, Device&, const Line&)>;
  DeviceGang(int size, const Body& body, const Setting& setting = {})
      : gang_(size, setting.ways, [&](Collectives& ranks, const Line& line) {
          return run_rank(ranks, line, body, setting);
        }) {}

  Process& rank(int number) { return gang_.rank(number); }
  int size() const { return gang_.size(); }
  std::string hear(int number) { return gang_.hear(number); }
  void expect_all(const std::string& words) {
    for (int rank = 0; rank < size(); ++rank)
      EXPECT_EQ(hear(rank), words) << "rank " << rank;
  }

 private:
  core::Result<void> run_rank(Collectives& ranks,
                              const Line& line,
                              const Body& body,
                              const Setting& setting) {
    use_emulators(folder_.path(), setting.modes(ranks.rank()));
    setting.before(ranks.rank());
    TROUPE_TRY_ASSIGN(device, kernels::cuda::open_device(setting.device(ranks.rank())));
    Device& lasting = *device.release();  // the gang, which is the caller's, must end before it
    TROUPE_TRY(ranks.use(make_nccl_link(lasting, {})));
    return body(ranks, lasting, line);
  }

  const troupe::test::TempFolder folder_;
  Gang gang_;
};

}  // namespace troupe::collective::test
