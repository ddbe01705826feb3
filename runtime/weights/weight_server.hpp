// Serves the newest snapshot to receivers: a descriptor or the handle of a device's memory over the
// Unix socket, a stream over TCP, whose connection may then ask again. One thread with one poll
// loop and non-blocking sockets, so a slow, frozen or dead receiver delays no other. Owned by the
// publisher. Bounds: kWeightReaders_max receivers hold a snapshot at once; further ones wait in a
// queue of kWeightQueue_max and get kQueued every kWeightQueueSign. Beyond kWeightStrangers_max
// connections without a complete request, further ones wait to be accepted. A receiver has
// kWeightHello to send its request; a stream without progress is cut after kWeightStall.
//
// When the publisher needs memory, the pool wants the oldest snapshot back: its receivers are cut,
// remembered, and ask again. The snapshot that such a receiver then gets is kept until it is done
// (in shared or device memory for kWeightKeep at most). While a kept one is not the newest any
// more, streams to others that were cut wait in the queue, so a stream is cut at most once before
// it is done; receivers of shared or device memory are served at once, without that promise.
#pragma once

#include "runtime/weights/cut_receivers.hpp"
#include "runtime/weights/snapshot_pool.hpp"

#include <atomic>
#include <thread>

namespace troupe::weights {

struct ServerCounters {
  std::uint64_t served = 0;            // snapshots handed out
  std::uint64_t served_on_device = 0;  // of these, on the trainer's GPU
  std::uint64_t refused = 0;           // requests with a wrong key, malformed, or beyond the queue
  std::uint64_t cut = 0;               // receivers that left or stood still before the end
  std::uint64_t readers = 0;           // connections now, without the idle ones
  std::uint64_t queued = 0;            // of these, those that wait for a snapshot
  std::uint64_t taken_back = 0;        // receivers whose snapshot the publisher needed
  std::uint64_t idle = 0;              // streams that are open between two versions now
  std::uint64_t accepted = 0;          // connections ever
};

class WeightServer {
 public:
  struct Listeners {
    net::OwnedFd unix_listener, tcp_listener;  // either may be missing
  };
  WeightServer(Listeners listeners,
               std::string key,
               SnapshotPool& pool,
               DeviceSnapshotPool& device_pool);
  ~WeightServer();  // closes all connections

  ServerCounters counters() const;

 private:
  // kHello: a stranger. kIdle: it has had a stream and may ask again. kHeld: it holds shared or
  // device memory, or has still to confirm a stream.
  enum class State { kHello, kIdle, kQueued, kStream, kHeld };
  struct Reader {
    net::OwnedFd socket;
    Wants way = Wants::kMemory;  // what its listener serves
    State state = State::kHello;
    core::TimePoint until;  // deadline (stays_late); none while it is idle or holds memory
    Hello hello;
    std::size_t hello_bytes = 0;
    std::uint64_t turn = 0;  // of its request, in the order of all requests
    bool keeps = false;      // its snapshot is kept for it
    std::shared_ptr<Snapshot> lease;
    std::shared_ptr<DeviceSnapshot> device_lease;
    std::uint64_t sent = 0;   // bytes of the snapshot that the system has accepted
    std::uint64_t taken = 0;  // of these, bytes that the receiver had taken at the last check
  };

  // Functions that return bool return false when the connection must end.
  void loop();
  int poll_timeout_ms(core::TimePoint now) const;
  void accept_from(const net::OwnedFd& listener, Wants way);
  bool go_on(Reader& reader, short events);
  bool stays_late(Reader& reader);
  std::size_t count(State state) const;
  std::size_t leases() const;
  bool read_hello(Reader& reader);
  bool check_hello(Reader& reader);
  bool still_queued(Reader& reader);
  void serve_queue();
  std::size_t next_in_queue() const;
  void take_back();
  bool answer(Reader& reader);
  void end_leases(Reader& reader);
  void stop_keeping(Reader& reader);
  void drop(std::size_t place);
  bool hand_out_place(Reader& reader, const Answer& reply);
  bool stream(Reader& reader);
  bool still_held(Reader& reader);

  Listeners listeners_;
  const std::string key_;
  SnapshotPool& pool_;
  DeviceSnapshotPool& device_pool_;
  net::OwnedFd stop_, wake_;  // eventfds that end the loop, or say that a snapshot is wanted back
  std::vector<Reader> readers_;
  CutReceivers cut_receivers_;
  std::uint64_t turns_ = 0;
  std::atomic<std::uint64_t> served_{0}, served_on_device_{0}, refused_{0}, cut_{0};
  std::atomic<std::uint64_t> readers_now_{0}, queued_now_{0}, taken_back_{0}, idle_now_{0};
  std::atomic<std::uint64_t> accepted_{0};
  std::thread thread_;
};

}  // namespace troupe::weights
