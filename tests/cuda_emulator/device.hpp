// The emulated devices of a process: their memory, which is one file-backed arena at a fixed
// address, what is set for kernels, and the error after which nothing works any more.
#pragma once

#include "tests/cuda_emulator/fibers.hpp"

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe_emulator {

// Whether TROUPE_CUDA_EMULATOR has the word, and N of the word `word:N`.
bool mode_has(std::string_view word);
std::optional<std::uint64_t> mode_number(std::string_view word);

// The compute capability of a device, times 10.
int capability_of(int device);

// Ends the process with these words.
[[noreturn]] void refuse(const char* what);

inline constexpr std::uintptr_t kBase = 0x200000000000;
inline constexpr std::size_t kArena = std::size_t{64} << 30;

// One for the process, for all its devices. Everything is done under its lock.
class Device {
 public:
  static Device& get();
  // Reads TROUPE_CUDA_EMULATOR again, for tests in a process of their own.
  static void forget_modes() { get().read_modes(); }

  cudaError_t allocate(void** out, std::size_t bytes);
  cudaError_t release(void* memory);
  // True for memory of a device.
  static bool owns(const void* p);
  // The block of memory that an address lies in; 0 bytes when in none.
  std::pair<std::size_t, std::size_t> block_of(const void* p) const;
  // The host may touch the memory of the devices between the two.
  void open();
  void close();

  void pin(const void* memory, std::size_t bytes) { pinned_[memory] = bytes; }
  void unpin(const void* memory) { pinned_.erase(memory); }
  bool is_pinned(const void* p) const;

  // Runs the grid, unless it is the one that fails.
  void run(const cudaLaunchConfig_t& config, const std::function<void()>& thread);

  std::recursive_mutex mutex;
  std::map<const void*, std::size_t> shared_most;  // dynamic shared memory of kernels, where set
  cudaError_t broken = cudaSuccess;                // once a grid has failed
  int file() const { return file_; }
  std::size_t used() const { return used_; }
  std::size_t limit() const { return limit_; }

 private:
  Device();
  void read_modes();
  void protect(int how);

  Fibers fibers_;
  std::vector<float> shared_;
  std::map<std::size_t, std::size_t> taken_;   // offset, bytes
  std::map<const void*, std::size_t> pinned_;  // bytes
  int file_ = -1;
  std::size_t used_ = 0, top_ = 0;
  const std::size_t limit_;
  const bool guard_ = mode_has("guard");
  Order order_;
  std::optional<std::uint64_t> fails_at_, hangs_at_, skips_;
  std::uint64_t grids_ = 0;
  int depth_ = 0;
};

}  // namespace troupe_emulator
