// A pipe through shared memory: a ring of bytes for each direction, made by its writer and mapped
// by both. The writer copies into the ring and the reader from it straight to where the bytes
// belong, pieces at a time, so that both copy at once and the ring stays in the cache. A side that
// finds nothing to do says so in the ring's head and sleeps; the other then sends one byte (kWake)
// on the control connection. Bound: `bytes` for each ring.
#pragma once

#include "runtime/collective/pipe.hpp"
#include "runtime/core/shared_memory.hpp"
#include "runtime/net/socket.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace troupe::collective {

// At the start of the shared memory; the ring follows on the next page. Positions only grow.
struct RingHead {
  alignas(64) std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint32_t> reader_sleeps{0};
  alignas(64) std::atomic<std::uint64_t> taken{0};
  std::atomic<std::uint32_t> writer_sleeps{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class WindowPipe final : public Pipe {
 public:
  // Makes the ring of this side, of `bytes` bytes, hands it to the other side over the Unix socket
  // `control`, and takes the other's. Blocks until that has come. Errors: kResources, kData (not a
  // ring), kPeerLost, kClosed (`given_up`).
  static core::Result<std::unique_ptr<WindowPipe>> exchange(const net::OwnedFd& control,
                                                            std::uint64_t bytes,
                                                            net::Patience patience,
                                                            const std::string& peer);

  std::size_t write(core::Memory& memory, const void* from, std::size_t bytes) override;
  std::size_t read(core::Memory& memory, void* to, std::size_t bytes) override;
  bool flush(bool&) override { return true; }
  bool ready(bool reads, bool writes) const override;
  bool arm(bool reads, bool writes, short& events) override;
  void disarm() override;
  int fd() const override { return -1; }
  bool ended() const override { return broken_; }

 private:
  struct Ring {
    core::SharedMemory memory;
    std::uint64_t bytes = 0;
    std::uint64_t at = 0;  // this side's position
    RingHead& head() const { return *reinterpret_cast<RingHead*>(memory.data()); }
    char* data() const;
  };
  WindowPipe(Ring out, Ring in, int control)
      : out_(std::move(out)), in_(std::move(in)), control_(control) {}
  void wake(std::atomic<std::uint32_t>& sleeps) const;

  Ring out_, in_;
  const int control_;
  bool broken_ = false;  // the other side wrote an invalid head
};

}  // namespace troupe::collective
