// Carries bytes between two ranks, in order, both ways, without blocking: through shared memory on
// one host, by a stream between hosts. Bytes come from and go to any core::Memory. The thread that
// is in a collective uses it.
#pragma once

#include "runtime/core/memory.hpp"
#include "runtime/core/result.hpp"

#include <cstddef>

namespace troupe::collective {

class Pipe {
 public:
  virtual ~Pipe() = default;
  // Takes a part of the `bytes` at `from`, in `memory`; returns how many, 0 if there is no room
  // now. After a call with a device's memory, `flush` must have returned true before the next one.
  virtual std::size_t write(core::Memory& memory, const void* from, std::size_t bytes) = 0;
  // Fetches at most `bytes` to `to`; returns how many, 0 if there are none now.
  virtual std::size_t read(core::Memory& memory, void* to, std::size_t bytes) = 0;
  // Passes on what `write` took but still keeps; true when nothing is left. `moved` becomes true if
  // any byte went.
  virtual bool flush(bool& moved) = 0;

  // Whether there is something to read, or room to write, as far as that can be told without a
  // system call.
  virtual bool ready(bool reads, bool writes) const = 0;
  // Before its thread sleeps in poll: asks to be woken when there is something to read, or room to
  // write. False: it is so already. Adds to `events` (of poll) what must be waited for on `fd()`;
  // the other end's wake-up on the control connection may come instead.
  virtual bool arm(bool reads, bool writes, short& events) = 0;
  virtual void disarm() = 0;
  virtual int fd() const = 0;      // negative: none
  virtual bool ended() const = 0;  // the other end has closed; nothing will come any more
};

}  // namespace troupe::collective
