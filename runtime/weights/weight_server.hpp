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
#include "runtime/weights/image_shelves.hpp"
#include "runtime/weights/relay_book.hpp"

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
  std::uint64_t sent_on = 0;           // receivers that got the name of a relay
  std::uint64_t handed_on = 0;         // connections that were for another source
  std::uint64_t streamed_bytes = 0;    // that the system took for streams, heads included
};

class WeightServer {
 public:
  struct Listeners {
    net::OwnedFd unix_listener, tcp_listener;  // either may be missing
  };
  struct Work {
    bool relay = false;  // else a publisher's
    // Of a publisher: the type of which every version comes, so nobody waits for one.
    kernels::PanelDtype main = kernels::PanelDtype::kF32;
    // Of a publisher with others: the Unix sockets of all sources, and which one this is.
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
  // kHello: a stranger. kIdle: it has had a stream and may ask again. kHeld: it holds shared or
  // device memory, or has still to confirm a stream.
  // kSentOn: it gets its version from a relay, and reports how far it is.
  enum class State { kHello, kIdle, kQueued, kStream, kHeld, kSentOn };
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
    std::uint64_t at = 0;     // the next byte of the snapshot to send
    std::uint64_t sent = 0;   // bytes that the system has accepted
    std::uint64_t taken = 0;  // of these, bytes that the receiver had taken at the last check
    std::uint32_t first_bucket = 0;  // with which the stream begins
    bool starved = false;            // all that is ready has been sent
    Report report;
    std::size_t report_bytes = 0;
    std::uint32_t number() const { return hello.place.number; }
  };

  // Functions that return bool return false when the connection must end.
  void loop();
  int poll_timeout_ms(core::TimePoint now) const;
  void accept_from(const net::OwnedFd& listener, Wants way);
  bool go_on(Reader& reader, short events);
  bool stays_late(Reader& reader);
  std::size_t count(State state) const;
  std::size_t strangers(Wants way) const;
  std::size_t leases() const;
  bool read_hello(Reader& reader);
  bool hand_on(Reader& reader);
  bool check_hello(Reader& reader);
  bool still_queued(Reader& reader);
  void serve_queue();
  bool waits_for_image(const Reader& reader);
  std::size_t next_in_queue();
  void take_back();
  bool answer(Reader& reader);
  void end_leases(Reader& reader);
  void stop_keeping(Reader& reader);
  void drop(std::size_t place);
  bool hand_out_memory(Reader& reader, const Answer& reply);
  bool hand_out_place(Reader& reader, const Answer& reply);
  void grant(Reader& reader, Answer& reply);
  void begin_stream(Reader& reader, Answer& reply);
  bool stream(Reader& reader);
  void go_on_streaming();
  bool still_held(Reader& reader);
  bool becomes_idle(Reader& reader);
  bool is_sent_on(Reader& reader, const Snapshot& newest);
  void note_streams();
  bool read_reports(Reader& reader);
  bool take_report(Reader& reader);
  ImageShelves::Shelf& shelf(const Reader& reader) { return shelves_.of(reader.hello.image); }

  Listeners listeners_;
  const std::string secret_;
  ImageShelves& shelves_;
  const Work work_;
  const std::uint64_t others_max_ = core::share_of_files(limits::kWeightStrangers_max);
  net::OwnedFd stop_, wake_;  // eventfds that end the loop, or say that the snapshots changed
  RelayBook book_;
  std::vector<Reader> readers_;
  CutReceivers cut_receivers_;
  std::uint64_t turns_ = 0;
  std::atomic<std::uint64_t> served_{0}, served_on_device_{0}, refused_{0}, cut_{0};
  std::atomic<std::uint64_t> readers_now_{0}, queued_now_{0}, taken_back_{0}, idle_now_{0};
  std::atomic<std::uint64_t> accepted_{0}, sent_on_{0}, handed_on_{0}, streamed_bytes_{0};
  std::thread thread_;
};

}  // namespace troupe::weights
