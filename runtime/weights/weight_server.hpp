// Serves the newest snapshot to receivers: a descriptor or the handle of a device's memory over the
// Unix socket, a stream over TCP, whose connection may then ask again. One thread with one poll
// loop and non-blocking sockets, so a slow, frozen or dead receiver delays no other. Owned by the
// publisher. Bounds: kWeightReaders_max receivers hold a snapshot at once; further ones wait in a
// queue of kWeightQueue_max and get kQueued every kWeightQueueSign. Beyond kWeightStrangers_max
// connections of a listener without a complete request, further ones wait to be accepted, by TCP
// also where open files run short. A receiver has
// kWeightHello to send its request; a stream without progress is cut after kWeightStall.
//
// When the publisher needs memory, the pool wants the oldest snapshot back: its receivers are cut,
// remembered, and ask again. The snapshot that such a receiver then gets is kept until it is done
// (in shared or device memory for kWeightKeep at most). While a kept one is not the newest any
// more, streams to others that were cut wait in the queue, so a stream is cut at most once before
// it is done; receivers of shared or device memory are served at once, without that promise.
//
// Where an image has several sources, the server of source 0 speaks for all: it queues, keeps and
// sends on, and says where the others are. These give the version that it has granted. A stream
// that is for one of them comes to source 0, too, which hands the connection on.
#pragma once

#include "runtime/core/open_files.hpp"
#include "runtime/weights/cut_receivers.hpp"
#include "runtime/weights/relay_book.hpp"
#include "runtime/weights/weight_reader.hpp"

#include <atomic>
#include <thread>

namespace troupe::weights {

template <class Number>
struct ServerCountersOf {
  Number served{0};            // snapshots handed out
  Number served_on_device{0};  // of these, on the trainer's GPU
  Number refused{0};           // requests with a wrong key, malformed, or beyond the queue
  Number cut{0};               // receivers that left or stood still before the end
  Number readers{0};           // connections now, without the idle ones
  Number queued{0};            // of these, those that wait for a snapshot
  Number taken_back{0};        // receivers whose snapshot the publisher needed
  Number idle{0};              // streams that are open between two versions now
  Number accepted{0};          // connections ever
  Number sent_on{0};           // receivers that got the name of a relay
  Number handed_on{0};         // connections that were for another source
  Number streamed_bytes{0};    // bytes the system took for streams, heads included
};
using ServerCounters = ServerCountersOf<std::uint64_t>;

class WeightServer {
 public:
  struct Listeners {
    net::OwnedFd unix_listener, tcp_listener;  // either may be missing
  };
  struct Work {
    bool relay = false;  // else a publisher's
    // For a publisher: the type in which every version comes, so no receiver waits for it.
    kernels::PanelDtype main = kernels::PanelDtype::kF32;
    // For one of several publishers: the Unix sockets of all sources, and the index of this one.
    std::vector<std::string> sources{};
    std::uint32_t source = 0;
  };
  // `secret`: what a receiver must send. `shelves` outlive the server.
  WeightServer(Listeners listeners, std::string secret, ImageShelves& shelves, Work work);
  ~WeightServer();  // closes all connections

  ServerCounters counters() const;
  // Says that there are new snapshots, or more of one. Any thread.
  void look();

 private:
  void loop();
  void accept_from(const net::OwnedFd& listener, Wants way);
  // These return false when the connection must end.
  bool follow(WeightReader& reader, WeightReader::Outcome outcome);
  bool admit(WeightReader& reader);
  bool answer(WeightReader& reader);
  bool is_sent_on(WeightReader& reader);
  void serve_queue();
  bool waits_for_image(const WeightReader& reader);
  std::size_t next_in_queue();
  void look_at_snapshots();
  void drop(std::size_t place);
  std::size_t count(WeightReader::State state) const;

  Listeners listeners_;
  const std::string secret_;
  ImageShelves& shelves_;
  const Work work_;
  const std::uint64_t others_max_ = core::share_of_files(limits::kWeightStrangers_max);
  net::OwnedFd stop_, wake_;  // eventfds that end the loop, or say that the snapshots changed
  RelayBook book_;
  std::vector<WeightReader> readers_;
  CutReceivers cut_receivers_;
  std::uint64_t turns_ = 0;
  ServerCountersOf<std::atomic<std::uint64_t>> counts_;
  std::thread thread_;
};

}  // namespace troupe::weights
