#include "runtime/core/memory.hpp"

#include "runtime/core/buffer.hpp"

#include <cstring>

namespace troupe::core {
namespace {

class HostMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) override { return allocate_aligned(bytes); }
  void release(void* memory, std::size_t bytes) noexcept override { free_aligned(memory, bytes); }
  void upload(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  bool on_host() const noexcept override { return true; }
};

}  // namespace

Memory& host_memory() noexcept {
  static HostMemory memory;
  return memory;
}

}  // namespace troupe::core
