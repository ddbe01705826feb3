// A team whose memory counts what is taken from it and says that it is a device's, so that code
// allocates as on a GPU. The numbers lie on the host, and the arithmetic is the host's. One thread.
#pragma once

#include "runtime/core/team.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace troupe::plan {

class CountingMemory final : public core::Memory {
 public:
  void* allocate(std::size_t bytes) override {
    now_ += static_cast<std::int64_t>(bytes);
    most_ = std::max(most_, now_);
    return core::host_memory().allocate(bytes);
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    now_ -= static_cast<std::int64_t>(bytes);
    core::host_memory().release(memory, bytes);
  }
  void upload(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  bool on_host() const noexcept override { return false; }

  std::int64_t most() const { return most_; }  // bytes in use at once, so far

 private:
  static void move(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  std::int64_t now_ = 0, most_ = 0;
};

class CountingTeam final : public core::TeamRunner {
 public:
  void run(const std::function<void(core::Team)>& region) override { region(core::Team{}); }
  int size() const noexcept override { return 1; }
  CountingMemory& memory() noexcept override { return memory_; }

 private:
  CountingMemory memory_;
};

}  // namespace troupe::plan
