// A receiver of weights and relay for others, as RemoteWeightSubscriber, StreamFetch and Relay are
// together, on virtual time: what they do with sockets is done here with calls. One slot of a
// world: when its process dies, another one takes its place, with another number. Owned by the
// world.
#pragma once

#include "runtime/weights/push_protocol.hpp"
#include "tests/sim/relays/image.hpp"
#include "tests/sim/virtual_time.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace troupe::sim {

class Receiver;

// What a receiver asks of the publisher or of a relay; weights::Hello.
struct RelayAsk {
  std::uint64_t life = 0;  // of the publisher that the location names
  core::Version at_least = 0, begun = 0;
  std::uint32_t buckets = 0, avoid = 0;
  weights::RelayFault fault = weights::RelayFault::kNone;
};
// The publisher's answer: a relay, or no place when its own stream follows. No version: it has only
// older ones.
struct RelayDirection {
  core::Version version = 0;
  std::optional<weights::RelayPlace> place;
};

// The rest of the world, as a receiver sees it. What it sends may be lost.
struct RelaySurroundings {
  cluster::sim::VirtualTime& time;
  Truth& truth;
  std::function<std::uint32_t()> new_number;
  // Connects to the publisher of that life; false: nobody is there.
  std::function<bool(Receiver& from, std::uint64_t life)> connect;
  std::function<void(Receiver& from)> disconnect;
  std::function<void(Receiver& from, const RelayAsk& ask)> ask_publisher;
  std::function<void(Receiver& from, const weights::Report& report)> report;
  std::function<void(Receiver& from, std::uint32_t relay, const RelayAsk& ask, bool memory)>
      ask_relay;
  std::function<void(std::uint32_t from, std::uint32_t to, ImagePtr image, std::uint32_t first)>
      open_stream;
  std::function<void(std::uint32_t from, std::uint32_t to, ImagePtr image)> lend;
  std::function<void(const ImagePtr& image)> grown;  // or abandoned
  std::function<void(Stream& stream)> close;
  std::function<bool(const Stream& stream)> flows;  // bytes of a bucket are coming
  std::function<void()> progressed;
};

class Receiver {
 public:
  Receiver(RelaySurroundings& around, std::uint32_t host, bool reachable)
      : around_(around), host_(host), reachable_(reachable) {}
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  std::uint32_t number() const { return number_; }
  std::uint32_t host() const { return host_; }
  bool alive() const { return alive_; }
  bool frozen() const { return frozen_; }
  weights::RelayPlace place() const;
  const ImagePtr& weights() const { return whole_; }

  // ---- what happens to its process
  void begin();
  void kill();
  void freeze(bool frozen);
  // What it does wrong as a relay, or how slow its host is.
  bool withholds = false, wrong = false, deaf = false;
  core::Duration get_time{}, give_time{};

  // ---- what reaches it; waits while it is frozen
  void told(std::uint64_t life, core::Version version);  // by the control plane
  void directed(const RelayDirection& direction);
  void publisher_gone();
  void begins(const StreamPtr& stream);
  void bucket(const StreamPtr& stream, std::uint64_t bytes);
  void ended(const StreamPtr& stream);
  void refused(std::uint32_t relay);  // there was no way to that relay
  void lent(std::uint32_t relay, const ImagePtr& image);
  void asked(std::uint32_t by, const RelayAsk& ask, bool memory);

 private:
  struct Fetch {
    std::uint64_t life = 0;
    core::Version at_least = 0;
    std::uint32_t parent = 0;
    StreamPtr stream;
    bool asking = false, publisher_lost = false;
    weights::RelayFault fault = weights::RelayFault::kNone;  // that it has asked with
    core::TimePoint asked{}, heard{}, reported{}, reviewed{};
    std::deque<std::function<void()>> later;  // what came while it waits for an answer
  };
  struct Child {
    std::uint32_t number = 0;
    RelayAsk ask;
    bool memory = false;
  };

  void reached(std::function<void()> what);  // by something
  void look();
  void fetch_later(core::Duration pause);
  void fetch();
  void tick(std::uint64_t fetch);
  void ask(weights::RelayFault fault);
  void go_to(std::uint32_t relay, bool memory);
  void take_bucket(std::uint64_t bytes);
  void report(weights::Report::Kind kind);
  void finish(ImagePtr image);
  void give_up();
  void leave_stream();
  void abandon();
  void keep(ImagePtr image);
  void serve_children();
  bool serve(const Child& child);

  RelaySurroundings& around_;
  const std::uint32_t host_;
  const bool reachable_;
  std::uint32_t number_ = 0;
  bool alive_ = false, frozen_ = false;
  std::deque<std::function<void()>> held_;  // while it is frozen
  std::uint64_t life_ = 0;                  // the newest location
  core::Version version_ = 0;
  std::uint64_t relay_life_ = 0;  // whose weights it passes on
  ImagePtr begun_, whole_;
  std::deque<ImagePtr> kept_;  // what it began last, and passes on
  std::optional<Fetch> fetch_;
  std::uint64_t fetches_ = 0;
  bool waits_ = false;  // until it fetches again
  core::Duration pause_{};
  std::vector<std::uint32_t> set_aside_;
  std::vector<Child> children_;  // that wait for a version
};

}  // namespace troupe::sim
